//! Remembers failed requests for third-party resources: for ten seconds they are not requested again.
//!
//! The cache does not store refusals and responses that are not served, and many clients may load the page that names the resource. Each of
//! them would cause a request to the host. An entry contains the reason, not the first client's response: a client that loads the resource
//! in another way is checked separately.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::key::Key;
use spdy_clock::Instant;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::expiring_map::ExpiringMap;
use crate::upstream::error::UpstreamError;

/// Lifetime of an entry.
const NEGATIVE_TTL: Duration = Duration::from_secs(10);
/// Maximum number of entries.
const MAX_NEGATIVE_ENTRIES: usize = 4096;
/// Maximum header bytes of an entry; with more, no entry is made.
const MAX_NEGATIVE_HEADER_BYTES: usize = 1024;

/// Why a request failed.
#[derive(Clone, Debug)]
pub(crate) enum NegativeEntry {
    /// The host could not be contacted.
    Unreachable(UpstreamError),
    /// The host's response, which is not served.
    Rejected {
        /// The URL of the resource, after redirects.
        at: Box<ProxiedUrl>,
        /// The host's status.
        status: StatusCode,
        /// The fields that decide whether it is served.
        headers: HeaderMap,
    },
}

/// All negative entries.
#[derive(Debug)]
pub(crate) struct NegativeCache(Mutex<ExpiringMap<Key, NegativeEntry>>);

impl Default for NegativeCache {
    fn default() -> Self {
        Self(Mutex::new(ExpiringMap::new(
            NEGATIVE_TTL,
            MAX_NEGATIVE_ENTRIES,
        )))
    }
}

impl NegativeCache {
    /// The entry for `key`, if there is one.
    pub(crate) fn lookup(&self, key: &Key, now: Instant) -> Option<NegativeEntry> {
        self.lock().get(key, now).cloned()
    }

    /// Records `entry` for `key`. One with too many header bytes is not recorded.
    pub(crate) fn record(&self, key: &Key, entry: NegativeEntry, now: Instant) {
        if let NegativeEntry::Rejected { headers, .. } = &entry
            && headers.values().map(HeaderValue::len).sum::<usize>() > MAX_NEGATIVE_HEADER_BYTES
        {
            return;
        }
        self.lock().insert(key, entry, now);
    }

    /// Removes entries with a key that begins with `prefix`: after a purge, the request may succeed.
    pub(crate) fn purge(&self, prefix: &[u8]) {
        let first = Key::range_start(Bytes::copy_from_slice(prefix));
        let is_meant = |key: &Key| key.as_bytes().starts_with(prefix);
        self.lock().remove_range(&first, is_meant);
    }

    fn lock(&self) -> MutexGuard<'_, ExpiringMap<Key, NegativeEntry>> {
        self.0.lock()
    }
}
