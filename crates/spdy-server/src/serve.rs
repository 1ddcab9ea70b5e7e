//! Serves a site on one accepted connection, from TLS to its end, with `spdy-net`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response, header};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net::admission::Conduct;
use spdy_net::error::ConnectionError;
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::quic::QuicIncoming;
pub use spdy_net::serve::ServerOptions;
use spdy_net::tls::ServerTls;
use spdy_net::wall_clock::WallClock;

use crate::respond::{Limits, SimilarTarget, ThinkTime, respond};
use crate::site::Site;
use crate::site_pusher::{SessionPusher, SitePusher};

/// One request and its response, for a log.
#[derive(Debug)]
pub struct AccessLogEntry<'a> {
    /// Method of the request.
    pub method: &'a http::Method,
    /// Its URI; absolute if the client sent a host.
    pub uri: &'a http::Uri,
    /// Header fields of the request; of a push none.
    pub headers: &'a http::HeaderMap,
    /// Protocol of the connection.
    pub protocol: Protocol,
    /// True if the connection uses TLS.
    pub secure: bool,
    /// The priority of the request, or of the push.
    pub priority: Priority,
    /// Status of the response.
    pub status: http::StatusCode,
    /// Length of its body, bytes.
    pub body_bytes: u64,
    /// True if the response was pushed.
    pub pushed: bool,
    /// The recorded target whose response it is, if that is another one ([`Site::with_similar_queries`]).
    pub similar_to: Option<&'a str>,
}

/// Called for every response.
pub type Log = Arc<dyn Fn(&AccessLogEntry<'_>) + Send + Sync>;

/// How connections are served; `Default` for the rest.
#[derive(Clone)]
pub struct ServeConfig {
    /// Accepted protocols, in order of preference. On plain TCP the protocol is detected (HTTP/1.1, HTTP/2 preface, SPDY).
    pub protocols: Vec<Protocol>,
    /// TLS, whose ALPN must offer the same protocols; `None` for plain TCP.
    pub tls: Option<ServerTls>,
    /// True if a gateway before this server ends TLS: its requests count as requests over TLS.
    pub behind_tls: bool,
    /// Limits and timeouts of connections.
    pub options: ServerOptions,
    /// Limits of requests.
    pub limits: Limits,
    /// The clock for `Date`, if none was recorded.
    pub wall_clock: WallClock,
    /// Set it to end connections after their open exchanges.
    pub stop: Latch,
    /// Called for every response.
    pub log: Option<Log>,
    /// Pushes and hints for pages; `None`: none are sent.
    pub pusher: Option<Arc<SitePusher>>,
    /// The address of the connection's client, whose network has one vote in learning. All clients without an address are one
    /// network.
    pub from: Option<IpAddr>,
    /// `Alt-Svc` for each response over TLS without its own (RFC 7838).
    pub alt_svc: Option<HeaderValue>,
    /// Minimum time from the head of a request to its response, to simulate a server that computes responses.
    pub min_response_time: Duration,
    /// Recorded think times are multiplied by this, at least 0 (none). A negative number and NaN count as 0. Pushed responses are sent
    /// without.
    pub think_time_scale: f64,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            protocols: Protocol::ALL.to_vec(),
            tls: None,
            behind_tls: false,
            options: ServerOptions::default(),
            limits: Limits::default(),
            wall_clock: WallClock::default(),
            stop: Latch::default(),
            log: None,
            pusher: None,
            from: None,
            alt_svc: None,
            min_response_time: Duration::ZERO,
            think_time_scale: 0.0,
        }
    }
}

impl std::fmt::Debug for ServeConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeConfig")
            .field("protocols", &self.protocols)
            .field("tls", &self.tls)
            .field("options", &self.options)
            .field("limits", &self.limits)
            .field("calendar", &self.wall_clock)
            .finish_non_exhaustive()
    }
}

/// Serves HTTP/3 on a QUIC connection until it ends, like [`serve_connection`] for TCP.
pub async fn serve_quic(
    incoming: QuicIncoming,
    site: Arc<Site>,
    config: ServeConfig,
    runtime: SharedRuntime,
) -> Conduct {
    let handler = Arc::new(handler(site, &config, &runtime));
    let (options, stop) = (&config.options, &config.stop);
    conduct(spdy_net::serve::serve_quic(incoming, handler, options, &runtime, stop).await)
}

/// Serves `io` until it ends. Input of a peer never causes a panic.
///
/// An error that ends the connection is only in the debug log: clients disconnect at any time. Returns how the client behaved,
/// as [`Listener::run`](spdy_net::listen::Listener::run) expects.
// Not an `async fn`: it would hold the configuration twice, for as long as the connection is open.
pub fn serve_connection(
    io: BoxIo,
    site: Arc<Site>,
    config: ServeConfig,
    runtime: SharedRuntime,
) -> impl Future<Output = Conduct> + Send {
    let handler = Arc::new(handler(site, &config, &runtime));
    let ServeConfig {
        protocols,
        tls,
        mut options,
        stop,
        pusher,
        ..
    } = config;
    options.http2_push = pusher.is_some();
    async move {
        let tls = tls.as_ref();
        let served = spdy_net::serve::serve_connection(
            io, handler, &protocols, tls, &options, &runtime, &stop,
        );
        conduct(served.await)
    }
}

fn handler(site: Arc<Site>, config: &ServeConfig, runtime: &SharedRuntime) -> SiteHandler {
    let pushing = config.pusher.clone();
    let pushing = pushing
        .map(|pushing| SessionPusher::new(pushing, site.clone(), runtime.clone(), config.from));
    SiteHandler {
        site,
        behind_tls: config.behind_tls,
        pusher: pushing,
        limits: config.limits,
        wall_clock: config.wall_clock,
        runtime: runtime.clone(),
        log: config.log.clone(),
        alt_svc: config.alt_svc.clone(),
        min_response_time: config.min_response_time,
        think_time_scale: config.think_time_scale,
    }
}

/// The conduct of a peer, by the end of its connection.
fn conduct(served: Result<(), ConnectionError>) -> Conduct {
    match served {
        Ok(()) => Conduct::Fair,
        Err(error) => {
            tracing::debug!(%error, "connection ended with an error");
            match error.is_abuse() {
                true => Conduct::Abusive,
                false => Conduct::Fair,
            }
        }
    }
}

/// A request handler for a site.
struct SiteHandler {
    site: Arc<Site>,
    behind_tls: bool,
    limits: Limits,
    wall_clock: WallClock,
    runtime: SharedRuntime,
    log: Option<Log>,
    pusher: Option<SessionPusher>,
    alt_svc: Option<HeaderValue>,
    min_response_time: Duration,
    think_time_scale: f64,
}

impl Handler for SiteHandler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let (mut head, body) = request.into_parts();
        if let Some(arrival) = head.extensions.get_mut::<RequestInfo>() {
            arrival.secure |= self.behind_tls;
        }
        let now = self.wall_clock.now(&self.runtime);
        let mut response = respond(&self.site, &head, now, &self.limits);
        if let (Some(alt_svc), Some(RequestInfo { secure: true, .. })) =
            (&self.alt_svc, head.extensions.get())
        {
            let headers = response.headers_mut();
            headers
                .entry(header::ALT_SVC)
                .or_insert_with(|| alt_svc.clone());
        }
        let pushed = match &self.pusher {
            Some(pushing) => pushing.push_and_hint(&head, &mut response, now),
            None => Vec::new(),
        };
        if let (Some(log), Some(arrival)) = (&self.log, head.extensions.get::<RequestInfo>()) {
            log(&AccessLogEntry {
                method: &head.method,
                uri: &head.uri,
                headers: &head.headers,
                protocol: arrival.protocol,
                secure: arrival.secure,
                priority: arrival.priority,
                status: response.status(),
                body_bytes: response.body().len() as u64,
                pushed: false,
                similar_to: response
                    .extensions()
                    .get()
                    .map(|SimilarTarget(target)| &target[..]),
            });
            for push in pushed {
                log(&AccessLogEntry {
                    method: &http::Method::GET,
                    uri: &push.uri,
                    headers: &http::HeaderMap::new(),
                    protocol: arrival.protocol,
                    secure: arrival.secure,
                    priority: push.priority,
                    status: http::StatusCode::OK,
                    body_bytes: push.bytes as u64,
                    pushed: true,
                    similar_to: None,
                });
            }
        }
        let think_time = response.extensions_mut().remove::<ThinkTime>();
        let think_time =
            think_time.map(|ThinkTime(time)| time.mul_f64(self.think_time_scale.max(0.0)));
        let delay = think_time.unwrap_or_default().max(self.min_response_time);
        let thought = (!delay.is_zero()).then(|| {
            let runtime = &self.runtime;
            runtime.sleep_until(runtime.now() + delay)
        });
        let response = response.map(Body::full);
        if thought.is_none() && http_body::Body::is_end_stream(&body) {
            return Box::pin(std::future::ready(response));
        }
        Box::pin(async move {
            if let Some(thought) = thought {
                thought.await;
            }
            // The client's upload is read, so that the connection is not reset before the client reads the response.
            discard(body).await;
            response
        })
    }
}

/// Bytes of an upload that are read and discarded before the response is sent in any case.
const DISCARDED_BYTES: usize = 1024 * 1024;

async fn discard(body: Body) {
    if http_body::Body::is_end_stream(&body) {
        return;
    }
    let mut body = std::pin::pin!(body);
    let mut remaining = DISCARDED_BYTES;
    while let Some(Ok(frame)) =
        std::future::poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await
    {
        let len = frame.data_ref().map_or(0, bytes::Bytes::len);
        remaining = match remaining.checked_sub(len) {
            Some(remaining) => remaining,
            None => return,
        };
    }
}
