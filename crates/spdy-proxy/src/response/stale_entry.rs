//! A stored response that may still be valid, and its use when the origin fails.

use std::time::SystemTime;

use http::Response;
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::key::Key;
use spdy_cache::lookup::{Failure, may_serve_on_error};
use spdy_cache::memory_store::Object;
use spdy_cache::validate::Conditional;

use crate::cache::tiers::Cache;
use crate::request::proxy_request::ProxyRequest;
use crate::response::from_stored::respond_stored;
use crate::response::respond::{self, CACHE_NAME};
use crate::telemetry::counters::Outcome;

/// A stored response that may still be valid.
#[derive(Clone, Debug)]
pub(crate) struct StaleEntry {
    pub(crate) object: Object,
    /// How to revalidate it.
    pub(crate) conditional: Conditional,
    /// The count of purges at the time of the lookup.
    pub(crate) purges: u64,
}

impl StaleEntry {
    /// Whether no purge has matched it since the lookup. A request that waited through a purge must not get what was purged.
    pub(crate) fn is_unpurged(&self, cache: &Cache, key: &Key) -> bool {
        !cache.purge_log.purged_since(key, self.purges)
    }
}

/// The stored response for `request`, although it is stale, if the origin's failure allows it.
pub(crate) fn respond_stale_on_error(
    cache: &Cache,
    request: &ProxyRequest,
    entry: Option<&StaleEntry>,
    failure: Failure,
    now: SystemTime,
) -> Option<Response<Body>> {
    let entry = entry?;
    let stored = entry.object.stored();
    let policy = cache.policy(request.origin_kind());
    if !may_serve_on_error(policy, &request.head, stored, failure, now) {
        return None;
    }
    let mut status = CacheStatus::hit(CACHE_NAME).ttl(stored.ttl(now));
    status = match failure {
        Failure::Unreachable => status.detail("origin-unreachable"),
        Failure::Status(_) => status.detail("origin-error"),
    };
    let response = respond_stored(cache, request, stored, entry.object.body(), now, &status);
    Some(respond::with_outcome(response, Outcome::STALE_ON_ERROR))
}
