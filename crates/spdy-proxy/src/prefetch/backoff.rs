//! Remembers prefetches that were useless. They are not repeated for a while, so the cost of fetching a resource twice is paid once.
//!
//! A response that may not be stored, or that is stale on arrival, is likely the same an hour later. A failed one may work again soon. A
//! lack of room does not depend on the resource.

use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::key::Key;
use spdy_clock::Instant;

use crate::expiring_map::ExpiringMap;
use crate::fetch::delivery::PrefetchResult;

/// How long a useless prefetch is remembered.
const NOT_REUSABLE_BACKOFF: Duration = Duration::from_secs(60 * 60);
/// How long a failed prefetch is remembered.
const FAILURE_BACKOFF: Duration = Duration::from_secs(10);
/// The number of resources in either table.
const MAX_BACKOFF_KEYS: usize = 4096;

/// The useless and the failed prefetches.
#[derive(Debug)]
pub(crate) struct PrefetchBackoff(Mutex<BackoffTables>);

#[derive(Debug)]
struct BackoffTables {
    not_reusable: ExpiringMap<Key>,
    failed: ExpiringMap<Key>,
}

impl PrefetchBackoff {
    /// An empty history.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(BackoffTables {
            not_reusable: ExpiringMap::new(NOT_REUSABLE_BACKOFF, MAX_BACKOFF_KEYS),
            failed: ExpiringMap::new(FAILURE_BACKOFF, MAX_BACKOFF_KEYS),
        }))
    }

    /// Whether a prefetch of `key` would be useless.
    pub(crate) fn has(&self, key: &Key, now: Instant) -> bool {
        let mut tables = self.lock();
        tables.not_reusable.has(key, now) || tables.failed.has(key, now)
    }

    /// Records the result of a prefetch of `key`.
    pub(crate) fn record(&self, key: &Key, result: PrefetchResult, now: Instant) {
        let mut tables = self.lock();
        match result {
            PrefetchResult::Stored => {}
            PrefetchResult::None => tables.not_reusable.insert_key(key, now),
            PrefetchResult::Failed => tables.failed.insert_key(key, now),
        }
    }

    /// Removes the entries with a key that begins with `prefix`: after a purge, a prefetch may be useful.
    pub(crate) fn purge(&self, prefix: &[u8]) {
        let first = Key::range_start(Bytes::copy_from_slice(prefix));
        let is_meant = |key: &Key| key.as_bytes().starts_with(prefix);
        let mut tables = self.lock();
        tables.not_reusable.remove_range(&first, is_meant);
        tables.failed.remove_range(&first, is_meant);
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

    /// Regression: any fetch without a usable response was backed off for an hour, even if the origin was down for five seconds.
    #[test]
    fn failure_backs_off_seconds_and_unusable_an_hour_or_until_purge() {
        let backoff = PrefetchBackoff::new();
        backoff.record(&key("/kept"), PrefetchResult::Stored, at(0));
        backoff.record(&key("/private"), PrefetchResult::None, at(0));
        backoff.record(&key("/overloaded"), PrefetchResult::Failed, at(0));
        backoff.record(&key("/away"), PrefetchResult::Failed, at(0));
        let backing_off = |seconds| {
            let all = ["/kept", "/private", "/overloaded", "/away"];
            let backing_off = all
                .into_iter()
                .filter(|target| backoff.has(&key(target), at(seconds)));
            backing_off.collect::<Vec<_>>()
        };
        assert_eq!(backing_off(9), ["/private", "/overloaded", "/away"]);
        assert_eq!(backing_off(3599), ["/private"]);
        assert_eq!(backing_off(3600), [""; 0]);
        backoff.record(&key("/private"), PrefetchResult::None, at(3600));
        backoff.purge(key("/private").as_bytes());
        assert_eq!(backing_off(3600), [""; 0]);
    }
}
