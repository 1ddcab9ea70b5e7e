//! Uses the negative cache: responds from an entry instead of contacting the host, and records what failed.

use http::{HeaderMap, Method, header, response};
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::lookup::Failure;
use spdy_rewrite::response::sanitize_response::{self, CROSS_ORIGIN_RESOURCE_POLICY};

use crate::cache::negative_cache::NegativeEntry;
use crate::fetch::origin_exchange::{Fetch, FetchOutcome};
use crate::request::forward_headers::CDN_LOOP;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::is_request_error;
use crate::response::respond::{self, CACHE_NAME};
use crate::telemetry::counters::Outcome;
use crate::upstream::error::UpstreamError;

/// Whether a host's response to `wanted` applies to every client: the client chose no part of the request.
fn is_shareable(wanted: &ProxyRequest) -> bool {
    let asked = &wanted.ask.headers;
    let is_whole = wanted.ask.method == Method::GET && !asked.contains_key(header::RANGE);
    let is_of_client = asked.contains_key(header::ACCEPT_LANGUAGE)
        || wanted.client_headers().contains_key(CDN_LOOP);
    wanted.moved.is_some() && is_whole && !is_of_client
}

impl Fetch {
    /// The response from a negative entry, if there is one for this request.
    pub(crate) fn negative_hit(&mut self) -> Option<FetchOutcome> {
        if !is_shareable(&self.wanted) {
            return None;
        }
        let now = self.proxy.runtime.now();
        let dead = self.proxy.negative.lookup(&self.wanted.key, now)?;
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

    /// Records that the host could not be contacted.
    pub(crate) fn record_failure(&self, error: &UpstreamError) {
        // A host in backoff is recorded already, with the duration. A fetch that others wait for is not finished, or its own request
        // records it.
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

    /// Records that the host responded with `head`, which is not served.
    pub(crate) fn record_rejected(&self, at: &ProxyRequest, head: &response::Parts) {
        // The response is about this request only, or it is a redirect.
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
        self.record_negative(NegativeEntry::Rejected {
            at: Box::new(moved.clone()),
            status: head.status,
            headers,
        });
    }

    fn record_negative(&self, dead: NegativeEntry) {
        let now = self.proxy.runtime.now();
        self.proxy.negative.record(&self.wanted.key, dead, now);
    }
}
