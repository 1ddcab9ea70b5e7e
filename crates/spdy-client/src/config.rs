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
#[derive(Clone, Debug)]
pub struct Config {
    /// Offered by ALPN over TLS, best first. If HTTP/3 comes first, https goes over QUIC, at once and to nothing else:
    /// no `Alt-Svc` is waited for, and no TCP raced against it. Elsewhere in the list it counts for nothing.
    pub protocols: Vec<Protocol>,
    /// The protocol for `http://` URLs. Default HTTP/1.1: without TLS no protocol is negotiated, and a server that does not speak the protocol
    /// gives no useful response. SPDY or HTTP/2 without TLS is for servers that are known to speak it. If only some do, name them in
    /// `known_hosts`.
    pub plain_protocol: Protocol,
    /// What single hosts (in lower case, any port) are known to speak: over plain TCP that is spoken, whatever
    /// `plain_protocol` says. Over TLS it is ALPN that decides, and this tells how many connections are worth opening
    /// before it has; but a host known for HTTP/3 is spoken to over QUIC, and one known for another is not. Empty by
    /// default.
    pub host_protocols: BTreeMap<String, Protocol>,
    /// HTTP/1.1 connections to one origin at a time (6, as browsers).
    pub http1_connections: usize,
    /// Which certificates to trust, and how; `None` refuses https URLs.
    pub tls: Option<ClientTls>,
    /// Windows, limits, compression, and observers.
    pub connection: ClientOptions,
    /// From wanting a connection to having it: name look-up, TCP and TLS together.
    pub connect_timeout: Option<Duration>,
    /// From handing a request over, or from the last piece of its body that the connection took, to the last byte of
    /// the response's head. An upload may take as long as it makes progress. The source of its body has the same time
    /// for each piece. A server that takes nothing of it is given up after [`ClientOptions::write_timeout`].
    pub head_timeout: Option<Duration>,
    /// Between two pieces of a response's body.
    pub body_timeout: Option<Duration>,
    /// How often a request is sent again after a failure that makes it safe to.
    pub retries: u32,
    /// How many of all requests may be sent again, whatever `retries` says of one; what never left does not count. Default: no limit.
    pub retry_budget: Option<Arc<RetryBudget>>,
    /// A connection that was idle for longer is not used again: the server may be closing it.
    pub idle_timeout: Duration,
    /// The same of HTTP/1.1, where a request that meets a connection's end on its way may be lost: this long where the
    /// server does not say; where it does (`Keep-Alive: timeout`), somewhat less than that, and never longer than
    /// `idle_timeout`. `None`, the default: as `idle_timeout`, whatever servers say. Unless it is `None`, connections of all
    /// origins, whatever they speak, that were idle for too long are closed when a request comes, once in an `idle_timeout`.
    pub http1_idle_timeout: Option<Duration>,
    /// How long a request waits for a place on a connection while all that stand are busy; `None`: as long as it takes.
    /// Waiting for a connection to be opened is `connect_timeout`'s.
    pub queue_timeout: Option<Duration>,
    /// Requests that may wait so for one origin; one more fails at once. Default: no limit.
    pub max_queued: usize,
    /// Whether an https origin may use a connection that stands for another, if that has the same address
    /// and port, speaks SPDY, HTTP/2 or HTTP/3, and its certificate is believed for the origin's name as well, pins
    /// included (IP pooling). An origin whose request is answered with 421 there, or reset, gets its own.
    /// Off by default: few servers tell 421 from 404.
    pub ip_pooling: bool,
    /// How long a looked-up name is believed.
    pub dns_ttl: Duration,
    /// The next address of a name is tried beside the first after this long (RFC 8305 §5).
    pub address_stagger: Duration,
    /// Addresses that are not looked up: host, port (any if `None`), address.
    pub resolve: Vec<(String, Option<u16>, IpAddr)>,
    /// Names that stand where another does: host, and the host that is looked up for it.
    pub aliases: BTreeMap<String, String>,
    /// How long [`Client::close`](crate::client::Client::close) waits for connections to end.
    pub close_timeout: Duration,
}

impl Config {
    /// True if https to `host` goes over QUIC.
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
