//! Limits for prefetching: for one client request with all that it leads to, and for all clients at once.
//!
//! A page names sheets, and each of these names more. Without a limit for the total, one request could cause as many fetches as the product
//! of what each may name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::learn::LearnConfig;

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
        let one_less = |left: usize| left.checked_sub(1);
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

/// The limits of it.
#[derive(Debug)]
pub(crate) struct PrefetchLimits {
    per_page: usize,
    permits: Arc<Semaphore>,
}

impl PrefetchLimits {
    pub(crate) fn new(config: &LearnConfig) -> Self {
        Self {
            per_page: config.prefetch_per_page,
            permits: Arc::new(Semaphore::new(config.prefetches)),
        }
    }

    /// For one client request.
    pub(crate) fn budget(&self) -> PrefetchBudget {
        PrefetchBudget::new(self.per_page)
    }

    /// A permit for one more prefetch, if there is one.
    pub(crate) fn try_acquire(&self) -> Option<Arc<OwnedSemaphorePermit>> {
        self.permits.clone().try_acquire_owned().ok().map(Arc::new)
    }
}
