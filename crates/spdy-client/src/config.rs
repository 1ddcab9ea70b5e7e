//! The configuration of a client: every limit, with its default.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use spdy_net::connection::ClientOptions;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;

use crate::retry_budget::RetryBudget;

/// Limits and choices, each with a default.
///
/// A client of servers that speak SPDY/3.1 without TLS, and that push:
///
/// ```
/// use spdy_client::{Config, Protocol, PushLimits, Version};
///
/// let mut config = Config::default();
/// config.plain_protocol = Protocol::Spdy(Version::V31);
/// config.connection.spdy.pushes = Some(PushLimits::default());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Protocols to offer by ALPN over TLS, in order of preference. Default [`Protocol::ALL`]. If HTTP/3 is first, https uses only
    /// QUIC from the start, without waiting for `Alt-Svc` and without racing TCP. HTTP/3 in any other position is ignored.
    pub protocols: Vec<Protocol>,
    /// The protocol for `http://` URLs. Default HTTP/1.1: without TLS no protocol is negotiated, and a server that does not speak the protocol
    /// gives no useful response. SPDY or HTTP/2 without TLS is for servers that are known to speak it. If only some do, name them in
    /// `host_protocols`.
    pub plain_protocol: Protocol,
    /// Protocols that hosts are known to speak (host in lower case, any port). Over plain TCP this overrides `plain_protocol`. Over
    /// TLS ALPN decides, and this only determines how many connections to open before the protocol is known. But a host with HTTP/3
    /// here is contacted over QUIC, and a host with another protocol is not. Default: empty.
    pub host_protocols: BTreeMap<String, Protocol>,
    /// Limit of HTTP/1.1 connections to one origin (6, like browsers).
    pub http1_connections: usize,
    /// Limit of SPDY, HTTP/2 or HTTP/3 connections to one origin (1, like browsers). One more is opened only while the others have as
    /// many exchanges as they accept.
    pub multiplexed_connections: usize,
    /// Whether each waiting request to an https host opens a connection, up to `http1_connections`, until the protocol of the host
    /// is known. Browsers do so on a first visit. If the host then speaks SPDY or HTTP/2, its first connection stays. By default
    /// such a host gets one connection at first.
    pub assumes_http1: bool,
    /// Trust settings of TLS; `None`, the default, rejects https URLs.
    pub tls: Option<ClientTls>,
    /// Windows, limits, compression, and observers.
    pub connection: ClientOptions,
    /// Timeout for opening a connection: name lookup, TCP and TLS together. Default 30 s.
    pub connect_timeout: Option<Duration>,
    /// Timeout for the response's head. It starts when the request is sent, and again with each piece of its body that the
    /// connection accepts, so an upload may take as long as it makes progress. The source of the body has the same timeout for each
    /// piece. A server that reads none of it fails after [`ClientOptions::write_timeout`].
    /// Default 60 s.
    pub head_timeout: Option<Duration>,
    /// Timeout between two pieces of a response's body. Default 60 s.
    pub body_timeout: Option<Duration>,
    /// How often a request is retried after a failure that makes a retry safe. Default 2.
    pub retries: u32,
    /// Limit of the share of requests that are retried, in addition to `retries`; a request that was never sent does not count.
    /// Default: no limit.
    pub retry_budget: Option<Arc<RetryBudget>>,
    /// A connection that was idle for longer is not reused, because the server may be closing it. Default 60 s.
    pub idle_timeout: Duration,
    /// The idle timeout of HTTP/1.1, where a request may be lost if the server closes the connection at the same time. It applies
    /// if the server announces no timeout; if it does (`Keep-Alive: timeout`), slightly less than that applies, and never more than
    /// `idle_timeout`. `None`, the default: `idle_timeout`, regardless of the server. Unless it is `None`, connections of all
    /// origins and protocols that were idle for too long are closed when a request is sent, at most once per `idle_timeout`.
    pub http1_idle_timeout: Option<Duration>,
    /// Timeout for a request in the queue while all open connections are busy; `None`: no timeout. Waiting for a new connection is
    /// limited by `connect_timeout`. Default `None`.
    pub queue_timeout: Option<Duration>,
    /// Limit of queued requests per origin; one more fails at once. Default: no limit.
    pub max_queued: usize,
    /// IP pooling: whether an https origin may use an open connection of another origin, if that has the same address and port,
    /// speaks SPDY, HTTP/2 or HTTP/3, and its certificate is also valid for this origin's name, including pins. If a request of the
    /// origin is answered with 421 there, or reset, the origin gets its own connections. Off by default: few servers distinguish
    /// 421 from 404.
    pub ip_pooling: bool,
    /// How long a resolved name is cached. Default 60 s.
    pub dns_ttl: Duration,
    /// Delay before the next address of a name is tried in parallel (RFC 8305 §5). Default 250 ms.
    pub address_stagger: Duration,
    /// Addresses that are not resolved: host, port (any if `None`), address.
    pub resolve: Vec<(String, Option<u16>, IpAddr)>,
    /// Aliases of hosts: host, and the host name to resolve instead.
    pub aliases: BTreeMap<String, String>,
    /// How long [`Client::close`](crate::client::Client::close) waits for connections to end. Default 2 s.
    pub close_timeout: Duration,
}

impl Config {
    /// True if https to `host` uses QUIC.
    pub(crate) fn is_over_quic(&self, host: &str) -> bool {
        let configured = self.host_protocols.get(host);
        configured
            .or(self.protocols.first())
            .is_some_and(|it| it.is_over_quic())
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            protocols: Protocol::ALL.to_vec(),
            plain_protocol: Protocol::Http1,
            host_protocols: BTreeMap::new(),
            http1_connections: 6,
            multiplexed_connections: 1,
            assumes_http1: false,
            tls: None,
            connection: ClientOptions::default(),
            connect_timeout: Some(Duration::from_secs(30)),
            head_timeout: Some(Duration::from_secs(60)),
            body_timeout: Some(Duration::from_secs(60)),
            retries: 2,
            retry_budget: None,
            idle_timeout: Duration::from_secs(60),
            http1_idle_timeout: None,
            queue_timeout: None,
            max_queued: usize::MAX,
            ip_pooling: false,
            dns_ttl: Duration::from_secs(60),
            address_stagger: Duration::from_millis(250),
            resolve: Vec::new(),
            aliases: BTreeMap::new(),
            close_timeout: Duration::from_secs(2),
        }
    }
}
