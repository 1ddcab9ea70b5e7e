//! One fetch for many: who leads, who follows, and when nobody waits for anybody.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use spdy::runtime::{BoxFuture, Runtime, SharedRuntime};
use spdy_clock::Instant;
use spdy_proxy::flight::{Flights, Leader, Seat};
use tokio::sync::watch;

/// A clock that a test turns.
#[derive(Clone)]
struct Turned(Arc<Mutex<Instant>>, watch::Sender<()>);

impl Turned {
    fn turn(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
        self.1.send_replace(());
    }
}

impl Runtime for Turned {
    fn now(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let (clock, mut turned) = (self.clone(), self.1.subscribe());
        Box::pin(async move { while clock.now() < deadline && turned.changed().await.is_ok() {} })
    }

    fn spawn(&self, _: BoxFuture<()>) {
        panic!("nothing runs beside a flight");
    }
}

fn clock() -> (Turned, SharedRuntime) {
    let turned = Turned(Arc::new(Mutex::new(Instant::ZERO)), watch::Sender::new(()));
    (turned.clone(), SharedRuntime::new(turned))
}

type Of = Flights<u32, &'static str>;

fn lead(flights: &Arc<Of>, key: u32, now: Instant) -> Leader<u32, &'static str> {
    match flights.board(key, now) {
        Seat::Leader(leader) => leader,
        other => panic!("{other:?}, and nobody leads {key}"),
    }
}

#[test]
fn who_follows_gets_what_the_leader_shares_and_who_comes_later_too() {
    let (_, runtime) = clock();
    let flights = Of::new();
    let mut leader = lead(&flights, 1, Instant::ZERO);
    let Seat::Follower(early) = flights.board(1, Instant::ZERO) else {
        panic!("somebody leads");
    };
    let mut early = Box::pin(early.wait(&runtime));
    assert!((&mut early).now_or_never().is_none());
    leader.land(Arc::new("all of it"));
    assert_eq!(
        (&mut early).now_or_never().flatten().as_deref(),
        Some(&"all of it")
    );
    let Seat::Follower(late) = flights.board(1, Instant::ZERO) else {
        panic!("it has landed, and is not in the cache yet");
    };
    assert!(late.wait(&runtime).now_or_never().flatten().is_some());
    drop(leader);
    drop(lead(&flights, 1, Instant::ZERO));
}

#[test]
fn who_follows_is_free_when_the_leader_leaves_or_takes_too_long() {
    let (clock, runtime) = clock();
    let flights = Of::new();
    let leader = lead(&flights, 1, Instant::ZERO);
    let Seat::Follower(follower) = flights.board(1, Instant::ZERO) else {
        panic!("somebody leads");
    };
    drop(leader);
    assert_eq!(follower.wait(&runtime).now_or_never(), Some(None));

    let _slow = lead(&flights, 2, Instant::ZERO);
    let Seat::Follower(follower) = flights.board(2, Instant::ZERO) else {
        panic!("somebody leads");
    };
    let mut waiting = Box::pin(follower.wait(&runtime));
    assert!((&mut waiting).now_or_never().is_none());
    clock.turn(Duration::from_millis(4_999));
    assert!((&mut waiting).now_or_never().is_none());
    clock.turn(Duration::from_millis(1));
    assert_eq!((&mut waiting).now_or_never(), Some(None));
}

#[test]
fn for_what_was_one_clients_alone_nobody_waits_for_ten_seconds() {
    let flights = Of::new();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    lead(&flights, 1, at(0)).private(at(0));
    assert!(matches!(flights.board(1, at(9)), Seat::Alone));
    drop(lead(&flights, 1, at(10)));
}

#[test]
fn so_many_are_remembered_and_of_one_more_the_first_is_forgotten() {
    let flights = Of::new();
    for key in 0..=4096 {
        lead(&flights, key, Instant::ZERO).private(Instant::ZERO);
    }
    drop(lead(&flights, 0, Instant::ZERO));
    assert!(matches!(flights.board(1, Instant::ZERO), Seat::Alone));
    assert!(matches!(flights.board(4096, Instant::ZERO), Seat::Alone));
}
