//! Timers: the queue that makes the clock jump.
//!
//! Two timers for the same instant fire in the order in which they were set.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

use spdy_clock::Instant;

/// Handles a timer without being a task: the network.
pub(crate) trait TimerTarget: Send + Sync {
    /// The timer with `token` has fired.
    fn fire(self: Arc<Self>, now: Instant, token: u64);
}

/// The action of a timer.
pub(crate) enum Action {
    /// Wakes a task.
    Wake(Waker),
    /// Calls the network.
    Fire(Arc<dyn TimerTarget>, u64),
}

/// Identifies one timer: its time and its sequence number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TimerKey(pub(crate) Instant, u64);

/// All timers, the next one first.
///
/// A sorted map and not a binary heap: timers are cancelled far more often than they fire (a session's idle timeout moves with every
/// frame), and a cancelled timer must not extend the run.
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

    /// Removes a timer; `None` if it has already fired.
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

    /// Removes the next timer if it calls the network and is due at `now`.
    pub(crate) fn pop_fire_due(&mut self, now: Instant) -> Option<(Arc<dyn TimerTarget>, u64)> {
        let next = self.pending.first_entry()?;
        if next.key().0 > now || matches!(next.get(), Action::Wake(_)) {
            return None;
        }
        match next.remove() {
            Action::Fire(target, token) => Some((target, token)),
            Action::Wake(_) => unreachable!("checked above"),
        }
    }

    pub(crate) fn clear(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.pending).into_values().collect()
    }
}
