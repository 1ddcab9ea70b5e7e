//! Remembers the last purges, so that a fetch that began before one of them does not store again what it removed.

use std::collections::VecDeque;

use parking_lot::{Mutex, MutexGuard};
use spdy_cache::key::Key;
use spdy_cache::shared_tier::PurgeVersion;

/// Purges that are remembered. A response is not stored if its fetch began before all of them.
const MAX_PURGES: usize = 1024;

/// The state of purges when a fetch begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PurgeSnapshot {
    /// The count of purges in this process.
    pub(crate) purges: u64,
    /// The purge version of the shared tier.
    pub(crate) mark: PurgeVersion,
}

/// Remembers something that depends on stored responses, and forgets it when they are purged.
pub(crate) trait PurgeObserver: std::fmt::Debug + Send + Sync {
    /// Keys that begin with `prefix` are purged.
    fn forget_prefix(&self, prefix: &[u8]);

    /// Objects were purged that were in memory.
    fn forget_stored(&self);
}

/// The last purges: a fetch that began before one of them must not store again what it removed.
#[derive(Debug, Default)]
pub(crate) struct PurgeLog(Mutex<PurgeLogState>);

#[derive(Debug, Default)]
struct PurgeLogState {
    /// All purges so far.
    count: u64,
    /// For each recent purge: the prefix of its keys, or of the keys that can have its tag.
    last: VecDeque<Vec<u8>>,
}

impl PurgeLog {
    /// The count of purges so far.
    pub(crate) fn now(&self) -> u64 {
        self.lock().count
    }

    /// Whether a purge after count `since` matched `key`, or may have.
    pub(crate) fn purged_since(&self, key: &Key, since: u64) -> bool {
        let log = self.lock();
        let passed = usize::try_from(log.count - since).unwrap_or(usize::MAX);
        if passed > log.last.len() {
            return true;
        }
        let mut last = log.last.iter().rev().take(passed);
        last.any(|prefix| key.as_bytes().starts_with(prefix))
    }

    pub(crate) fn record(&self, prefix: Vec<u8>) {
        let mut log = self.lock();
        log.count += 1;
        log.last.push_back(prefix);
        if log.last.len() > MAX_PURGES {
            log.last.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, PurgeLogState> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use spdy_cache::purge_tags::PurgeTag;

    use super::*;
    use crate::request::test_key::key;

    #[test]
    fn response_purged_during_fetch_is_not_stored() {
        let purges = PurgeLog::default();
        let before = purges.now();
        assert!(!purges.purged_since(&key("/a"), before));
        let prefix = key("/a").as_bytes()[..20].to_vec();
        purges.record(prefix);
        assert!(purges.purged_since(&key("/a"), before));
        let after = purges.now();
        assert!(!purges.purged_since(&key("/a"), after), "it began later");
        purges.record(b"https://other.test".to_vec());
        assert!(!purges.purged_since(&key("/a"), after), "another site's");
        let group = b"any".to_vec();
        let tag = PurgeTag::Origin {
            origin: key("/a").origin().to_vec(),
            group,
        };
        purges.record(tag.prefix());
        assert!(
            purges.purged_since(&key("/a"), after),
            "all of its origin may have it"
        );
        let late = purges.now();
        for _ in 0..=MAX_PURGES {
            purges.record(b"https://other.test".to_vec());
        }
        assert!(
            purges.purged_since(&key("/a"), late),
            "more than are remembered"
        );
        assert!(!purges.purged_since(&key("/a"), late + 1));
    }
}
