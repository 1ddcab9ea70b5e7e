//! Timers: the queue that makes the clock jump.
//!
//! Two timers for the same instant fire in the order in which they were set.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
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

/// Identifies one timer: its time, its sequence number and its slot.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct TimerKey(pub(crate) Instant, u64, usize);

/// All timers, the next one first.
///
/// Timers are cancelled far more often than they fire (a session's idle timeout moves with every frame), and a cancelled timer must not
/// extend the run. So the key of a cancelled timer stays in the heap only until it is the first one, or until most keys are cancelled.
#[derive(Default)]
pub(crate) struct Timers {
    /// The first one is never cancelled.
    keys: BinaryHeap<Reverse<TimerKey>>,
    /// Sequence number and action of each live timer, by slot.
    slots: Vec<Option<(u64, Action)>>,
    free_slots: Vec<usize>,
    /// Cancelled timers in `keys`.
    cancelled: usize,
    sequence: u64,
}

/// Cancelled timers that may stay in the heap, however few others there are.
const MIN_CANCELLED: usize = 64;

impl Timers {
    pub(crate) fn insert(&mut self, at: Instant, action: Action) -> TimerKey {
        self.sequence += 1;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some((self.sequence, action));
        let key = TimerKey(at, self.sequence, slot);
        self.keys.push(Reverse(key));
        key
    }

    /// Removes a timer; `None` if it has already fired.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Action> {
        let action = self.take(key)?;
        self.cancelled += 1;
        if self.cancelled > self.keys.len() / 2 + MIN_CANCELLED {
            let slots = &self.slots;
            self.keys.retain(|Reverse(key)| is_live(slots, *key));
            self.cancelled = 0;
        }
        self.drop_cancelled_first();
        Some(action)
    }

    pub(crate) fn get_mut(&mut self, key: TimerKey) -> Option<&mut Action> {
        match &mut self.slots[key.2] {
            Some((sequence, action)) if *sequence == key.1 => Some(action),
            _ => None,
        }
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.keys.peek().map(|Reverse(key)| key.0)
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Action)> {
        let Reverse(key) = self.keys.pop()?;
        let action = self.take(key).expect("the first timer is live");
        self.drop_cancelled_first();
        Some((key.0, action))
    }

    /// Removes the next timer if it is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Action> {
        self.next_at().filter(|at| *at <= now)?;
        self.pop().map(|(_, action)| action)
    }

    /// Removes all, the next one first.
    pub(crate) fn clear(&mut self) -> Vec<Action> {
        std::iter::from_fn(|| self.pop())
            .map(|(_, action)| action)
            .collect()
    }

    /// Takes the action of `key` out of its slot.
    fn take(&mut self, key: TimerKey) -> Option<Action> {
        let slot = &mut self.slots[key.2];
        let (_, action) = slot.take_if(|(sequence, _)| *sequence == key.1)?;
        self.free_slots.push(key.2);
        Some(action)
    }

    fn drop_cancelled_first(&mut self) {
        while let Some(Reverse(key)) = self.keys.peek()
            && !is_live(&self.slots, *key)
        {
            self.keys.pop();
            self.cancelled -= 1;
        }
    }
}

fn is_live(slots: &[Option<(u64, Action)>], key: TimerKey) -> bool {
    matches!(&slots[key.2], Some((sequence, _)) if *sequence == key.1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    fn wake() -> Action {
        Action::Wake(Waker::noop().clone())
    }

    /// Inserts, cancels and takes timers in an order that looks random, beside a sorted map.
    #[test]
    fn timers_leave_in_order_of_time_and_sequence_without_the_cancelled_ones() {
        let (mut timers, mut expected) = (Timers::default(), BTreeMap::new());
        let mut keys = Vec::new();
        let mut random = 1_u64;
        for step in 0..100_000_u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let chosen = (random >> 33) as usize;
            match chosen % 8 {
                0..4 => {
                    let at = Instant::ZERO + Duration::from_nanos((chosen / 8 % 50) as u64 + step);
                    let key = timers.insert(at, wake());
                    expected.insert((at, key.1), key);
                    keys.push(key);
                }
                4..7 if !keys.is_empty() => {
                    let key = keys.swap_remove(chosen / 8 % keys.len());
                    let is_live = expected.remove(&(key.0, key.1)).is_some();
                    assert_eq!(timers.get_mut(key).is_some(), is_live);
                    assert_eq!(timers.remove(key).is_some(), is_live);
                }
                _ => {
                    let next = expected.pop_first().map(|((at, _), _)| at);
                    assert_eq!(timers.pop().map(|(at, _)| at), next);
                }
            }
            let next = expected.first_key_value().map(|(key, _)| key.0);
            assert_eq!(timers.next_at(), next, "step {step}");
            assert!(timers.keys.len() <= 2 * expected.len() + 2 * MIN_CANCELLED + 2);
        }
        assert_eq!(timers.clear().len(), expected.len());
        assert_eq!(timers.next_at(), None);
    }
}
