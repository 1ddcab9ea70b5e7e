//! What is to happen later: the heap that makes the clock jump.
//!
//! Two timers for the same instant fire in the order in which they were set, so the order never
//! depends on how a heap breaks ties.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use spdy_clock::Instant;

/// Something that acts when its time comes, without being a task: the network.
pub(crate) trait TimerTarget: Send + Sync {
    /// The timer that was set with `token` has fired.
    fn fire(self: Arc<Self>, now: Instant, token: u64);
}

/// What a timer does.
pub(crate) enum Action {
    /// Wakes a task.
    Wake(Waker),
    /// Calls the network.
    Fire(Arc<dyn TimerTarget>, u64),
}

/// Names one timer: when, and the how-manieth.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TimerKey(pub(crate) Instant, u64);

/// All timers, the next one first.
///
/// A sorted map and not a binary heap: sleepers are cancelled far more often than they fire (a session's
/// idle time-out moves with every frame), and a cancelled timer must not stretch the run.
#[derive(Default)]
pub(crate) struct Timers {
    pending: BTreeMap<TimerKey, Action>,
    sequence: u64,
}

impl Timers {
    pub(crate) fn insert(&mut self, at: Instant, action: Action) -> TimerKey {
        self.sequence += 1;
        let key = TimerKey(at, self.sequence);
        self.pending.insert(key, action);
        key
    }

    /// Takes a timer out; `None` if it went off already.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Action> {
        self.pending.remove(&key)
    }

    pub(crate) fn get_mut(&mut self, key: TimerKey) -> Option<&mut Action> {
        self.pending.get_mut(&key)
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|(key, _)| key.0)
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Action)> {
        self.pending
            .pop_first()
            .map(|(key, action)| (key.0, action))
    }

    pub(crate) fn clear(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.pending).into_values().collect()
    }
}
