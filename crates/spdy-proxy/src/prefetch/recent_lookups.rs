//! Remembers which resources a prefetch has found in memory.
//!
//! The pages of one site reference the same resources, and a lookup takes longer than rewriting the reference. So such a resource is not looked
//! up again for a second.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use spdy_clock::Instant;

use crate::expiring_map::ExpiringMap;
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;

/// How long a resource is not looked up again.
const LOOKUP_TTL: Duration = Duration::from_secs(1);
/// The number of entries: the resources of some pages, for some kinds of browsers if responses depend on that.
const MAX_LOOKUPS: usize = 16 * 1024;

/// The resources that were found in memory, each by a hash. If two resources have the same hash, one of them may not be prefetched for a
/// while.
#[derive(Debug)]
pub(crate) struct RecentLookups(Mutex<ExpiringMap<u64>>);

/// The client for which resources are prefetched.
#[derive(Debug)]
pub(crate) struct PrefetchContext {
    /// Hash of the site, its rules, and the scheme and host that the client uses.
    place: DefaultHasher,
    /// The same with the client's request headers. The formats it accepts for a resource are learned, and not included.
    request_hash: DefaultHasher,
}

/// The keys of one resource: shared by all clients, and for clients with the same headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupKeys {
    shared: u64,
    per_client: u64,
}

impl PrefetchContext {
    /// The client that sent `request` with `headers`.
    pub(crate) fn of(request: &ProxyRequest, headers: &HeaderMap) -> Self {
        let mut place_hash = DefaultHasher::new();
        (&request.site.name, request.site.rules.tag()).hash(&mut place_hash);
        (
            &request.authority,
            forward_headers::scheme_of(request.arrival),
        )
            .hash(&mut place_hash);
        let mut request_hash = place_hash.clone();
        for (name, value) in headers {
            (name, value).hash(&mut request_hash);
        }
        Self {
            place: place_hash,
            request_hash,
        }
    }

    /// The keys of the resource at `path`, loaded as `load`.
    pub(crate) fn keys(&self, path: &str, load: &impl Hash) -> LookupKeys {
        let number = |of: &DefaultHasher| {
            let mut hasher = of.clone();
            (path, load).hash(&mut hasher);
            hasher.finish()
        };
        LookupKeys {
            shared: number(&self.place),
            per_client: number(&self.request_hash),
        }
    }
}

impl RecentLookups {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(new_entries()))
    }

    /// Whether the resource with these keys was found recently.
    pub(crate) fn has(&self, keys: LookupKeys, now: Instant) -> bool {
        self.with_entries(|with_entries| {
            with_entries.has(&keys.shared, now) || with_entries.has(&keys.per_client, now)
        })
    }

    /// Records that the resource with these keys is in memory. If it `varies`, it is recorded for clients with the same headers only.
    pub(crate) fn record(&self, keys: LookupKeys, varies: bool, now: Instant) {
        let key = match varies {
            true => keys.per_client,
            false => keys.shared,
        };
        self.with_entries(|with_entries| with_entries.insert_key(&key, now));
    }

    /// Removes all entries: some resources are no longer in memory.
    pub(crate) fn clear(&self) {
        self.with_entries(|with_entries| *with_entries = new_entries());
    }

    fn with_entries<T>(&self, change: impl FnOnce(&mut ExpiringMap<u64>) -> T) -> T {
        change(&mut self.0.lock())
    }
}

fn new_entries() -> ExpiringMap<u64> {
    ExpiringMap::new(LOOKUP_TTL, MAX_LOOKUPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESOURCE: LookupKeys = LookupKeys {
        shared: 1,
        per_client: 2,
    };

    #[test]
    fn entry_expires_after_a_second_or_a_purge() {
        let lookups = RecentLookups::new();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert!(!lookups.has(RESOURCE, at(0)));
        lookups.record(RESOURCE, false, at(0));
        lookups.record(RESOURCE, false, at(900)); // does not renew the entry
        assert!(lookups.has(RESOURCE, at(999)));
        assert!(!lookups.has(RESOURCE, at(1000)));
        lookups.record(RESOURCE, false, at(2000));
        lookups.clear();
        assert!(!lookups.has(RESOURCE, at(2000)));
    }

    #[test]
    fn varying_resource_is_recorded_per_client_headers() {
        let lookups = RecentLookups::new();
        let other_client = LookupKeys {
            per_client: 3,
            ..RESOURCE
        };
        lookups.record(RESOURCE, true, Instant::ZERO);
        assert!(lookups.has(RESOURCE, Instant::ZERO) && !lookups.has(other_client, Instant::ZERO));
        lookups.record(RESOURCE, false, Instant::ZERO);
        assert!(lookups.has(other_client, Instant::ZERO));
    }
}
