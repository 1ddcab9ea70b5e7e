//! Remembers prefetches that were useless. They are not repeated for a while, so the cost of fetching a resource twice is paid once.
//!
//! A response that may not be stored, or that is stale on arrival, is likely the same an hour later. A failed one may work again soon. A
//! lack of room says nothing about the resource.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::key::Key;
use spdy_clock::Instant;

use crate::expiring_map::ExpiringMap;
use crate::fetch::delivery::PrefetchResult;

/// How long a useless prefetch is remembered.
const NOT_REUSABLE_BACKOFF: Duration = Duration::from_secs(60 * 60);
/// And that it failed.
const FAILURE_BACKOFF: Duration = Duration::from_secs(10);
/// The number of resources in either table.
const MAX_BACKOFF_KEYS: usize = 4096;

/// All of them.
#[derive(Debug)]
pub(crate) struct PrefetchBackoff(Mutex<BackoffTables>);

#[derive(Debug)]
struct BackoffTables {
    not_reusable: ExpiringMap<Key>,
    failed: ExpiringMap<Key>,
}

impl PrefetchBackoff {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(BackoffTables {
            not_reusable: ExpiringMap::new(NOT_REUSABLE_BACKOFF, MAX_BACKOFF_KEYS),
            failed: ExpiringMap::new(FAILURE_BACKOFF, MAX_BACKOFF_KEYS),
        }))
    }

    /// Whether a prefetch of `key` would be useless.
    pub(crate) fn has(&self, key: &Key, now: Instant) -> bool {
        let mut things = self.lock();
        things.not_reusable.has(key, now) || things.failed.has(key, now)
    }

    /// Records the result of a prefetch of `key`.
    pub(crate) fn record(&self, key: &Key, got: PrefetchResult, now: Instant) {
        let mut things = self.lock();
        match got {
            PrefetchResult::Stored => {}
            PrefetchResult::None => things.not_reusable.insert_key(key, now),
            PrefetchResult::Failed => things.failed.insert_key(key, now),
        }
    }

    /// What was purged, by the beginning of its keys, may be of use now.
    pub(crate) fn purge(&self, prefix: &[u8]) {
        let first = Key::range_start(Bytes::copy_from_slice(prefix));
        let is_meant = |key: &Key| key.as_bytes().starts_with(prefix);
        let mut things = self.lock();
        things.not_reusable.remove_range(&first, is_meant);
        things.failed.remove_range(&first, is_meant);
    }

    fn lock(&self) -> MutexGuard<'_, BackoffTables> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_key::key;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// All that came of one fetch was of no use for an hour, also when its origin was away for five seconds.
    #[test]
    fn failure_backs_off_seconds_and_unusable_an_hour_or_until_purge() {
        let things = PrefetchBackoff::new();
        things.record(&key("/kept"), PrefetchResult::Stored, at(0));
        things.record(&key("/private"), PrefetchResult::None, at(0));
        things.record(&key("/overloaded"), PrefetchResult::Failed, at(0));
        things.record(&key("/away"), PrefetchResult::Failed, at(0));
        let left = |seconds| {
            let all = ["/kept", "/private", "/overloaded", "/away"];
            let left = all
                .into_iter()
                .filter(|target| things.has(&key(target), at(seconds)));
            left.collect::<Vec<_>>()
        };
        assert_eq!(left(9), ["/private", "/overloaded", "/away"]);
        assert_eq!(left(3599), ["/private"]);
        assert_eq!(left(3600), [""; 0]);
        things.record(&key("/private"), PrefetchResult::None, at(3600));
        things.purge(key("/private").as_bytes());
        assert_eq!(left(3600), [""; 0]);
    }
}
