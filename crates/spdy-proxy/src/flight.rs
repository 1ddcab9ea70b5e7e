//! One fetch for all who want the same at the same time.
//!
//! ```text
//! first  --Leader--> origin          head: everyone may have it --land--> later ones read along, until it is in the cache
//! later  --Follower--> waits -----------'        or not         --drop--> each asks for himself
//! ```
//!
//! What turned out to be nobody else's is remembered for a while: then nobody waits for a leader who will have nothing to give.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use tokio::sync::watch;

use crate::remembered::Remembered;

/// How long somebody waits for another's head before he asks himself.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is remembered that an answer was one client's alone.
const PRIVATE_FOR: Duration = Duration::from_secs(10);
/// Keys of which that is remembered.
const PRIVATE_KEYS: usize = 4096;

/// All flights. `K` is what is asked for, `T` what a leader has to share.
#[derive(Debug)]
pub struct Flights<K, T> {
    state: Mutex<State<K, T>>,
}

#[derive(Debug)]
struct State<K, T> {
    under_way: BTreeMap<K, Flight<T>>,
    private: Remembered<K>,
    next: u64,
}

#[derive(Debug)]
struct Flight<T> {
    number: u64,
    told: watch::Receiver<Told<T>>,
}

#[derive(Debug)]
enum Told<T> {
    Nothing,
    Shared(Arc<T>),
}

/// Who fetches. While it lives, others follow.
#[derive(Debug)]
pub struct Leader<K: Ord, T> {
    flights: Arc<Flights<K, T>>,
    key: K,
    number: u64,
    tell: watch::Sender<Told<T>>,
}

/// Who waits for a leader.
#[derive(Debug)]
pub struct Follower<T> {
    told: watch::Receiver<Told<T>>,
}

/// What somebody who wants a thing is to do.
#[derive(Debug)]
pub enum Seat<K: Ord, T> {
    /// Fetch it, and share it if that is allowed.
    Leader(Leader<K, T>),
    /// Wait.
    Follower(Follower<T>),
    /// Fetch it alone: it was somebody's own the last time.
    Alone,
}

impl<K: Ord + Clone, T> Flights<K, T> {
    /// None yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let state = State {
            under_way: BTreeMap::new(),
            private: Remembered::new(PRIVATE_FOR, PRIVATE_KEYS),
            next: 0,
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody wants `key`.
    pub fn board(self: &Arc<Self>, key: K, now: Instant) -> Seat<K, T> {
        let mut state = self.lock();
        if state.private.has(&key, now) {
            return Seat::Alone;
        }
        if let Some(flight) = state.under_way.get(&key) {
            return Seat::Follower(Follower {
                told: flight.told.clone(),
            });
        }
        let (tell, told) = watch::channel(Told::Nothing);
        let number = state.next;
        state.next += 1;
        state.under_way.insert(key.clone(), Flight { number, told });
        Seat::Leader(Leader {
            flights: self.clone(),
            key,
            number,
            tell,
        })
    }
}

impl<K: Ord, T> Leader<K, T> {
    /// Everyone may have `shared`: those who wait, and who comes before this is dropped.
    pub fn land(&mut self, shared: Arc<T>) {
        self.tell.send_replace(Told::Shared(shared));
    }
}

impl<K: Ord + Clone, T> Leader<K, T> {
    /// The answer is one client's alone, and so will others be.
    pub fn private(self, now: Instant) {
        let mut state = self.flights.lock();
        state.private.note(&self.key, now);
    }
}

impl<K: Ord, T> Drop for Leader<K, T> {
    fn drop(&mut self) {
        let state = self.flights.state.lock();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let is_mine = state.under_way.get(&self.key);
        if is_mine.is_some_and(|flight| flight.number == self.number) {
            state.under_way.remove(&self.key);
        }
    }
}

impl<T> Follower<T> {
    /// What the leader shares; `None` if it has nothing to share, or takes too long.
    pub async fn wait(mut self, runtime: &SharedRuntime) -> Option<Arc<T>> {
        let told = Box::pin(async move {
            loop {
                if let Told::Shared(shared) = &*self.told.borrow_and_update() {
                    return Some(shared.clone());
                }
                self.told.changed().await.ok()?;
            }
        });
        let patience = runtime.sleep_until(runtime.now() + PATIENCE);
        match select(told, patience).await {
            Either::Left((shared, _)) => shared,
            Either::Right(_) => None,
        }
    }
}
