//! Coalescing: which request leads, which follow, and when no request waits for another.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use spdy::runtime::{BoxFuture, Runtime, SharedRuntime};
use spdy_cache::lookup::Failure;
use spdy_clock::Instant;
use spdy_proxy::cache::coalescer::{CoalesceRole, Coalescer, Follower, Leader, WaitOutcome};
use tokio::sync::watch;

/// A clock that a test advances.
#[derive(Clone)]
struct ManualClock(Arc<Mutex<Instant>>, watch::Sender<()>);

impl ManualClock {
    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
        self.1.send_replace(());
    }
}

impl Runtime for ManualClock {
    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let (clock, mut changes) = (self.clone(), self.1.subscribe());
        Box::pin(async move { while clock.now() < deadline && changes.changed().await.is_ok() {} })
    }

    fn spawn(&self, _: BoxFuture<()>) {
        panic!("nothing runs beside a flight");
    }
}

fn clock() -> (ManualClock, SharedRuntime) {
    let clock = ManualClock(Arc::new(Mutex::new(Instant::ZERO)), watch::Sender::new(()));
    (clock.clone(), SharedRuntime::new(clock))
}

type TestCoalescer = Coalescer<u32, &'static str>;

/// No more than two lead in a minute.
const LOCK_AGE: Duration = Duration::from_secs(40);

fn none_yet() -> Arc<TestCoalescer> {
    Coalescer::new(LOCK_AGE)
}

/// The deadline of all waits.
const MINUTE: Instant = Instant::from_nanos(60_000_000_000);

fn lead(flights: &Arc<TestCoalescer>, key: u32, now: Instant) -> Leader<u32, &'static str> {
    match flights.join(key, now) {
        CoalesceRole::Leader(leader) => leader,
        other => panic!("{other:?}, expected a leader for {key}"),
    }
}

fn follow(flights: &Arc<TestCoalescer>, key: u32) -> Follower<u32, &'static str> {
    match flights.join(key, Instant::ZERO) {
        CoalesceRole::Follower(follower) => follower,
        other => panic!("{other:?}, expected a follower of {key}"),
    }
}

fn is_shared(waited: Option<WaitOutcome<u32, &'static str>>) -> bool {
    matches!(waited, Some(WaitOutcome::Shared(shared)) if *shared == "all of it")
}

#[test]
fn followers_get_the_shared_response_before_and_after() {
    let (_, runtime) = clock();
    let flights = none_yet();
    let mut leader = lead(&flights, 1, Instant::ZERO);
    let mut early = Box::pin(follow(&flights, 1).wait(&runtime, MINUTE));
    assert!((&mut early).now_or_never().is_none());
    assert!(flights.shared_response(&1).is_none());
    leader.share(Arc::new("all of it"));
    assert!(is_shared((&mut early).now_or_never()));
    let late = follow(&flights, 1);
    assert!(is_shared(late.wait(&runtime, MINUTE).now_or_never()));
    assert!(flights.shared_response(&1).is_some());
    drop(leader);
    drop(lead(&flights, 1, Instant::ZERO));
}

#[test]
fn follower_rejoins_if_leader_drops_and_fetches_alone_if_private() {
    let (_, runtime) = clock();
    let flights = none_yet();
    let leader = lead(&flights, 1, Instant::ZERO);
    let follower = follow(&flights, 1);
    drop(leader);
    let waited = follower.wait(&runtime, MINUTE).now_or_never();
    assert!(
        matches!(waited, Some(WaitOutcome::LeaderEnded)),
        "{waited:?}"
    );

    let leader = lead(&flights, 1, Instant::ZERO);
    let follower = follow(&flights, 1);
    leader.mark_private(Instant::ZERO);
    let waited = follower.wait(&runtime, MINUTE).now_or_never();
    assert!(matches!(waited, Some(WaitOutcome::Private)), "{waited:?}");
}

/// They led one after the other, each for as long as the origin took to fail.
#[test]
fn waiters_get_origin_failure_and_next_request_leads() {
    let (clock, runtime) = clock();
    let flights = none_yet();
    let leader = lead(&flights, 1, Instant::ZERO);
    let (one, other) = (follow(&flights, 1), follow(&flights, 1));
    leader.fail(Failure::Unreachable);
    let next = lead(&flights, 1, Instant::ZERO);
    for follower in [one, other] {
        let waited = follower.wait(&runtime, MINUTE).now_or_never();
        assert!(
            matches!(waited, Some(WaitOutcome::Failed(Failure::Unreachable))),
            "{waited:?}"
        );
    }
    // What one brought stays, if another of them fails.
    assert!(!next.has_other_leaders());
    clock.advance(LOCK_AGE);
    let waited = follow(&flights, 1).wait(&runtime, MINUTE).now_or_never();
    let Some(WaitOutcome::Promoted(mut second)) = waited else {
        panic!("it is time for one more");
    };
    assert!(next.has_other_leaders() && second.has_other_leaders());
    second.share(Arc::new("all of it"));
    next.fail(Failure::Unreachable);
    let late = follow(&flights, 1);
    assert!(is_shared(late.wait(&runtime, MINUTE).now_or_never()));
    assert!(!second.has_other_leaders());
}

/// Regression: all waiters went to a slow origin at the same moment.
#[test]
fn second_leader_joins_slow_one_and_first_result_wins() {
    let (clock, runtime) = clock();
    let flights = none_yet();
    let slow = lead(&flights, 1, Instant::ZERO);
    let wait = || Box::pin(follow(&flights, 1).wait(&runtime, MINUTE));
    let (mut one, mut other) = (wait(), wait());
    assert!((&mut one).now_or_never().is_none() && (&mut other).now_or_never().is_none());
    clock.advance(LOCK_AGE - Duration::from_millis(1));
    assert!((&mut one).now_or_never().is_none());
    clock.advance(Duration::from_millis(1));
    let Some(WaitOutcome::Promoted(mut second)) = (&mut one).now_or_never() else {
        panic!("it is time for one more");
    };
    assert!((&mut other).now_or_never().is_none(), "and not for two");
    second.share(Arc::new("all of it"));
    assert!(is_shared((&mut other).now_or_never()));
    drop(second);
    // Its response is in the cache by now, and the slow reader holds up no request.
    let next = lead(&flights, 1, runtime.now());
    drop(slow);
    follow(&flights, 1);
    drop(next);
}

#[test]
fn request_after_detach_leads_and_old_waiters_finish() {
    let (clock, runtime) = clock();
    let flights = none_yet();
    let mut old = lead(&flights, 1, Instant::ZERO);
    let wait = || Box::pin(follow(&flights, 1).wait(&runtime, MINUTE));
    let (mut early, mut patient) = (wait(), wait());
    assert!((&mut early).now_or_never().is_none());
    let other = lead(&flights, 3, Instant::ZERO);
    flights.detach_from(&1, |key| *key < 3);
    let mut new = lead(&flights, 1, Instant::ZERO);
    follow(&flights, 3);
    // It waits no longer than until one more request is released.
    clock.advance(LOCK_AGE);
    assert!((&mut early).now_or_never().is_none());
    clock.advance(LOCK_AGE);
    let waited = (&mut early).now_or_never();
    assert!(
        matches!(
            waited,
            Some(WaitOutcome::LeaderEnded | WaitOutcome::TimedOut)
        ),
        "{waited:?}"
    );
    // Its response is for the requests from before.
    old.share(Arc::new("all of it"));
    assert!(is_shared((&mut patient).now_or_never()));
    assert!(flights.shared_response(&1).is_none());
    drop(old);
    new.share(Arc::new("all of it"));
    assert!(
        flights.shared_response(&1).is_some(),
        "the old one takes no other's place away"
    );
    drop((new, other));
}

#[test]
fn follower_times_out() {
    let (clock, runtime) = clock();
    let flights = none_yet();
    let _slow = lead(&flights, 1, Instant::ZERO);
    let until = Instant::ZERO + LOCK_AGE / 2;
    let mut waiting = Box::pin(follow(&flights, 1).wait(&runtime, until));
    clock.advance(LOCK_AGE / 2 - Duration::from_millis(1));
    assert!((&mut waiting).now_or_never().is_none());
    clock.advance(Duration::from_millis(1));
    let waited = (&mut waiting).now_or_never();
    assert!(matches!(waited, Some(WaitOutcome::TimedOut)), "{waited:?}");
}

#[test]
fn private_key_is_not_coalesced_for_ten_seconds() {
    let flights = none_yet();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    lead(&flights, 1, at(0)).mark_private(at(0));
    assert!(matches!(flights.join(1, at(9)), CoalesceRole::Independent));
    drop(lead(&flights, 1, at(10)));
}

#[test]
fn private_keys_are_limited_and_oldest_is_evicted() {
    let flights = none_yet();
    for key in 0..=4096 {
        lead(&flights, key, Instant::ZERO).mark_private(Instant::ZERO);
    }
    drop(lead(&flights, 0, Instant::ZERO));
    assert!(matches!(
        flights.join(1, Instant::ZERO),
        CoalesceRole::Independent
    ));
    assert!(matches!(
        flights.join(4096, Instant::ZERO),
        CoalesceRole::Independent
    ));
}
