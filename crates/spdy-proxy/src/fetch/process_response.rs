//! Processes the response to a fetch: checks, rewrites, records and stores it, and passes it to the requests that wait.
//!
//! ```text
//!  head ── 304, or the head of HEAD ──▶ the stored response, updated (fetch/revalidate.rs)
//!   │   ── 5xx ───────────────────────▶ the stale stored response, if its policy allows that
//!   ▼
//!  storable? ── yes ──▶ shared with the requests that wait for it
//!   │
//!  body ──pump──▶ decoded ──▶ rewritten ──▶ shared body ──▶ clients and cache
//! ```

use std::sync::Arc;

use http::{HeaderMap, Method, Response, StatusCode, header, response};
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::freshness::Times;
use spdy_cache::invalidate::is_safe;
use spdy_cache::lookup::Failure;
use spdy_cache::storable::Uncacheable;
use spdy_cache::stored::Stored;

use crate::body::request_body::with_trailers;
use crate::fetch::delivery::{ClientHead, Delivery, ExchangeOutcome, OriginResponse, Storage};
use crate::fetch::fetch_state::FetchState;
use crate::fetch::served_head::{self, clone_head};
use crate::fetch::storable::{
    check_shareable, forget_replaced, public_page, reserve_memory, uncacheable_status,
};
use crate::fetch::{conditions, negative, revalidate};
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;
use crate::request::trailer_fields;
use crate::response::breach_guard;
use crate::response::redirect_chain::RedirectChain;
use crate::response::respond::{self, CACHE_NAME};
use crate::rewrite::response_rewriter::RewritePlan;
use crate::telemetry::counters::Outcome;

/// Handles the head of the origin's response.
pub(crate) fn process(
    mut fetch: FetchState,
    at: &ProxyRequest,
    mut head: response::Parts,
    body: Body,
    times: Times,
    redirects: &RedirectChain,
) -> ExchangeOutcome {
    let announcement = trailer_fields::announcement(&head.headers);
    forward_headers::remove_hop_by_hop(&mut head.headers);
    // A client that follows the origin's own `Alt-Svc` would bypass the proxy (RFC 7838). The proxy sends its own.
    head.headers.remove(header::ALT_SVC);
    let path_rule = fetch.request.path_rule.clone();
    let path_rule = path_rule.filter(|_| at.proxied.is_none());
    if let Some(rule) = &path_rule {
        rule.edit_response(&mut head.headers);
    }
    // Without a date from the origin, the date is the time of receipt (RFC 9110 §6.6.1).
    if !head.headers.contains_key(header::DATE) {
        let date = spdy_cache::date::to_value(times.received);
        head.headers.insert(header::DATE, date);
    }
    redirects.restrict(
        fetch.context.cache.policy(fetch.request.origin_kind()),
        &mut head,
        times,
    );
    if !is_safe(&fetch.request.head.method) {
        fetch.context.cache.invalidate_after(&fetch.request, &head);
        // This response is newer than what it purged.
        fetch.since = fetch.context.cache.purge_snapshot();
    }
    if let Some(response) = revalidate::apply_not_modified(&mut fetch, &head, times) {
        return ExchangeOutcome::response(response);
    }
    if let Some(response) = revalidate::apply_head_response(&mut fetch, &head, times) {
        return ExchangeOutcome::response(response);
    }
    if let Some(stale) = fetch.stale_on_error(Failure::Status(head.status)) {
        return ExchangeOutcome::response(stale);
    }
    let served = served_head::served(&fetch, at, &head);
    if served.is_err() {
        negative::record_rejected(&fetch, at, &head);
    }
    let accepted =
        served.and_then(|served| served_head::check_size(&fetch, at, &body).map(|()| served));
    let (served, plan) = match accepted {
        Ok(served) => served,
        Err(response) => {
            if head.status.is_client_error() {
                forget_replaced(&mut fetch, head.status);
            }
            fetch.stop_coalescing();
            return ExchangeOutcome::Rejected(response, head.status);
        }
    };
    let mut stored_head = clone_head(&head);
    if let Some(rule) = &path_rule {
        rule.set_ttl(&mut stored_head, &fetch.request.head);
    }
    if !plan.passes() {
        forward_headers::remove_vary(&mut stored_head.headers, "accept-encoding");
    }
    redirects.add_surrogate_keys(&mut stored_head.headers);
    let public_page = match plan {
        RewritePlan::Page(_) => public_page(&fetch, &stored_head, times, redirects),
        _ => None,
    };
    // Any client can make up queries, and would displace what is recorded of other pages.
    let has_query = fetch.request.head.uri.query().is_some();
    let stored = check_shareable(&fetch, &stored_head, times, redirects);
    let stored = stored.and_then(|stored| Ok((stored, reserve_memory(&fetch, &body)?)));
    let policy = fetch.context.cache.policy(fetch.request.origin_kind());
    let is_reusable = |stored: &Stored| stored.is_reusable(policy);
    let is_stored = stored.as_ref().is_ok_and(|(stored, _)| is_reusable(stored));
    if !is_stored {
        forget_replaced(&mut fetch, head.status);
    }
    let is_full = at.head.method == Method::GET && head.status != StatusCode::PARTIAL_CONTENT;
    let is_storable = stored.is_ok() && is_full;
    let conditional =
        conditions::apply_client_conditions(&fetch, head.status, &served, is_storable);
    if let Some(head) = conditional {
        fetch.stop_coalescing();
        let mut response = Response::from_parts(head, Body::empty());
        CacheStatus::forwarded(CACHE_NAME, fetch.forward_reason).append_to(response.headers_mut());
        let response = respond::with_outcome(response, Outcome::UNCACHEABLE);
        return ExchangeOutcome::response(response);
    }
    let mut status = CacheStatus::forwarded(CACHE_NAME, fetch.forward_reason);
    let stored = match stored {
        Ok((stored, (reservation, has_room))) if head.status != StatusCode::PARTIAL_CONTENT => {
            status = match (is_stored, has_room) {
                (false, _) => uncacheable_status(&fetch, status, Uncacheable::NeverReusable),
                (true, true) => status
                    .stored(true)
                    .ttl(stored.ttl(fetch.context.clock.wall_now())),
                (true, false) => uncacheable_status(&fetch, status, Uncacheable::BodyMemory),
            };
            let stored = served_head::with_page_note(&fetch, stored, &served, &redirects.note());
            Some((
                Arc::new(stored.with_client_headers(served.clone())),
                reservation,
            ))
        }
        Ok(_) => None,
        Err(reason) => {
            status = uncacheable_status(&fetch, status, reason);
            None
        }
    };
    let is_redirect_free = at.key == fetch.request.key;
    let (mut client, ()) = Response::new(()).into_parts();
    (client.status, client.headers) = (head.status, served);
    // Clients of HTTP/1.1 get the trailers that are announced. Stored responses have none.
    if let Some(names) = announcement
        && stored.is_none()
        && plan.passes()
        && fetch.request.streams.takes_trailers
    {
        client.headers.insert(header::TRAILER, names);
    }
    let may_encode = match &stored {
        Some((stored, _)) => !breach_guard::is_stored_per_client(&fetch.request, stored),
        None => !breach_guard::may_contain_secret(&fetch.request, &head.headers),
    };
    if at.head.method == Method::HEAD {
        fetch.stop_coalescing();
        let response =
            respond::streaming(&fetch.request, client, Body::empty(), may_encode, &status);
        let response = respond::with_outcome(response, Outcome::UNCACHEABLE);
        return ExchangeOutcome::response(response);
    }
    let origin = OriginResponse {
        headers: head.headers,
        body,
        is_redirect_free,
    };
    let client = ClientHead {
        head: client,
        may_encode,
        status,
    };
    let storage = Storage {
        shared: stored,
        is_stored,
        public_page: public_page.filter(|_| is_stored || !has_query),
    };
    let delivery = Delivery::new(fetch, origin, client, storage, plan);
    ExchangeOutcome::Delivery(Box::new(delivery))
}

/// The response to a gRPC call: its body is passed as a stream. A response whose head has the status of the call stays one without a
/// body.
pub(crate) fn pass_call(
    mut fetch: FetchState,
    mut head: response::Parts,
    body: Body,
) -> Response<Body> {
    fetch.stop_coalescing();
    forward_headers::remove_hop_by_hop(&mut head.headers);
    head.headers.remove(header::ALT_SVC);
    let rule = fetch.request.path_rule.clone();
    if let Some(rule) = &rule {
        rule.edit_response(&mut head.headers);
    }
    CacheStatus::forwarded(CACHE_NAME, fetch.forward_reason).append_to(&mut head.headers);
    let body = match http_body::Body::is_end_stream(&body) {
        true => Body::empty(),
        false => {
            let restrict = move |trailers: &mut HeaderMap| {
                trailer_fields::restrict_response(trailers, rule.as_deref());
            };
            with_trailers(body, Some(restrict))
        }
    };
    respond::with_outcome(Response::from_parts(head, body), Outcome::UNCACHEABLE)
}
