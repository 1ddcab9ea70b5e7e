//! The latest PRIORITY_UPDATE of each request stream (RFC 9218 §7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use parking_lot::{Mutex, MutexGuard};
use spdy_net_core::priority::HttpPriority;

/// Limit of priorities stored for streams that have not begun. Above it, those of the last streams are dropped.
const MAX_EARLY_PRIORITIES: usize = 256;
/// IDs of request streams increase by four (RFC 9000 §2.1).
pub(crate) const NEXT_STREAM: u64 = 4;

/// The priorities in PRIORITY_UPDATE frames. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct PriorityUpdates(Arc<Mutex<PriorityState>>);

#[derive(Default)]
struct PriorityState {
    /// Streams from this one on have not begun.
    next: u64,
    updates: BTreeMap<u64, HttpPriority>,
    /// The waker of each open stream's task.
    open: BTreeMap<u64, Waker>,
}

impl PriorityUpdates {
    fn lock(&self) -> MutexGuard<'_, PriorityState> {
        self.0.lock()
    }

    pub(crate) fn update(&self, id: u64, precedence: HttpPriority) {
        let mut state = self.lock();
        match state.open.get(&id) {
            Some(waker) => waker.wake_by_ref(),
            None if id < state.next => return, // the stream has ended
            None => {}
        }
        state.updates.insert(id, precedence);
        if state.updates.range(state.next..).count() > MAX_EARLY_PRIORITIES {
            state.updates.pop_last(); // the last stream needs it last
        }
    }

    pub(crate) fn begin(&self, id: u64) {
        let mut state = self.lock();
        state.next = id + NEXT_STREAM;
        state.open.insert(id, Waker::noop().clone());
    }

    pub(crate) fn of(&self, id: u64) -> Option<HttpPriority> {
        self.lock().updates.get(&id).copied()
    }

    /// Returns the priority, and wakes the task of `cx` when it changes.
    pub(crate) fn poll_of(&self, id: u64, cx: &mut Context<'_>) -> Option<HttpPriority> {
        let mut state = self.lock();
        if let Some(waker) = state.open.get_mut(&id) {
            waker.clone_from(cx.waker());
        }
        state.updates.get(&id).copied()
    }

    pub(crate) fn forget(&self, id: u64) {
        let mut state = self.lock();
        state.updates.remove(&id);
        state.open.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct WakeFlag(AtomicBool);

    impl Wake for WakeFlag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    const URGENT: HttpPriority = HttpPriority {
        urgency: 1,
        incremental: false,
    };

    #[test]
    fn of_too_many_early_priorities_the_last_streams_are_dropped() {
        let priorities = PriorityUpdates::default();
        let last = MAX_EARLY_PRIORITIES as u64 * NEXT_STREAM;
        let ids = (0..=MAX_EARLY_PRIORITIES as u64).map(|nth| nth * NEXT_STREAM);
        ids.rev().for_each(|id| priorities.update(id, URGENT));
        assert_eq!(priorities.of(last), None);
        assert_eq!(priorities.of(0), Some(URGENT));
        assert_eq!(priorities.lock().updates.len(), MAX_EARLY_PRIORITIES);
    }

    #[test]
    fn priority_updates_reach_open_streams_only() {
        let priorities = PriorityUpdates::default();
        priorities.begin(0);
        let heard = Arc::new(WakeFlag::default());
        let waker = Waker::from(heard.clone());
        assert_eq!(
            priorities.poll_of(0, &mut Context::from_waker(&waker)),
            None
        );
        priorities.update(0, URGENT);
        assert!(heard.0.load(Ordering::Relaxed));
        assert_eq!(priorities.of(0), Some(URGENT));
        priorities.forget(0);
        priorities.update(0, URGENT);
        assert_eq!(priorities.of(0), None);
        assert!(priorities.lock().updates.is_empty());
    }
}
