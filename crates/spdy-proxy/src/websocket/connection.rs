//! WebSockets to the sites' own origins: their limits, and the steps from the handshake to the end.
//!
//! ```text
//!  handshake (websocket/handshake.rs) ──▶ a place ──▶ the origin, on a connection of its own ── any other answer ──▶ the client gets that
//!                                 │ none: 503              │ 101, and it agrees                       (and its body the place)
//!                                 ▼                        ▼
//!                                                101 to the client ──▶ websocket/tunnel.rs, until it ends; then the place is free
//! ```
//!
//! Until the origin has agreed, it gets only the handshake, and later bytes of the client wait. An origin that does not agree would take
//! them for another request, which was not checked.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode, Version, header, response};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_client::upgrade::UpgradeOutcome;
use spdy_net::http1::upgrade::UpgradeHandler;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;

use crate::body::guarded_body::with_guard;
use crate::config::websocket::WebSocketConfig;
use crate::fetch::origin_spans::FetchSpans;
use crate::proxy::{CACHE_NAME, Proxy};
use crate::request::forward_headers::{self, PROXY_STATUS};
use crate::request::miss_rate;
use crate::request::proxy_request::ProxyRequest;
use crate::request::status_class::class_of;
use crate::response::respond;
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::upstream::error::UpstreamError;
use crate::websocket::handshake;
use crate::websocket::tunnel::{self, TunnelStats};

/// Those that are open. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebSocketLimit(Arc<Mutex<OpenWebSockets>>);

#[derive(Debug, Default)]
struct OpenWebSockets {
    count: usize,
    /// By the same client addresses as the miss rate.
    by_client: BTreeMap<IpAddr, usize>,
}

/// A permit for one WebSocket. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct WebSocketPermit {
    sockets: WebSocketLimit,
    client: Option<IpAddr>,
}

impl WebSocketLimit {
    fn lock(&self) -> MutexGuard<'_, OpenWebSockets> {
        self.0.lock()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().count
    }

    /// A permit for a WebSocket of the client at `from`, or the key of the limit that is reached.
    fn place(
        &self,
        from: Option<IpAddr>,
        limits: WebSocketConfig,
    ) -> Result<WebSocketPermit, &'static str> {
        let client = from.map(miss_rate::source);
        let mut open = self.lock();
        if open.count >= limits.open {
            return Err("websocket.open");
        }
        if let Some(client) = client {
            let of_client = open.by_client.get(&client).copied().unwrap_or_default();
            if limits
                .per_client_limit()
                .is_some_and(|most| of_client >= most)
            {
                return Err("websocket.per_client");
            }
            open.by_client.insert(client, of_client + 1);
        }
        open.count += 1;
        let sockets = self.clone();
        Ok(WebSocketPermit { sockets, client })
    }
}

impl Drop for WebSocketPermit {
    fn drop(&mut self) {
        let mut open = self.sockets.lock();
        open.count -= 1;
        let Some(client) = self.client else {
            return;
        };
        match open.by_client.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = open.by_client.remove(&client),
        }
    }
}

impl Proxy {
    /// WebSockets that are open, that wait for their origin, and whose origin's refusal is being sent.
    #[must_use]
    pub fn open_websockets(&self) -> usize {
        self.websockets.count()
    }

    /// Requests the WebSocket `wanted` from the origin, and connects the client's connection with it.
    pub(crate) async fn open_websocket(
        self: Arc<Self>,
        wanted: ProxyRequest,
        limits: WebSocketConfig,
    ) -> Response<Body> {
        if let Some(refused) = self.reject_over_rate(&wanted) {
            return refused;
        }
        let place = match self.websockets.place(wanted.from, limits) {
            Ok(place) => place,
            Err(limit) => {
                self.counters.count(CounterFamily::Limits, limit);
                return limit_reached();
            }
        };
        let uri = wanted.ask.uri.clone();
        let switched = self.request_upgrade(&wanted).await;
        let mut response = match switched {
            Err(error) => {
                tracing::debug!(%error, %uri, "no WebSocket of an origin");
                self.count_failure(&error);
                let response = respond::bad_gateway(&error);
                respond::with_outcome(response, Outcome::UNREACHABLE)
            }
            Ok(UpgradeOutcome::Declined(response)) => {
                let class = class_of(response.status());
                self.counters.count(CounterFamily::Origins, class);
                let (mut head, body) = response.into_parts();
                to_client_head(&wanted, &mut head);
                // Its connection is in no pool, and has no other bound.
                let response = Response::from_parts(head, with_guard(body, place, |_| {}));
                respond::with_outcome(response, Outcome::UNCACHEABLE)
            }
            Ok(UpgradeOutcome::Upgraded(head, _)) if !is_valid_upgrade(&wanted, &head) => {
                tracing::debug!(%uri, fields = ?head.headers(), "another protocol than was asked for");
                self.counters.count(CounterFamily::Origins, "broken");
                unexpected_protocol()
            }
            Ok(UpgradeOutcome::Upgraded(head, origin)) => {
                self.counters.count(CounterFamily::Origins, "1xx");
                self.start_tunnel(&wanted, head, origin, place, limits)
            }
        };
        CacheStatus::forwarded(CACHE_NAME, Forward::Bypass).append_to(response.headers_mut());
        response
    }

    /// The answer of the site's own origin to the handshake.
    async fn request_upgrade(
        &self,
        wanted: &ProxyRequest,
    ) -> Result<UpgradeOutcome, UpstreamError> {
        let mut ask = wanted.ask.clone();
        ask.headers.remove(header::CONTENT_LENGTH);
        handshake::set_upgrade_headers(&mut ask.headers);
        let mut spans = FetchSpans::of(self.spans(), wanted, Forward::Bypass, false);
        let asking = spans.as_mut().map(|it| it.ask(wanted, &mut ask.headers));
        let request = Request::from_parts(ask, Body::empty());
        let switched = self.upstream().upgrade(request).await;
        if let Some(asking) = asking {
            let told = switched.as_ref();
            // The request goes over HTTP/1.1 only.
            asking.answered(told.map(|switched| (switched.status(), Version::HTTP_11)));
        }
        switched
    }

    /// 101, with what becomes of the connection.
    fn start_tunnel(
        self: Arc<Self>,
        wanted: &ProxyRequest,
        head: Response<()>,
        origin: BoxIo,
        place: WebSocketPermit,
        limits: WebSocketConfig,
    ) -> Response<Body> {
        let (mut head, ()) = head.into_parts();
        to_client_head(wanted, &mut head);
        handshake::set_upgrade_headers(&mut head.headers);
        let agreed = WebSocketConnection {
            proxy: self,
            passed: TunnelStats::NOTHING,
            _place: place,
        };
        let idle = limits.idle_timeout();
        head.extensions
            .insert(UpgradeHandler::new(move |client, stop| async move {
                agreed.run(client, origin, idle, &stop).await;
            }));
        respond::with_outcome(
            Response::from_parts(head, Body::empty()),
            Outcome::WEBSOCKET,
        )
    }
}

/// A WebSocket that its origin agreed to; dropped, it is counted, though its client may have left before it began.
struct WebSocketConnection {
    proxy: Arc<Proxy>,
    passed: TunnelStats,
    _place: WebSocketPermit,
}

impl WebSocketConnection {
    /// Carries its bytes to its end.
    async fn run(mut self, client: BoxIo, origin: BoxIo, idle: Duration, stop: &Latch) {
        self.passed = tunnel::run(client, origin, idle, stop, &self.proxy.runtime).await;
    }
}

impl Drop for WebSocketConnection {
    fn drop(&mut self) {
        let passed = self.passed;
        tracing::debug!(?passed, "a WebSocket ended");
        let counters = &self.proxy.counters;
        counters.count(CounterFamily::WebSockets, passed.end.name());
        counters.add(CounterFamily::WebSocketBytes, "to-origin", passed.to_origin);
        counters.add(CounterFamily::WebSocketBytes, "to-client", passed.to_client);
    }
}

/// Whether a 101 agrees to the WebSocket `wanted`.
fn is_valid_upgrade(wanted: &ProxyRequest, head: &Response<()>) -> bool {
    handshake::accepts_upgrade(&wanted.ask.headers, head.version(), head.headers())
}

/// Makes of an origin's head the one that a client gets.
fn to_client_head(wanted: &ProxyRequest, head: &mut response::Parts) {
    let headers = &mut head.headers;
    forward_headers::remove_hop_by_hop(headers);
    // As for any answer: the proxy sets alternative services itself (RFC 7838).
    headers.remove(header::ALT_SVC);
    wanted.rewrite_location(headers);
    forward_headers::append_via(headers, head.version, &wanted.site.name);
    // The protocol of the connection to the client.
    head.version = Version::HTTP_11;
}

/// As many are open as may be.
fn limit_reached() -> Response<Body> {
    let text = "too many WebSockets are open; try again soon\n";
    let mut response = respond::plain(StatusCode::SERVICE_UNAVAILABLE, text);
    let headers = response.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    respond::with_outcome(response, Outcome::RATE_LIMITED)
}

/// The origin switches to a protocol that was not requested (RFC 9209 §2.3.26).
fn unexpected_protocol() -> Response<Body> {
    let text = "the origin switches to a protocol that nobody asked for\n";
    let mut response = respond::plain(StatusCode::BAD_GATEWAY, text);
    let why = HeaderValue::from_static("spdy; error=http_upgrade_failed");
    response.headers_mut().insert(PROXY_STATUS, why);
    respond::with_outcome(response, Outcome::UNREACHABLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(per_client: usize, open: usize) -> WebSocketConfig {
        WebSocketConfig {
            per_client,
            open,
            ..WebSocketConfig::default()
        }
    }

    #[test]
    fn websocket_permits_are_per_client_and_global() {
        let sockets = WebSocketLimit::default();
        let from = |address: &str| Some(address.parse().expect("an address"));
        let place = |client| sockets.place(client, limits(2, 3));
        let first = place(from("192.0.2.1")).expect("there is room");
        let _second = place(from("192.0.2.1")).expect("there is room");
        assert_eq!(
            place(from("192.0.2.1")).expect_err("he has two"),
            "websocket.per_client"
        );
        let _other = place(from("2001:db8::1")).expect("another has his own");
        assert_eq!(
            place(from("192.0.2.3")).expect_err("three are open"),
            "websocket.open"
        );
        assert_eq!(sockets.count(), 3);
        drop(first);
        let _again = place(from("192.0.2.1")).expect("one was given back");
        assert_eq!(sockets.count(), 3);
        drop((_second, _other, _again));
        assert_eq!(sockets.count(), 0);
        assert!(sockets.lock().by_client.is_empty());
    }

    #[test]
    fn per_client_zero_allows_all_permits() {
        let sockets = WebSocketLimit::default();
        let from = Some("192.0.2.1".parse().expect("an address"));
        let place = || sockets.place(from, limits(0, 3));
        let _three = [place(), place(), place()].map(|place| place.expect("there is room"));
        assert_eq!(place().expect_err("three are open"), "websocket.open");
    }

    #[test]
    fn a_house_of_ipv6_is_one_client() {
        let sockets = WebSocketLimit::default();
        let from = |address: &str| Some(address.parse().expect("an address"));
        let _first = sockets.place(from("2001:db8::1"), limits(1, 9)).unwrap();
        let second = sockets.place(from("2001:db8:0:0f::2"), limits(1, 9));
        assert_eq!(second.expect_err("the same house"), "websocket.per_client");
    }
}
