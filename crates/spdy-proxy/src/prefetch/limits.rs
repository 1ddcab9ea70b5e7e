//! Limits for prefetching: for one client request with all that it leads to, and for all clients at once.
//!
//! A page references sheets, and each of these references more. Without a limit for the total, the number of fetches of one request could be
//! the product of the numbers of references.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::learn::LearnConfig;
use crate::request::prefetch_step::PrefetchBudget;

/// The limits of prefetching.
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

    /// The budget of one client request.
    pub(crate) fn budget(&self) -> PrefetchBudget {
        PrefetchBudget::new(self.per_page)
    }

    /// A permit for one more prefetch, if there is one.
    pub(crate) fn try_acquire(&self) -> Option<Arc<OwnedSemaphorePermit>> {
        self.permits.clone().try_acquire_owned().ok().map(Arc::new)
    }
}
