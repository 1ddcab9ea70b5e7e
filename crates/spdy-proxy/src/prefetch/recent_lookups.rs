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
const SEEN_TTL: Duration = Duration::from_secs(1);
/// Things of which that is remembered: some pages' worth, for some kinds of browsers where answers differ by that.
const MAX_SEEN: usize = 16 * 1024;

/// The things that are here, each by a number. Two of one number are taken for one: then the other may not be fetched ahead for a while.
#[derive(Debug)]
pub(crate) struct PrefetchSeen(Mutex<ExpiringMap<u64>>);

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
pub(crate) struct SeenKeys {
    shared: u64,
    per_client: u64,
}

impl PrefetchContext {
    /// The client that requested `wanted` with the headers `says`.
    pub(crate) fn of(wanted: &ProxyRequest, says: &HeaderMap) -> Self {
        let mut place = DefaultHasher::new();
        (&wanted.site.name, wanted.site.rules.tag()).hash(&mut place);
        (
            &wanted.authority,
            forward_headers::scheme_of(wanted.arrival),
        )
            .hash(&mut place);
        let mut himself = place.clone();
        for (name, value) in says {
            (name, value).hash(&mut himself);
        }
        Self {
            place,
            request_hash: himself,
        }
    }

    /// The keys of the resource at `path`, loaded as `load`.
    pub(crate) fn keys(&self, path: &str, load: &impl Hash) -> SeenKeys {
        let number = |of: &DefaultHasher| {
            let mut hasher = of.clone();
            (path, load).hash(&mut hasher);
            hasher.finish()
        };
        SeenKeys {
            shared: number(&self.place),
            per_client: number(&self.request_hash),
        }
    }
}

impl PrefetchSeen {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(nothing_yet()))
    }

    /// Whether the resource with these keys was seen recently.
    pub(crate) fn has(&self, numbers: SeenKeys, now: Instant) -> bool {
        self.things(|things| {
            things.has(&numbers.shared, now) || things.has(&numbers.per_client, now)
        })
    }

    /// The resource with these keys is here. If it `varies`, it is recorded for clients with the same headers only.
    pub(crate) fn record(&self, numbers: SeenKeys, varies: bool, now: Instant) {
        let number = match varies {
            true => numbers.per_client,
            false => numbers.shared,
        };
        self.things(|things| things.insert_key(&number, now));
    }

    /// Some of it is not here any more.
    pub(crate) fn clear(&self) {
        self.things(|things| *things = nothing_yet());
    }

    fn things<T>(&self, ask: impl FnOnce(&mut ExpiringMap<u64>) -> T) -> T {
        ask(&mut self.0.lock())
    }
}

fn nothing_yet() -> ExpiringMap<u64> {
    ExpiringMap::new(SEEN_TTL, MAX_SEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const THING: SeenKeys = SeenKeys {
        shared: 1,
        per_client: 2,
    };

    #[test]
    fn seen_entry_expires_after_a_second_or_a_purge() {
        let here = PrefetchSeen::new();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        assert!(!here.has(THING, at(0)));
        here.record(THING, false, at(0));
        here.record(THING, false, at(900)); // does not renew the entry
        assert!(here.has(THING, at(999)));
        assert!(!here.has(THING, at(1000)));
        here.record(THING, false, at(2000));
        here.clear();
        assert!(!here.has(THING, at(2000)));
    }

    #[test]
    fn varying_resource_is_seen_per_client_headers() {
        let here = PrefetchSeen::new();
        let others = SeenKeys {
            per_client: 3,
            ..THING
        };
        here.record(THING, true, Instant::ZERO);
        assert!(here.has(THING, Instant::ZERO) && !here.has(others, Instant::ZERO));
        here.record(THING, false, Instant::ZERO);
        assert!(here.has(others, Instant::ZERO));
    }
}
