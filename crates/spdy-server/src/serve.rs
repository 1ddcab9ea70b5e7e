//! One accepted connection, from TLS to its end. (Contract)

use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;

use crate::site::Site;

/// How connections are served; `Default` for the rest.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Spoken here, best first. Plain TCP: sniffed (HTTP/1.1, h2 preface, SPDY) among these.
    pub protocols: Vec<Protocol>,
    // tls: Option<spdy_net::tls::ServerTls>, spdy session config (max_concurrent_streams ...), time-outs, limits
}

/// Serves `io` until it ends. Never panics on what the peer sends.
pub async fn serve_connection(io: BoxIo, site: Arc<Site>, config: ServeConfig, runtime: SharedRuntime) { let _ = (io, site, config, runtime); todo!() }
