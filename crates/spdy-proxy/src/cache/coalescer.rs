//! One fetch for all who want the same at the same time.
//!
//! ```text
//! first  --Leader--> origin          head: everyone may have it --land--> later ones read along, until it is in the cache
//!                                          one client's alone --private-> each asks for himself
//!                                          the origin fails ----fail---> each has what is kept, if that will do; else he boards again
//! later  --Follower--> waits               none ------------------drop--> one of them leads, the others wait for him
//!                        | after each `lock_age`
//!                        '---> one more leads beside the first: whoever lands first, lands for all
//! ```
//!
//! A purge detaches: whoever comes after it has nothing of what was asked for before. Who waits since before it boards again if nothing comes
//! within `lock_age`.
//!
//! What turned out to be nobody else's is remembered for a while: then nobody waits for a leader who will have nothing to give.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::SharedRuntime;
use spdy_cache::lookup::Failure;
use spdy_clock::Instant;
use tokio::sync::watch;

use crate::expiring_map::ExpiringMap;

/// How long it is remembered that an answer was one client's alone.
const PRIVATE_TTL: Duration = Duration::from_secs(10);
/// Keys of which that is remembered.
const MAX_PRIVATE_KEYS: usize = 4096;

/// All flights. `K` is what is asked for, `T` what a leader has to share.
#[derive(Debug)]
pub struct Coalescer<K, T> {
    state: Mutex<State<K, T>>,
    /// How long those who wait leave it to the last who began.
    coalesce_timeout: Duration,
}

#[derive(Debug)]
struct State<K, T> {
    pending: BTreeMap<K, PendingFetch<T>>,
    private: ExpiringMap<K>,
    next: u64,
}

#[derive(Debug)]
struct PendingFetch<T> {
    number: u64,
    leaders: usize,
    /// When the last of them began.
    since: Instant,
    tell: watch::Sender<LeaderState<T>>,
}

#[derive(Debug)]
enum LeaderState<T> {
    Waiting,
    Shared(Arc<T>),
    Private,
    Failed(Failure),
}

/// Who fetches. While it lives, others follow.
#[derive(Debug)]
pub struct Leader<K: Ord, T> {
    flights: Arc<Coalescer<K, T>>,
    key: K,
    number: u64,
    has_shared: bool,
    sender: watch::Sender<LeaderState<T>>,
}

/// Who waits for a leader.
#[derive(Debug)]
pub struct Follower<K, T> {
    flights: Arc<Coalescer<K, T>>,
    key: K,
    number: u64,
    told: watch::Receiver<LeaderState<T>>,
}

/// What somebody who wants a thing is to do.
#[derive(Debug)]
pub enum CoalesceRole<K: Ord, T> {
    /// Fetch it, and share it if that is allowed.
    Leader(Leader<K, T>),
    /// Wait.
    Follower(Follower<K, T>),
    /// Fetch it alone: it was somebody's own the last time.
    Independent,
}

/// What came of waiting.
#[derive(Debug)]
pub enum WaitOutcome<K: Ord, T> {
    /// This is shared.
    Shared(Arc<T>),
    /// Fetch it alone: it is one client's own.
    Private,
    /// Nobody fetches it any more: board again.
    LeaderGone,
    /// The origin failed, and the leader had what is kept instead: have the same, or board again.
    Failed(Failure),
    /// Fetch it beside who is slow, and share it.
    Promoted(Leader<K, T>),
    /// There was no time for more.
    TimedOut,
}

impl<K: Ord + Clone, T> Coalescer<K, T> {
    /// None yet. While nothing comes, one more is let go each `lock_age`.
    #[must_use]
    pub fn new(lock_age: Duration) -> Arc<Self> {
        let state = State {
            pending: BTreeMap::new(),
            private: ExpiringMap::new(PRIVATE_TTL, MAX_PRIVATE_KEYS),
            next: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            coalesce_timeout: lock_age,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock()
    }

    /// Somebody wants `key`.
    pub fn join(self: &Arc<Self>, key: K, now: Instant) -> CoalesceRole<K, T> {
        let mut state = self.lock();
        if state.private.has(&key, now) {
            return CoalesceRole::Independent;
        }
        if let Some(flight) = state.pending.get(&key) {
            return CoalesceRole::Follower(Follower {
                flights: self.clone(),
                number: flight.number,
                told: flight.tell.subscribe(),
                key,
            });
        }
        let tell = watch::Sender::new(LeaderState::Waiting);
        let number = state.next;
        state.next += 1;
        let flight = PendingFetch {
            number,
            leaders: 1,
            since: now,
            tell: tell.clone(),
        };
        state.pending.insert(key.clone(), flight);
        CoalesceRole::Leader(self.leader(key, number, tell))
    }

    /// What is shared of `key` at this moment.
    pub fn shared_response(&self, key: &K) -> Option<Arc<T>> {
        let state = self.lock();
        match &*state.pending.get(key)?.tell.borrow() {
            LeaderState::Shared(shared) => Some(shared.clone()),
            LeaderState::Waiting | LeaderState::Private | LeaderState::Failed(_) => None,
        }
    }

    /// Removes the flight that landed `shared`, which does not serve requests that come now: the next request leads another flight. Current
    /// readers are not affected.
    pub fn supersede(&self, key: &K, shared: &Arc<T>) {
        let mut state = self.lock();
        let landed = state.pending.get(key).is_some_and(
            |flight| matches!(&*flight.tell.borrow(), LeaderState::Shared(it) if Arc::ptr_eq(it, shared)),
        );
        if landed {
            state.pending.remove(key);
        }
    }

    /// Nobody boards any more what is under way from `first` on, in the order of keys, up to what is not meant: who comes next asks anew. Those
    /// who wait came before.
    pub fn detach_from(&self, first: &K, is_meant: impl Fn(&K) -> bool) {
        let mut state = self.lock();
        while let Some((key, _)) = state.pending.range::<K, _>(first..).next()
            && is_meant(key)
        {
            let key = key.clone();
            state.pending.remove(&key);
        }
    }

    fn leader(
        self: &Arc<Self>,
        key: K,
        number: u64,
        tell: watch::Sender<LeaderState<T>>,
    ) -> Leader<K, T> {
        Leader {
            flights: self.clone(),
            key,
            number,
            has_shared: false,
            sender: tell,
        }
    }

    /// One more who leads `number`, if it is time for one; else when it is, unless nobody is to lead it any more.
    fn add_leader(
        self: &Arc<Self>,
        key: &K,
        number: u64,
        now: Instant,
    ) -> Result<Leader<K, T>, Option<Instant>> {
        let mut state = self.lock();
        let flight = state.pending.get_mut(key);
        let Some(flight) = flight.filter(|flight| flight.number == number) else {
            return Err(None);
        };
        let next = flight.since + self.coalesce_timeout;
        if now < next {
            return Err(Some(next));
        }
        flight.since = now;
        flight.leaders += 1;
        Ok(self.leader(key.clone(), number, flight.tell.clone()))
    }
}

impl<K: Ord, T> Leader<K, T> {
    /// Everyone may have `shared`: those who wait, and who comes before this is dropped.
    pub fn share(&mut self, shared: Arc<T>) {
        self.has_shared = true;
        self.sender.send_replace(LeaderState::Shared(shared));
    }

    /// The origin failed, and who has something kept does with that: those who wait now are told. Who comes from now on asks anew.
    pub fn fail(self, failure: Failure) {
        let mut state = self.flights.state.lock();
        if !matches!(*self.sender.borrow(), LeaderState::Waiting) {
            return; // another has brought something
        }
        let flight = state.pending.get(&self.key);
        if flight.is_some_and(|flight| flight.number == self.number) {
            // Before it is told: who boarded in between would be told at once, and board again.
            state.pending.remove(&self.key);
        }
        drop(state);
        self.sender.send_replace(LeaderState::Failed(failure));
    }

    /// Whether others lead beside this one.
    #[must_use]
    pub fn has_other_leaders(&self) -> bool {
        let state = self.flights.state.lock();
        let flight = state.pending.get(&self.key);
        flight.is_some_and(|flight| flight.number == self.number && flight.leaders > 1)
    }
}

impl<K: Ord + Clone, T> Leader<K, T> {
    /// The answer is one client's alone, and so will others be.
    pub fn mark_private(mut self, now: Instant) {
        let mut state = self.flights.lock();
        if matches!(*self.sender.borrow(), LeaderState::Shared(_)) {
            return; // another has brought what everyone may have
        }
        self.has_shared = true;
        state.private.insert_key(&self.key, now);
        drop(state);
        self.sender.send_replace(LeaderState::Private);
    }
}

impl<K: Ord, T> Drop for Leader<K, T> {
    fn drop(&mut self) {
        let mut state = self.flights.state.lock();
        let flight = state.pending.get_mut(&self.key);
        let Some(flight) = flight.filter(|flight| flight.number == self.number) else {
            return;
        };
        flight.leaders -= 1;
        // Those who follow have what one of them brought, whatever comes of the others.
        if self.has_shared || flight.leaders == 0 {
            state.pending.remove(&self.key);
        }
    }
}

impl<K: Ord + Clone, T> Follower<K, T> {
    /// Waits for what leaders share, at most to `until`.
    pub async fn wait(mut self, runtime: &SharedRuntime, until: Instant) -> WaitOutcome<K, T> {
        // When he who leads alone is left to himself.
        let mut patience = None;
        loop {
            match &*self.told.borrow_and_update() {
                LeaderState::Shared(shared) => return WaitOutcome::Shared(shared.clone()),
                LeaderState::Private => return WaitOutcome::Private,
                LeaderState::Failed(failure) => return WaitOutcome::Failed(*failure),
                LeaderState::Waiting => {}
            }
            let now = runtime.now();
            if until <= now {
                return WaitOutcome::TimedOut;
            }
            let next = match self.flights.add_leader(&self.key, self.number, now) {
                Ok(leader) => return WaitOutcome::Promoted(leader),
                Err(Some(next)) => next.min(until),
                Err(None) => {
                    let patience = *patience.get_or_insert(now + self.flights.coalesce_timeout);
                    if patience <= now {
                        return WaitOutcome::LeaderGone;
                    }
                    patience.min(until)
                }
            };
            let told = pin!(self.told.changed());
            if let Either::Left((Err(_), _)) = select(told, runtime.sleep_until(next)).await {
                return WaitOutcome::LeaderGone;
            }
        }
    }
}
