//! What is remembered of former prefetches, until a purge: useless ones, and resources that are stored.

use crate::cache::purge_log::PurgeObserver;
use crate::prefetch::backoff::PrefetchBackoff;
use crate::prefetch::recent_lookups::RecentLookups;

/// Former prefetches. The cache clears it when something is purged.
#[derive(Debug)]
pub(crate) struct PrefetchHistory {
    pub(crate) backoff: PrefetchBackoff,
    pub(crate) recent_lookups: RecentLookups,
}

impl PrefetchHistory {
    pub(crate) fn new() -> Self {
        Self {
            backoff: PrefetchBackoff::new(),
            recent_lookups: RecentLookups::new(),
        }
    }
}

impl PurgeObserver for PrefetchHistory {
    fn forget_prefix(&self, prefix: &[u8]) {
        self.backoff.purge(prefix);
    }

    fn forget_stored(&self) {
        self.recent_lookups.clear();
    }
}
