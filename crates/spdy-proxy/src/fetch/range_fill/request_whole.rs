//! Requests for a part of a resource that is not stored: media begin with `Range: bytes=0-`, and parts are not stored.
//!
//! ```text
//!  bytes=0-…, a miss ──▶ has its client credit (fetch/range_fill/credit.rs)? ── no ──▶ the part is requested
//!     │ yes
//!     └────────────────▶ the whole is requested ── it can be kept ────▶ recorded and kept; the part is cut out of the recording
//!                                               └─ it cannot ─────────▶ the part is requested, for an hour: for all requests, or for
//!                                                                         those with cookies, if the reason applies only to them
//!  any other range ──▶ the whole is being fetched, and the range's first byte has arrived ──▶ cut out of the recording
//!                      └─ else ──▶ passed on
//! ```

use http::{HeaderMap, Response, StatusCode, header, response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_control::RequestControl;
use spdy_cache::cache_status::Forward;
use spdy_cache::freshness::Times;
use spdy_cache::lookup;
use spdy_cache::storable::Uncacheable;

use crate::cache::shared_response::{CoalesceKey, SharedBodySource};
use crate::fetch::context::FetchContext;
use crate::fetch::fetch_state::FetchState;
use crate::fetch::range_fill::credit::{self, RangeFill};
use crate::fetch::storable::check_storable;
use crate::request::proxy_request::ProxyRequest;
use crate::response::from_stored::{self, respond_shared};
use crate::response::redirect_chain::RedirectChain;
use crate::response::respond;
use crate::telemetry::counters::{CounterFamily, Outcome};

/// Whether the whole is requested instead of the range from the first byte.
pub(crate) fn should_fill(context: &FetchContext, request: &ProxyRequest) -> bool {
    let request_headers = &request.head.headers;
    let has_cookies = request_headers.contains_key(header::COOKIE);
    let now = context.clock.now();
    lookup::may_fill_range(context.cache.policy(request.origin_kind()), &request.head)
        && !RequestControl::parse(request_headers).no_store
        && !context
            .client_limits
            .range_fill_backoff
            .contains(&request.key, has_cookies, now)
}

/// The requested part of a shared response that is still arriving, if the first byte of the part has arrived.
pub(crate) fn respond_range_of_shared(
    context: &FetchContext,
    request: &ProxyRequest,
    forward: Forward,
) -> Option<Response<Body>> {
    let shared = context
        .cache
        .coalescer
        .shared_response(&CoalesceKey::of(&request.key))?;
    let SharedBodySource::Incoming(recording) = &shared.source else {
        return None;
    };
    let (policy, now) = (
        context.cache.policy(request.origin_kind()),
        context.clock.wall_now(),
    );
    if !lookup::may_share_with(policy, &shared.stored, &request.head, now, now) {
        return None;
    }
    let mut head = Response::new(()).into_parts().0;
    head.status = shared.stored.status();
    head.headers.clone_from(shared.stored.served());
    let (_, range) = from_stored::part(policy, request, &head, recording, now)?;
    if recording.received_len() <= range.start {
        return None;
    }
    let response = respond_shared(&context.cache, request, &shared, now, forward)?;
    Some(respond::with_outcome(response, Outcome::COALESCED))
}

/// Decides if the whole resource is requested instead of the range that the client requested.
fn is_fill(fetch: &FetchState) -> bool {
    let is_range_requested = fetch.request.head.headers.contains_key(header::RANGE);
    is_range_requested && fetch.leader.is_some() && fetch.stale_entry.is_none()
}

/// Starts to request the whole resource instead of the part. Past the client's credit it requests only the part, and other clients that
/// wait request the whole with their own credit.
pub(crate) fn start(fetch: &mut FetchState) -> Option<RangeFill> {
    if !is_fill(fetch) {
        return None;
    }
    let (context, now) = (&fetch.context, fetch.context.clock.now());
    let fill = context
        .client_limits
        .range_fills
        .begin(fetch.request.from, now);
    if fill.is_none() {
        context
            .telemetry
            .counters
            .count(CounterFamily::Limits, credit::LIMIT);
        fetch.leader = None;
    }
    fill
}

/// A request that was sent to an origin.
pub(crate) struct SentRequest<'a> {
    /// The request at the place where redirects led.
    pub(crate) at: &'a ProxyRequest,
    pub(crate) headers: &'a HeaderMap,
}

/// Why the whole that was requested by `sent_request` will not be stored, if the client requested a part.
pub(crate) fn reject_reason(
    fetch: &FetchState,
    sent_request: &SentRequest<'_>,
    head: &response::Parts,
    body: &Body,
    times: Times,
    redirects: &RedirectChain,
) -> Option<Uncacheable> {
    let is_for_part = is_fill(fetch) && !sent_request.headers.contains_key(header::RANGE);
    if !is_for_part || head.status != StatusCode::OK {
        return None;
    }
    let host_limit = sent_request.at.proxied.as_ref();
    let host_limit =
        host_limit.map(|(proxied, _)| sent_request.at.site.rules.limits(proxied).max_bytes);
    let max_bytes = host_limit
        .unwrap_or(u64::MAX)
        .min(fetch.context.cache.limits.max_object_bytes as u64);
    match body.size_hint().exact() {
        Some(len) if len <= max_bytes => check_storable(fetch, head, times, redirects).err(),
        _ => Some(Uncacheable::BodyTooLarge),
    }
}

/// Requests the part from now on, with the client's fields in `headers`, because the whole is not stored for this reason.
pub(crate) fn fall_back_to_range(
    fetch: &mut FetchState,
    headers: &mut HeaderMap,
    reason: Uncacheable,
) {
    let now = fetch.context.clock.now();
    fetch
        .context
        .client_limits
        .range_fill_backoff
        .record(&fetch.request.key, reason, now);
    match reason {
        // Other clients may have it: the next follower leads.
        Uncacheable::Cookie | Uncacheable::RequestNoStore | Uncacheable::Authorization => {
            fetch.leader = None;
        }
        _ => fetch.stop_coalescing(),
    }
    let mut client_headers = fetch.request.origin_headers();
    for name in [
        header::RANGE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_MODIFIED_SINCE,
        header::IF_UNMODIFIED_SINCE,
    ] {
        if let Some(value) = client_headers.remove(&name) {
            headers.insert(name, value);
        }
    }
}
