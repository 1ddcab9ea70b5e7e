//! Uses the negative cache: responds from an entry instead of contacting the host, and records what failed.

use http::{HeaderMap, Method, Response, header, response};
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::lookup::Failure;
use spdy_rewrite::response::sanitize_response::{self, CROSS_ORIGIN_RESOURCE_POLICY};

use crate::cache::negative_cache::NegativeEntry;
use crate::fetch::fetch_state::FetchState;
use crate::request::forward_headers::CDN_LOOP;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::is_request_error;
use crate::response::respond::{self, CACHE_NAME};
use crate::telemetry::counters::Outcome;
use crate::upstream::error::UpstreamError;

/// Whether a host's response to `request` applies to every client: the client chose no part of the request.
fn is_shareable(request: &ProxyRequest) -> bool {
    let request_headers = &request.head.headers;
    let is_full =
        request.head.method == Method::GET && !request_headers.contains_key(header::RANGE);
    let is_of_client = request_headers.contains_key(header::ACCEPT_LANGUAGE)
        || request.client_headers().contains_key(CDN_LOOP);
    request.proxied.is_some() && is_full && !is_of_client
}

/// The response from a negative entry, if there is one for this request.
pub(crate) fn respond(fetch: &mut FetchState) -> Option<Response<Body>> {
    if !is_shareable(&fetch.request) {
        return None;
    }
    let now = fetch.context.clock.now();
    let entry = fetch
        .context
        .cache
        .negative
        .lookup(&fetch.request.key, now)?;
    let (proxied, load) = fetch.request.proxied.as_ref()?;
    let (stale, mut response) = match &entry {
        NegativeEntry::Unreachable(error) => (
            Failure::Unreachable,
            respond::for_upstream_error(&fetch.request, error),
        ),
        NegativeEntry::Rejected {
            at,
            status,
            headers,
        } => {
            match sanitize_response::sanitize(
                &fetch.request.site.rules,
                at,
                *load,
                *status,
                headers,
            ) {
                sanitize_response::SanitizedResponse::Serve(_) => return None,
                instead => (
                    Failure::Status(*status),
                    respond::from_sanitized(proxied, instead),
                ),
            }
        }
    };
    if let Some(stale) = fetch.stale_on_error(stale) {
        return Some(stale);
    }
    let status = CacheStatus::hit(CACHE_NAME).detail("negative");
    status.append_to(response.headers_mut());
    response.extensions_mut().insert(Outcome::NEGATIVE);
    Some(respond::with_outcome(response, Outcome::NEGATIVE))
}

/// Records that the host could not be contacted.
pub(crate) fn record_failure(fetch: &FetchState, error: &UpstreamError) {
    // A host in backoff is recorded already, with the duration. A fetch that others wait for is not finished, or its own request
    // records it.
    let is_recorded = matches!(
        error,
        UpstreamError::Backoff(_) | UpstreamError::CoalesceTimeout | UpstreamError::Overloaded(_)
    );
    let is_new = error.limit().is_none() && !is_recorded;
    if is_shareable(&fetch.request) && is_new {
        record(fetch, NegativeEntry::Unreachable(error.clone()));
    }
}

/// Records that the host responded with `head`, which is not served.
pub(crate) fn record_rejected(fetch: &FetchState, at: &ProxyRequest, head: &response::Parts) {
    // The response is about this request only, or it is a redirect.
    let is_request_specific = head.status.is_redirection() || is_request_error(head.status);
    let Some((proxied, _)) = &at.proxied else {
        return;
    };
    if is_request_specific || !is_shareable(&fetch.request) {
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
    record(
        fetch,
        NegativeEntry::Rejected {
            at: Box::new(proxied.clone()),
            status: head.status,
            headers,
        },
    );
}

fn record(fetch: &FetchState, entry: NegativeEntry) {
    let now = fetch.context.clock.now();
    fetch
        .context
        .cache
        .negative
        .record(&fetch.request.key, entry, now);
}
