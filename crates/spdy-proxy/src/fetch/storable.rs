//! Decides what is stored or shared of a response, and removes what it replaces.

use http::{Method, StatusCode, request, response};
use http_body::Body as _;
use spdy::body::Body;
use spdy_cache::cache_control::RequestControl;
use spdy_cache::cache_deception;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::freshness::Times;
use spdy_cache::policy::Policy;
use spdy_cache::storable::{Uncacheable, may_share, public_head};
use spdy_cache::stored::Stored;

use crate::body::body_memory::MemoryReservation;
use crate::body::shared_body;
use crate::cache::public_response::is_public;
use crate::fetch::fetch_state::FetchState;
use crate::request::forgeable_headers::has_credentials;
use crate::request::status_class::{is_origin_error, is_request_error};
use crate::response::redirect_chain::RedirectChain;
use crate::telemetry::counters::CounterFamily;

/// What may be stored of the response with this head.
pub(crate) fn check_storable(
    fetch: &FetchState,
    head: &response::Parts,
    times: Times,
    redirects: &RedirectChain,
) -> Result<Stored, Uncacheable> {
    let stored = check_storable_or_shareable(fetch, head, times, redirects)?;
    let policy = fetch.context.cache.policy(fetch.request.origin_kind());
    match stored.is_reusable(policy) {
        true => Ok(stored),
        false => Err(Uncacheable::NeverReusable),
    }
}

/// The same, or a response that may be shared with the requests that wait for it, but is useless for later ones.
pub(crate) fn check_shareable(
    fetch: &FetchState,
    head: &response::Parts,
    times: Times,
    redirects: &RedirectChain,
) -> Result<Stored, Uncacheable> {
    match fetch.leader {
        Some(_) => check_storable_or_shareable(fetch, head, times, redirects),
        None => check_storable(fetch, head, times, redirects),
    }
}

/// The head of a page that no rule keeps from other clients, if it is one: stored, shared or neither.
pub(crate) fn public_page(
    fetch: &FetchState,
    head: &response::Parts,
    times: Times,
    redirects: &RedirectChain,
) -> Option<Stored> {
    let page = check_with(public_head, fetch, head, times, redirects).ok()?;
    is_public(&page).then_some(page)
}

/// Whether the response with this head may be stored or shared.
fn check_storable_or_shareable(
    fetch: &FetchState,
    head: &response::Parts,
    times: Times,
    redirects: &RedirectChain,
) -> Result<Stored, Uncacheable> {
    check_with(may_share, fetch, head, times, redirects)
}

/// The same by the cache's rule `may`.
fn check_with(
    may: impl Fn(&Policy, &request::Parts, &response::Parts, Times) -> Result<Stored, Uncacheable>,
    fetch: &FetchState,
    head: &response::Parts,
    times: Times,
    redirects: &RedirectChain,
) -> Result<Stored, Uncacheable> {
    let request_head = &fetch.request.head;
    if fetch.request.is_unstored() {
        return Err(Uncacheable::NoStore);
    }
    if fetch.request.has_content {
        return Err(Uncacheable::Content);
    }
    // A frame's script chose what was posted, and all clients that get the stored response would get its result (RFC 9110 §9.3.3).
    if request_head.method == Method::POST && fetch.request.proxied.is_some() {
        return Err(Uncacheable::Method);
    }
    if let Some(reason) = redirects.refused() {
        return Err(reason);
    }
    // The cause may be a field that no key contains. Other clients send other values, and would get the same response.
    if is_request_error(head.status) {
        return Err(Uncacheable::Status);
    }
    if cache_deception::is_mismatched(request_head.uri.path(), head.status, &head.headers) {
        return Err(Uncacheable::TypeMismatch);
    }
    let policy = fetch.context.cache.policy(fetch.request.origin_kind());
    may(policy, request_head, head, times)
}

/// Removes the stored response if a response with this status, which is not stored in its place, shows that it is outdated (RFC 9111
/// §4.3.3). A status that is about the origin, this one request or its client does not show that.
pub(crate) fn forget_replaced(fetch: &mut FetchState, status: StatusCode) {
    let is_partial = matches!(
        status,
        StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT
    );
    let request_head = &fetch.request.head;
    let is_client_specific = has_credentials(&request_head.headers)
        || RequestControl::parse(&request_head.headers).no_store;
    if request_head.method == Method::GET
        && !(is_partial
            || is_client_specific
            || is_request_error(status)
            || is_origin_error(status))
        && let Some(entry) = fetch.stale_entry.take()
    {
        fetch
            .context
            .cache
            .remove(&fetch.request.key, &entry.object);
    }
}

/// Counts that the response is passed on and not stored.
pub(crate) fn uncacheable_status(
    fetch: &FetchState,
    status: CacheStatus,
    reason: Uncacheable,
) -> CacheStatus {
    fetch
        .context
        .telemetry
        .counters
        .count(CounterFamily::Uncacheable, reason.token());
    status.detail(reason.token())
}

/// Reserves memory for `body` while it arrives, as far as its length is known. Gives whether there is room for all of it. If not, other
/// requests may share it as long as its beginning is there.
pub(crate) fn reserve_memory(
    fetch: &FetchState,
    body: &Body,
) -> Result<(MemoryReservation, bool), Uncacheable> {
    let announced = body.size_hint().exact().unwrap_or_default();
    let more = match usize::try_from(announced) {
        Ok(len) if len <= fetch.context.cache.limits.max_object_bytes => {
            len.saturating_sub(shared_body::STREAM_WINDOW_BYTES)
        }
        _ => return Err(Uncacheable::BodyTooLarge),
    };
    if let Some(reservation) = fetch.context.cache.limits.body_memory.reserve(more) {
        return Ok((reservation, true));
    }
    let empty = fetch.context.cache.limits.body_memory.reserve(0);
    let empty = empty.map(|reservation| (reservation, false));
    empty.ok_or(Uncacheable::BodyMemory)
}
