//! WebSockets to the sites' own origins: their limits, and the steps from the handshake to the end.
//!
//! ```text
//!  handshake (request/websocket_handshake.rs)
//!      │
//!      ▼
//!  a permit (sites/open_limit.rs) ── none is free ──▶ 503
//!      │
//!      ▼
//!  the origin, on its own connection ── any response but 101 ──▶ the client; its body holds the permit
//!      │ 101, and the origin agrees to the handshake
//!      ▼
//!  101 to the client ──▶ websocket/tunnel.rs until the end, which frees the permit
//! ```
//!
//! Until the origin has agreed, it gets only the handshake, and later bytes of the client wait. An origin that does not agree would take
//! them for another request, which was not checked.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Version, header, response};
use spdy::body::Body;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_client::upgrade::UpgradeOutcome;
use spdy_net::body_wrapper::with_guard;
use spdy_net::http1::upgrade::UpgradeHandler;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;

use crate::config::websocket::WebSocketConfig;
use crate::fetch::context::FetchContext;
use crate::fetch::origin_spans::FetchSpans;
use crate::request::forward_headers::{self, PROXY_STATUS};
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::class_of;
use crate::request::websocket_handshake;
use crate::response::respond;
use crate::response::respond::CACHE_NAME;
use crate::sites::open_limit::{OpenPermit, ReachedLimit};
use crate::sites::static_folder;
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::upstream::error::UpstreamError;
use crate::websocket::tunnel::{self, TunnelStats};

/// Requests the WebSocket `request` from the origin, and connects the client's connection with it.
pub(crate) async fn open(
    context: &Arc<FetchContext>,
    request: ProxyRequest,
    limits: WebSocketConfig,
) -> Response<Body> {
    if request.is_kept_from_origin() {
        return respond::with_outcome(static_folder::missing(), Outcome::UNCACHEABLE);
    }
    let counters = &context.telemetry.counters;
    let client_limits = &context.client_limits;
    if let Some(refused) = client_limits.reject_over_rate(&request, context.clock.now(), counters) {
        return refused;
    }
    let (per_client, total) = (limits.per_client_limit(), limits.open);
    let sockets = &client_limits.websockets;
    let permit = match sockets.acquire(request.from, per_client, total) {
        Ok(permit) => permit,
        Err(reached) => {
            let limit = match reached {
                ReachedLimit::Client => "websocket.per_client",
                ReachedLimit::Total => "websocket.open",
            };
            counters.count(CounterFamily::Limits, limit);
            return limit_reached();
        }
    };
    let uri = request.head.uri.clone();
    let result = request_upgrade(context, &request).await;
    let mut response = match result {
        Err(error) => {
            tracing::debug!(%error, %uri, "WebSocket handshake with the origin failed");
            error.count(&request, counters);
            let response = respond::bad_gateway(&error);
            respond::with_outcome(response, Outcome::UNREACHABLE)
        }
        Ok(UpgradeOutcome::Declined(response)) => {
            let class = class_of(response.status());
            counters.count(CounterFamily::Origins, class);
            let (mut head, body) = response.into_parts();
            to_client_head(&request, &mut head);
            // Its connection is in no pool, and has no other bound.
            let response = Response::from_parts(head, with_guard(body, permit, |_| {}));
            respond::with_outcome(response, Outcome::UNCACHEABLE)
        }
        Ok(UpgradeOutcome::Upgraded(head, _)) if !is_valid_upgrade(&request, &head) => {
            tracing::debug!(%uri, fields = ?head.headers(), "the origin switched to another protocol than requested");
            counters.count(CounterFamily::Origins, "invalid-response");
            unexpected_protocol()
        }
        Ok(UpgradeOutcome::Upgraded(head, origin)) => {
            counters.count(CounterFamily::Origins, "1xx");
            start_tunnel(context.clone(), &request, head, origin, permit, limits)
        }
    };
    CacheStatus::forwarded(CACHE_NAME, Forward::Bypass).append_to(response.headers_mut());
    response
}

/// The response of the site's own origin to the handshake.
async fn request_upgrade(
    context: &FetchContext,
    proxy_request: &ProxyRequest,
) -> Result<UpgradeOutcome, UpstreamError> {
    let mut head = proxy_request.head.clone();
    head.uri = proxy_request.origin_uri();
    head.headers.remove(header::CONTENT_LENGTH);
    websocket_handshake::set_upgrade_headers(&mut head.headers);
    let mut spans = FetchSpans::of(
        context.telemetry.spans(),
        proxy_request,
        Forward::Bypass,
        false,
    );
    let span = spans
        .as_mut()
        .map(|spans| spans.start_request(proxy_request, &mut head.headers));
    let request = Request::from_parts(head, Body::empty());
    let upstream = context.origins.upstream();
    let rule = proxy_request.origin_rule();
    let outcome = upstream.upgrade(&proxy_request.site, rule, request).await;
    if let Some(span) = span {
        let result = outcome.as_ref();
        // The request is sent only over HTTP/1.1.
        span.finish(result.map(|outcome| (outcome.status(), Version::HTTP_11)));
    }
    outcome
}

/// The 101 for the client, with the handler of the upgraded connection.
fn start_tunnel(
    context: Arc<FetchContext>,
    request: &ProxyRequest,
    head: Response<()>,
    origin: BoxIo,
    permit: OpenPermit,
    limits: WebSocketConfig,
) -> Response<Body> {
    let (mut head, ()) = head.into_parts();
    to_client_head(request, &mut head);
    websocket_handshake::set_upgrade_headers(&mut head.headers);
    let connection = WebSocketConnection {
        context,
        passed: TunnelStats::NOTHING,
        _permit: permit,
    };
    let idle = limits.idle_timeout();
    head.extensions
        .insert(UpgradeHandler::new(move |client, stop| async move {
            connection.run(client, origin, idle, &stop).await;
        }));
    respond::with_outcome(
        Response::from_parts(head, Body::empty()),
        Outcome::WEBSOCKET,
    )
}

/// A WebSocket that the origin accepted. It is counted when it is dropped, even if the client left before it began.
struct WebSocketConnection {
    context: Arc<FetchContext>,
    passed: TunnelStats,
    _permit: OpenPermit,
}

impl WebSocketConnection {
    /// Runs the tunnel to its end.
    async fn run(mut self, client: BoxIo, origin: BoxIo, idle: Duration, stop: &Latch) {
        self.passed = tunnel::run(client, origin, idle, stop, &self.context.clock.runtime).await;
    }
}

impl Drop for WebSocketConnection {
    fn drop(&mut self) {
        let passed = self.passed;
        tracing::debug!(?passed, "a WebSocket ended");
        let counters = &self.context.telemetry.counters;
        counters.count(CounterFamily::WebSockets, passed.end.name());
        counters.add(CounterFamily::WebSocketBytes, "to-origin", passed.to_origin);
        counters.add(CounterFamily::WebSocketBytes, "to-client", passed.to_client);
    }
}

/// Whether a 101 accepts the WebSocket of `request`.
fn is_valid_upgrade(request: &ProxyRequest, head: &Response<()>) -> bool {
    websocket_handshake::accepts_upgrade(&request.head.headers, head.version(), head.headers())
}

/// Changes the head of an origin's response to the one that the client gets.
fn to_client_head(request: &ProxyRequest, head: &mut response::Parts) {
    let headers = &mut head.headers;
    forward_headers::remove_hop_by_hop(headers);
    // As for any response: the proxy sets alternative services itself (RFC 7838).
    headers.remove(header::ALT_SVC);
    request.rewrite_location(headers);
    forward_headers::append_via(headers, head.version, &request.site.name);
    // The protocol of the connection to the client.
    head.version = Version::HTTP_11;
}

/// The response when a limit of WebSockets is reached.
fn limit_reached() -> Response<Body> {
    let text = "too many WebSockets are open; try again soon\n";
    let mut response = respond::plain(StatusCode::SERVICE_UNAVAILABLE, text);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    respond::with_outcome(response, Outcome::RATE_LIMITED)
}

/// The response when the origin switches to a protocol that was not requested (RFC 9209 §2.3.26).
fn unexpected_protocol() -> Response<Body> {
    let text = "the origin switched to a protocol that was not requested\n";
    let mut response = respond::plain(StatusCode::BAD_GATEWAY, text);
    let proxy_status = HeaderValue::from_static("spdy; error=http_upgrade_failed");
    response.headers_mut().insert(PROXY_STATUS, proxy_status);
    respond::with_outcome(response, Outcome::UNREACHABLE)
}
