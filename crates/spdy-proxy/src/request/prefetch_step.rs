//! The relation of a prefetch to the client request that caused it: its depth, and how many prefetches are left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::OwnedSemaphorePermit;

/// The number of prefetches left for one client request. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct PrefetchBudget(Arc<AtomicUsize>);

impl PrefetchBudget {
    /// A budget of this many prefetches.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(most)))
    }

    /// Takes one; `false` if none is left.
    pub(crate) fn take(&self) -> bool {
        let one_less = |remaining: usize| remaining.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_update(set, fetch, one_less).is_ok()
    }
}

/// The position of a prefetched resource.
#[derive(Clone, Debug)]
pub(crate) struct PrefetchStep {
    /// The number of prefetches that led to it, including itself.
    pub(crate) depth: u8,
    /// Of the client request that began it.
    pub(crate) budget: PrefetchBudget,
    /// Its permit among all prefetches in flight; released when the last clone is dropped.
    pub(crate) _permit: Arc<OwnedSemaphorePermit>,
}
