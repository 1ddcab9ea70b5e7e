//! Trusted proxies in front of a listener: their addresses, and whether they announce the client of each connection.
//!
//! ```text
//!  client 203.0.113.7 ──▶ balancer 10.0.0.5 ──▶ here     is 10.0.0.5 a trusted proxy?
//!                                                          no   ─▶ it is the client; the limits apply to it
//!                                                          yes  ─▶ it states the client, in one of two ways:
//!                                                                  in each request, in HTTP: many clients share one connection,
//!                                                                  and no limit of an address applies
//!                                                                  for each connection (listen/proxy_protocol.rs): the limits apply to
//!                                                                  that client, and the client's own headers are not trusted
//! ```

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ipnet::IpNet;
use parking_lot::RwLock;

use crate::listen::proxy_protocol::ProxyHeaderInfo;

/// The proxies in front of a listener.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TrustedProxies {
    ranges: Vec<IpNet>,
    /// Options of the PROXY protocol, if they use it.
    proxy_protocol: Option<ProxyProtocolOptions>,
}

/// Options of the proxies that announce clients.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ProxyProtocolOptions {
    /// The port at which these proxies terminate TLS. If the header does not state whether the client used TLS, a client of this
    /// port did.
    pub tls_port: Option<u16>,
}

impl TrustedProxies {
    /// The proxies at `texts`: addresses and ranges.
    ///
    /// # Errors
    ///
    /// The first text that is neither.
    pub fn read(texts: &[String]) -> Result<Self, &String> {
        let range = |text: &String| {
            let address = || text.parse::<IpAddr>().map(IpNet::from);
            text.parse().or_else(|_| address())
        };
        let ranges = texts.iter().map(|text| range(text).map_err(|_| text));
        Ok(Self {
            ranges: ranges.collect::<Result<_, _>>()?,
            proxy_protocol: None,
        })
    }

    /// Sets that they announce each connection's client by the PROXY protocol.
    #[must_use]
    pub fn with_proxy_protocol(self, announcing: ProxyProtocolOptions) -> Self {
        Self {
            proxy_protocol: Some(announcing),
            ..self
        }
    }

    /// True if `address` is a trusted proxy.
    #[must_use]
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.ranges.iter().any(|range| range.contains(&address))
    }

    /// True if `address` is a trusted proxy that states the client in each request.
    #[must_use]
    pub fn forwards_requests(&self, address: IpAddr) -> bool {
        self.proxy_protocol.is_none() && self.has(address)
    }

    /// True if a connection from `address` must begin with a PROXY header.
    pub(crate) fn uses_proxy_protocol(&self, address: IpAddr) -> bool {
        self.proxy_protocol.is_some() && self.has(address)
    }

    /// The client of the proxy at `from`, by the header `announced`.
    pub(crate) fn client(&self, from: SocketAddr, announced: ProxyHeaderInfo) -> ClientInfo {
        let Some(client) = announced.client else {
            return ClientInfo::from(from); // the proxy connects for itself
        };
        let tls_port = self.proxy_protocol.unwrap_or_default().tls_port;
        let came_to_it = || announced.port.is_some() && announced.port == tls_port;
        ClientInfo {
            address: client,
            is_tls: announced.is_secure.unwrap_or_else(came_to_it),
        }
    }
}

/// The client of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientInfo {
    /// The client's address: that of the connection, or the one that a trusted proxy announced.
    pub address: SocketAddr,
    /// True if the client used TLS, which the proxy terminated.
    pub is_tls: bool,
}

impl From<SocketAddr> for ClientInfo {
    fn from(address: SocketAddr) -> Self {
        Self {
            address,
            is_tls: false,
        }
    }
}

/// The current trusted proxies. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct SharedTrustedProxies(Arc<RwLock<Arc<TrustedProxies>>>);

impl SharedTrustedProxies {
    /// Sets the first proxies.
    #[must_use]
    pub fn new(in_front: Arc<TrustedProxies>) -> Self {
        Self(Arc::new(RwLock::new(in_front)))
    }

    /// Replaces the trusted proxies. Open connections keep their client addresses.
    pub fn replace(&self, in_front: Arc<TrustedProxies>) {
        *self.0.write() = in_front;
    }

    pub(crate) fn now(&self) -> Arc<TrustedProxies> {
        let now = self.0.read();
        now.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn they_stand_at_addresses_and_in_ranges() {
        let texts = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"].map(str::to_owned);
        let in_front = TrustedProxies::read(&texts).expect("the addresses are valid");
        for (address, stands) in [
            ("10.1.2.3", true),
            ("::ffff:10.0.0.5", true),
            ("2001:db8::1", true),
            ("192.0.2.1", true),
            ("192.0.2.2", false),
            ("11.0.0.1", false),
        ] {
            assert_eq!(in_front.has(ip(address)), stands, "{address}");
            assert_eq!(in_front.forwards_requests(ip(address)), stands, "{address}");
            assert!(!in_front.uses_proxy_protocol(ip(address)), "{address}");
        }
        let in_front = in_front.with_proxy_protocol(ProxyProtocolOptions::default());
        assert!(
            in_front.uses_proxy_protocol(ip("10.1.2.3"))
                && !in_front.forwards_requests(ip("10.1.2.3"))
        );
        assert!(!in_front.uses_proxy_protocol(ip("192.0.2.2")));
        let texts = ["10.0.0.0/8", "proxy.test"].map(str::to_owned);
        let wrong = TrustedProxies::read(&texts).expect_err("a name is not a valid address");
        assert_eq!(wrong, "proxy.test");
    }

    #[test]
    fn tls_of_a_client_follows_from_the_header_or_the_port() {
        let balancer = SocketAddr::from(([10, 0, 0, 5], 1));
        let client = SocketAddr::from(([203, 0, 113, 7], 2));
        for (tls_port, port, is_secure, expected) in [
            (None, 443, None, false),
            (None, 443, Some(true), true),
            (Some(443), 443, None, true),
            (Some(443), 443, Some(false), false),
            (Some(443), 80, None, false),
            (Some(443), 80, Some(true), true),
        ] {
            let in_front =
                TrustedProxies::default().with_proxy_protocol(ProxyProtocolOptions { tls_port });
            let announced = ProxyHeaderInfo {
                client: Some(client),
                port: Some(port),
                is_secure,
            };
            let caller = in_front.client(balancer, announced);
            assert_eq!(caller.address, client);
            let case = format!("{tls_port:?} {port} {is_secure:?}");
            assert_eq!(caller.is_tls, expected, "{case}");
        }
        let in_front =
            TrustedProxies::default().with_proxy_protocol(ProxyProtocolOptions::default());
        let for_itself = in_front.client(balancer, ProxyHeaderInfo::default());
        assert_eq!(for_itself, ClientInfo::from(balancer));
    }
}
