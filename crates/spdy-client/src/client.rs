//! The client: one request in, one response out, over the connections it keeps. (Contract)

use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net::network::SharedNetwork;
use spdy_net::protocol::Protocol;

/// Limits and choices, each with a default.
#[derive(Clone, Debug)]
pub struct Config {
    /// Offered by ALPN over TLS, best first; over plain TCP the first is spoken by prior knowledge.
    pub protocols: Vec<Protocol>,
    /// HTTP/1.1 connections to one origin at a time (6, as browsers).
    pub http1_connections: usize,
    // tls: spdy_net::tls::ClientTls, time-outs, retries, session config for spdy (compression, windows), observer ...
}

/// What the client did so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    pub connections: u64,
    pub requests: u64,
    /// As HTTP/1.1 text / as on the wire (SPDY: block bytes; h2: HEADERS and CONTINUATION payloads; h1: the text itself).
    pub request_header_bytes: u64,
    pub request_header_bytes_wire: u64,
    pub response_header_bytes: u64,
    pub response_header_bytes_wire: u64,
}

/// Clone it freely; all clones share the connections.
#[derive(Clone)]
pub struct Client { _private: () }
impl Client {
    pub fn new(runtime: SharedRuntime, network: SharedNetwork, config: Config) -> Self { let _ = (runtime, network, config); todo!() }
    /// The request's URI is absolute. The response's extensions hold [`crate::timing::Timings`]. Requests that must wait
    /// (six connections busy, session still being set up, session full) go by priority, then in the order of these calls.
    pub fn send(&self, request: Request<Body>, priority: Priority) -> BoxFuture<Result<Response<Body>, std::io::Error>> { let _ = (request, priority); todo!() }
    pub fn stats(&self) -> Stats { todo!() }
    /// Ends every connection in order.
    pub async fn close(&self) { todo!() }
}
