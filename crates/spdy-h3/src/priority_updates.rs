//! The latest PRIORITY_UPDATE of each request's stream (RFC 9218 §7).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use parking_lot::{Mutex, MutexGuard};
use spdy_net_core::priority::HttpPriority;

/// Priorities that are told before the streams they are for; past it those of the last streams go.
const MAX_EARLY_PRIORITIES: usize = 256;
/// Streams of requests count in fours (RFC 9000 §2.1).
pub(crate) const NEXT_STREAM: u64 = 4;

/// What PRIORITY_UPDATE said. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct PriorityUpdates(Arc<Mutex<PriorityState>>);

#[derive(Default)]
struct PriorityState {
    /// Streams from this one on have not begun.
    next: u64,
    updates: BTreeMap<u64, HttpPriority>,
    /// Who is to hear of it, by stream, from its beginning to its end.
    open: BTreeMap<u64, Waker>,
}

impl PriorityUpdates {
    fn lock(&self) -> MutexGuard<'_, PriorityState> {
        self.0.lock()
    }

    pub(crate) fn update(&self, id: u64, precedence: HttpPriority) {
        let mut told = self.lock();
        match told.open.get(&id) {
            Some(waker) => waker.wake_by_ref(),
            None if id < told.next => return, // it is over
            None => {}
        }
        told.updates.insert(id, precedence);
        if told.updates.range(told.next..).count() > MAX_EARLY_PRIORITIES {
            told.updates.pop_last(); // it will be wanted last
        }
    }

    pub(crate) fn begin(&self, id: u64) {
        let mut told = self.lock();
        told.next = id + NEXT_STREAM;
        told.open.insert(id, Waker::noop().clone());
    }

    pub(crate) fn of(&self, id: u64) -> Option<HttpPriority> {
        self.lock().updates.get(&id).copied()
    }

    /// The same, and wakes when there is another.
    pub(crate) fn poll_of(&self, id: u64, cx: &mut Context<'_>) -> Option<HttpPriority> {
        let mut told = self.lock();
        if let Some(waker) = told.open.get_mut(&id) {
            waker.clone_from(cx.waker());
        }
        told.updates.get(&id).copied()
    }

    pub(crate) fn forget(&self, id: u64) {
        let mut told = self.lock();
        told.updates.remove(&id);
        told.open.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Heard(AtomicBool);

    impl Wake for Heard {
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
        let heard = Arc::new(Heard::default());
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
