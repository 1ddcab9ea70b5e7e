//! What was here when it was looked for to be fetched ahead. Pages of one site name the same things, and to look for one of them takes
//! longer than to rewrite what names it: so it is not looked for again at once.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use spdy_clock::Instant;

use crate::expiring_map::ExpiringMap;
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;

/// For how long one is not looked for again.
const LOOKUP_TTL: Duration = Duration::from_secs(1);
/// Things of which that is remembered: some pages' worth, for some kinds of browsers where answers differ by that.
const MAX_LOOKUPS: usize = 16 * 1024;

/// The things that are here, each by a number. Two of one number are taken for one: then the other may not be fetched ahead for a while.
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
    /// The client that requested `request` with the headers `headers`.
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

    /// Whether the resource with these keys was seen recently.
    pub(crate) fn has(&self, keys: LookupKeys, now: Instant) -> bool {
        self.with_entries(|with_entries| {
            with_entries.has(&keys.shared, now) || with_entries.has(&keys.per_client, now)
        })
    }

    /// The resource with these keys is here. If it `varies`, it is recorded for clients with the same headers only.
    pub(crate) fn record(&self, keys: LookupKeys, varies: bool, now: Instant) {
        let key = match varies {
            true => keys.per_client,
            false => keys.shared,
        };
        self.with_entries(|with_entries| with_entries.insert_key(&key, now));
    }

    /// Some of it is not here any more.
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
