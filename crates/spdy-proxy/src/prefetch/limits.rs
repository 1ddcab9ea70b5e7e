//! How much is fetched ahead: for one thing that a client asked for with all that it leads to, and for all clients at once.
//!
//! A page names sheets, and each of these names more: without a sum over all of it one request would have an origin asked for
//! the product of what each may name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::learn::LearnConfig;

/// What may still be fetched ahead for one thing that a client asked for. Clones spend together.
#[derive(Clone, Debug)]
pub(crate) struct PrefetchBudget(Arc<AtomicUsize>);

impl PrefetchBudget {
    /// So many things.
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

/// Where something stands that is fetched before it is asked for.
#[derive(Clone, Debug)]
pub(crate) struct PrefetchStep {
    /// How many things led to it that were fetched so, itself among them.
    pub(crate) depth: u8,
    /// Of what a client asked for, which all began with.
    pub(crate) budget: PrefetchBudget,
    /// Its place among all that are on their way at once; free when nobody has it any more.
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

    /// For something that a client asked for.
    pub(crate) fn budget(&self) -> PrefetchBudget {
        PrefetchBudget::new(self.per_page)
    }

    /// A place for one more, if there is one.
    pub(crate) fn try_acquire(&self) -> Option<Arc<OwnedSemaphorePermit>> {
        self.permits.clone().try_acquire_owned().ok().map(Arc::new)
    }
}
