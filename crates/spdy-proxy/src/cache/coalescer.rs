//! Coalesces concurrent requests for the same key into one fetch.
//!
//! ```text
//! first  --Leader--> origin       head: shareable ----------share---> followers read the same body, until it is in the cache
//!                                       for one client ----private--> each follower contacts the origin
//!                                       the origin fails ----fail---> each follower gets its stale response, or joins again
//! later  --Follower--> waits            the leader ends ----drop----> one follower becomes the leader, the others wait for it
//!                        | after each `lock_age`
//!                        '---> one follower becomes a second leader: the first response serves all
//! ```
//!
//! A purge detaches a pending fetch: a request that comes after the purge does not join it. A follower from before the purge keeps waiting,
//! and joins again if nothing comes within `lock_age`.
//!
//! A key whose response was for one client only is remembered for a while. Requests for it do not wait for a leader that could share
//! nothing.

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

/// How long a key is remembered after its response was for one client only.
const PRIVATE_TTL: Duration = Duration::from_secs(10);
/// Maximum number of keys that are remembered this way.
const MAX_PRIVATE_KEYS: usize = 4096;

/// All pending fetches. `K` is the key of a request, `T` the response that a leader shares.
#[derive(Debug)]
pub struct Coalescer<K, T> {
    state: Mutex<State<K, T>>,
    /// How long followers wait for the latest leader before one of them leads too.
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
    /// When the latest leader began.
    since: Instant,
    sender: watch::Sender<LeaderState<T>>,
}

#[derive(Debug)]
enum LeaderState<T> {
    Waiting,
    Shared(Arc<T>),
    Private,
    Failed(Failure),
}

/// Fetches a key. While it lives, later requests follow it.
#[derive(Debug)]
pub struct Leader<K: Ord, T> {
    coalescer: Arc<Coalescer<K, T>>,
    key: K,
    number: u64,
    has_shared: bool,
    sender: watch::Sender<LeaderState<T>>,
}

/// Waits for a leader.
#[derive(Debug)]
pub struct Follower<K, T> {
    coalescer: Arc<Coalescer<K, T>>,
    key: K,
    number: u64,
    receiver: watch::Receiver<LeaderState<T>>,
}

/// What a request for a key does.
#[derive(Debug)]
pub enum CoalesceRole<K: Ord, T> {
    /// Fetch it, and share it if that is allowed.
    Leader(Leader<K, T>),
    /// Wait.
    Follower(Follower<K, T>),
    /// Fetch it without sharing: its last response was for one client only.
    Independent,
}

/// The result of waiting for a leader.
#[derive(Debug)]
pub enum WaitOutcome<K: Ord, T> {
    /// This is shared.
    Shared(Arc<T>),
    /// Fetch it without sharing: the response is for one client only.
    Private,
    /// No leader is left: join again.
    LeaderEnded,
    /// The origin failed: serve a stale stored response if that is allowed, or join again.
    Failed(Failure),
    /// Fetch it concurrently with a slow leader, and share it.
    Promoted(Leader<K, T>),
    /// The deadline has passed.
    TimedOut,
}

impl<K: Ord + Clone, T> Coalescer<K, T> {
    /// Without pending fetches. While a fetch has no response, one more follower becomes a leader each `lock_age`.
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

    /// Joins the pending fetch of `key`, or becomes its leader.
    pub fn join(self: &Arc<Self>, key: K, now: Instant) -> CoalesceRole<K, T> {
        let mut state = self.lock();
        if state.private.has(&key, now) {
            return CoalesceRole::Independent;
        }
        if let Some(fetch) = state.pending.get(&key) {
            return CoalesceRole::Follower(Follower {
                coalescer: self.clone(),
                number: fetch.number,
                receiver: fetch.sender.subscribe(),
                key,
            });
        }
        let sender = watch::Sender::new(LeaderState::Waiting);
        let number = state.next;
        state.next += 1;
        let fetch = PendingFetch {
            number,
            leaders: 1,
            since: now,
            sender: sender.clone(),
        };
        state.pending.insert(key.clone(), fetch);
        CoalesceRole::Leader(self.leader(key, number, sender))
    }

    /// The response that is shared for `key` now.
    pub fn shared_response(&self, key: &K) -> Option<Arc<T>> {
        let state = self.lock();
        match &*state.pending.get(key)?.sender.borrow() {
            LeaderState::Shared(response) => Some(response.clone()),
            LeaderState::Waiting | LeaderState::Private | LeaderState::Failed(_) => None,
        }
    }

    /// Removes the pending fetch that shared `shared`, which does not serve requests that come now. The next request leads another fetch.
    /// Current readers are not affected.
    pub fn supersede(&self, key: &K, shared: &Arc<T>) {
        let mut state = self.lock();
        let is_current = state.pending.get(key).is_some_and(
            |fetch| matches!(&*fetch.sender.borrow(), LeaderState::Shared(response) if Arc::ptr_eq(response, shared)),
        );
        if is_current {
            state.pending.remove(key);
        }
    }

    /// Detaches the pending fetches from `first` on, in key order, up to the first key for which `is_meant` is false. Later requests start
    /// a new fetch. Current followers keep waiting.
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
        sender: watch::Sender<LeaderState<T>>,
    ) -> Leader<K, T> {
        Leader {
            coalescer: self.clone(),
            key,
            number,
            has_shared: false,
            sender,
        }
    }

    /// Adds a leader to fetch `number` if it is time for one. Otherwise the error is the time for the next leader, or `None` if the fetch
    /// is no longer pending.
    fn add_leader(
        self: &Arc<Self>,
        key: &K,
        number: u64,
        now: Instant,
    ) -> Result<Leader<K, T>, Option<Instant>> {
        let mut state = self.lock();
        let fetch = state.pending.get_mut(key);
        let Some(fetch) = fetch.filter(|fetch| fetch.number == number) else {
            return Err(None);
        };
        let next = fetch.since + self.coalesce_timeout;
        if now < next {
            return Err(Some(next));
        }
        fetch.since = now;
        fetch.leaders += 1;
        Ok(self.leader(key.clone(), number, fetch.sender.clone()))
    }
}

impl<K: Ord, T> Leader<K, T> {
    /// Shares `shared` with all followers, and with requests that join before this leader is dropped.
    pub fn share(&mut self, shared: Arc<T>) {
        self.has_shared = true;
        self.sender.send_replace(LeaderState::Shared(shared));
    }

    /// Reports to current followers that the origin failed. Later requests start a new fetch.
    pub fn fail(self, failure: Failure) {
        let mut state = self.coalescer.state.lock();
        if !matches!(*self.sender.borrow(), LeaderState::Waiting) {
            return; // another leader has a response
        }
        let fetch = state.pending.get(&self.key);
        if fetch.is_some_and(|fetch| fetch.number == self.number) {
            // Before the report: a request that joined in between would get the report at once, and join again.
            state.pending.remove(&self.key);
        }
        drop(state);
        self.sender.send_replace(LeaderState::Failed(failure));
    }

    /// Whether this fetch has other leaders.
    #[must_use]
    pub fn has_other_leaders(&self) -> bool {
        let state = self.coalescer.state.lock();
        let fetch = state.pending.get(&self.key);
        fetch.is_some_and(|fetch| fetch.number == self.number && fetch.leaders > 1)
    }
}

impl<K: Ord + Clone, T> Leader<K, T> {
    /// Marks the response as one client's only, and remembers that for later requests.
    pub fn mark_private(mut self, now: Instant) {
        let mut state = self.coalescer.lock();
        if matches!(*self.sender.borrow(), LeaderState::Shared(_)) {
            return; // another leader has shared a response
        }
        self.has_shared = true;
        state.private.insert_key(&self.key, now);
        drop(state);
        self.sender.send_replace(LeaderState::Private);
    }
}

impl<K: Ord, T> Drop for Leader<K, T> {
    fn drop(&mut self) {
        let mut state = self.coalescer.state.lock();
        let fetch = state.pending.get_mut(&self.key);
        let Some(fetch) = fetch.filter(|fetch| fetch.number == self.number) else {
            return;
        };
        fetch.leaders -= 1;
        // Followers have the response of one leader, so the results of the other leaders do not matter.
        if self.has_shared || fetch.leaders == 0 {
            state.pending.remove(&self.key);
        }
    }
}

impl<K: Ord + Clone, T> Follower<K, T> {
    /// Waits for what leaders share, at most to `until`.
    pub async fn wait(mut self, runtime: &SharedRuntime, until: Instant) -> WaitOutcome<K, T> {
        // When to stop waiting for a fetch that is no longer pending.
        let mut give_up_at = None;
        loop {
            match &*self.receiver.borrow_and_update() {
                LeaderState::Shared(shared) => return WaitOutcome::Shared(shared.clone()),
                LeaderState::Private => return WaitOutcome::Private,
                LeaderState::Failed(failure) => return WaitOutcome::Failed(*failure),
                LeaderState::Waiting => {}
            }
            let now = runtime.now();
            if until <= now {
                return WaitOutcome::TimedOut;
            }
            let next = match self.coalescer.add_leader(&self.key, self.number, now) {
                Ok(leader) => return WaitOutcome::Promoted(leader),
                Err(Some(next)) => next.min(until),
                Err(None) => {
                    let give_up_at =
                        *give_up_at.get_or_insert(now + self.coalescer.coalesce_timeout);
                    if give_up_at <= now {
                        return WaitOutcome::LeaderEnded;
                    }
                    give_up_at.min(until)
                }
            };
            let change = pin!(self.receiver.changed());
            if let Either::Left((Err(_), _)) = select(change, runtime.sleep_until(next)).await {
                return WaitOutcome::LeaderEnded;
            }
        }
    }
}
