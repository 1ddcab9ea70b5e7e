//! Limits for prefetching: for one client request with all that it leads to, and for all clients at once.
//!
//! A page names sheets, and each of these names more. Without a limit for the total, one request could cause as many fetches as the product
//! of what each may name.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::learn::LearnConfig;
use crate::request::prefetch_step::PrefetchBudget;

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
