//! Remembers resources of which the whole is not stored: for an hour, a range from the first byte does not request the whole.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy_cache::key::Key;
use spdy_cache::storable::Uncacheable;
use spdy_clock::Instant;

use crate::expiring_map::ExpiringMap;

/// How long it is remembered that the whole of a resource is not stored.
const RANGE_FILL_BACKOFF: Duration = Duration::from_secs(60 * 60);
/// Maximum number of remembered keys.
const MAX_RANGE_FILL_BACKOFFS: usize = 4096;

/// Keys for which a range from the first byte does not request the whole.
#[derive(Debug)]
pub(crate) struct RangeFillBackoff(Mutex<BackoffKeys>);

#[derive(Debug)]
struct BackoffKeys {
    for_all: ExpiringMap<Key>,
    with_cookies: ExpiringMap<Key>,
}

impl Default for RangeFillBackoff {
    fn default() -> Self {
        let none = || ExpiringMap::new(RANGE_FILL_BACKOFF, MAX_RANGE_FILL_BACKOFFS);
        Self(Mutex::new(BackoffKeys {
            for_all: none(),
            with_cookies: none(),
        }))
    }
}

impl RangeFillBackoff {
    /// Whether the whole of `key` is not requested, for a request with or without cookies.
    pub(crate) fn contains(&self, key: &Key, has_cookies: bool, now: Instant) -> bool {
        let mut keys = self.lock();
        keys.for_all.has(key, now) || has_cookies && keys.with_cookies.has(key, now)
    }

    /// Records that the whole of `key` is not stored for this reason. A reason that is about one client only is not recorded.
    pub(crate) fn record(&self, key: &Key, reason: Uncacheable, now: Instant) {
        match reason {
            Uncacheable::RequestNoStore | Uncacheable::Authorization => {}
            Uncacheable::Cookie => self.lock().with_cookies.insert_key(key, now),
            _ => self.lock().for_all.insert_key(key, now),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BackoffKeys> {
        self.0.lock()
    }
}
