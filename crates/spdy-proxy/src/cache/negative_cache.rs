//! Things of other hosts that were of no avail a moment ago: for ten seconds they are not asked for again.
//!
//! What a host refuses, or answers with what is not served, is nowhere kept, and a page that names it is looked at by many: each of
//! them would have the host asked once more. What is remembered is why, not what the first client was told: another may load the
//! same thing otherwise, and is judged anew.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, response};
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::key::Key;
use spdy_cache::lookup::Failure;
use spdy_rewrite::response::sanitize_response::{self, CROSS_ORIGIN_RESOURCE_POLICY};
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::expiring_map::ExpiringMap;
use crate::fetch::origin_exchange::{Fetch, FetchOutcome};
use crate::proxy::CACHE_NAME;
use crate::request::forward_headers::CDN_LOOP;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::is_request_error;
use crate::response::respond;
use crate::telemetry::counters::Outcome;
use crate::upstream::error::UpstreamError;

/// For how long.
const NEGATIVE_TTL: Duration = Duration::from_secs(10);
/// Things of which that is remembered.
const MAX_NEGATIVE_ENTRIES: usize = 4096;
/// Bytes of the fields that are remembered of one; with more, nothing is.
const MAX_NEGATIVE_HEADER_BYTES: usize = 1024;

/// Why something is of no avail.
#[derive(Clone, Debug)]
pub(crate) enum NegativeEntry {
    /// Its host could not be asked.
    Unreachable(UpstreamError),
    /// This is what its host said, and it is not served.
    Rejected {
        /// The thing, where redirects led to.
        at: Box<ProxiedUrl>,
        /// The host's.
        status: StatusCode,
        /// What it is judged by.
        headers: HeaderMap,
    },
}

/// All of them.
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
    /// What was purged, by the beginning of its keys, may have come to life.
    pub(crate) fn purge(&self, prefix: &[u8]) {
        let first = Key::range_start(Bytes::copy_from_slice(prefix));
        let is_meant = |key: &Key| key.as_bytes().starts_with(prefix);
        self.lock().remove_range(&first, is_meant);
    }

    fn lock(&self) -> MutexGuard<'_, ExpiringMap<Key, NegativeEntry>> {
        self.0.lock()
    }
}

/// Whether what a host said to `wanted` goes for everyone who asks for it: nothing that its client chose was part of the question.
fn is_shareable(wanted: &ProxyRequest) -> bool {
    let asked = &wanted.ask.headers;
    let is_whole = wanted.ask.method == Method::GET && !asked.contains_key(header::RANGE);
    let is_of_client =
        asked.contains_key(header::ACCEPT_LANGUAGE) || wanted.said().contains_key(CDN_LOOP);
    wanted.moved.is_some() && is_whole && !is_of_client
}

impl Fetch {
    /// The answer, if it was of no avail a moment ago to ask for it.
    pub(crate) fn negative_hit(&mut self) -> Option<FetchOutcome> {
        if !is_shareable(&self.wanted) {
            return None;
        }
        let proxy = self.proxy.clone();
        let dead = {
            let mut all = proxy.negative.lock();
            all.get(&self.wanted.key, proxy.runtime.now())?.clone()
        };
        let (moved, load) = self.wanted.moved.as_ref()?;
        let (stale, mut response) = match &dead {
            NegativeEntry::Unreachable(error) => (
                Failure::Unreachable,
                respond::for_upstream_error(&self.wanted, error),
            ),
            NegativeEntry::Rejected {
                at,
                status,
                headers,
            } => match sanitize_response::sanitize(
                &self.wanted.site.rules,
                at,
                *load,
                *status,
                headers,
            ) {
                sanitize_response::SanitizedResponse::Serve(_) => return None,
                instead => (
                    Failure::Status(*status),
                    respond::from_sanitized(moved, instead),
                ),
            },
        };
        if let Some(stale) = self.stale_on_error(stale) {
            return Some(stale);
        }
        let status = CacheStatus::hit(CACHE_NAME).detail("negative");
        status.append_to(response.headers_mut());
        response.extensions_mut().insert(Outcome::NEGATIVE);
        Some(FetchOutcome::answer(response, Outcome::NEGATIVE))
    }

    /// Its host could not be asked.
    pub(crate) fn record_failure(&self, error: &UpstreamError) {
        // Of a host that rests it is known already, and for how long; of one that others wait for, not yet, or by who asked.
        let is_known = matches!(
            error,
            UpstreamError::Backoff(_)
                | UpstreamError::CoalesceTimeout
                | UpstreamError::Overloaded(_)
        );
        let is_new = error.limit().is_none() && !is_known;
        if is_shareable(&self.wanted) && is_new {
            self.record_negative(NegativeEntry::Unreachable(error.clone()));
        }
    }

    /// Its host answered with `head`, which is not served.
    pub(crate) fn record_rejected(&self, at: &ProxyRequest, head: &response::Parts) {
        // It is about this request, or leads elsewhere.
        let is_of_one = head.status.is_redirection() || is_request_error(head.status);
        let Some((moved, _)) = &at.moved else { return };
        if is_of_one || !is_shareable(&self.wanted) {
            return;
        }
        let mut headers = HeaderMap::new();
        for name in [
            header::CONTENT_TYPE,
            header::ACCESS_CONTROL_ALLOW_ORIGIN,
            CROSS_ORIGIN_RESOURCE_POLICY,
        ] {
            for value in head.headers.get_all(&name) {
                headers.append(name.clone(), value.clone());
            }
        }
        if headers.values().map(HeaderValue::len).sum::<usize>() > MAX_NEGATIVE_HEADER_BYTES {
            return;
        }
        self.record_negative(NegativeEntry::Rejected {
            at: Box::new(moved.clone()),
            status: head.status,
            headers,
        });
    }

    fn record_negative(&self, dead: NegativeEntry) {
        let now = self.proxy.runtime.now();
        self.proxy
            .negative
            .lock()
            .insert(&self.wanted.key, dead, now);
    }
}
