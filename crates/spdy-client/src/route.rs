//! The connection of an exchange: protocol, address, TLS.

use std::net::SocketAddr;

use spdy_net::protocol::Protocol;
use spdy_net::tls::HandshakeInfo;

/// The connection of an exchange; put into the extensions of its response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route {
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// Address of the server.
    pub address: SocketAddr,
    /// The result of the TLS handshake; `None` on plain TCP.
    pub tls: Option<HandshakeInfo>,
    /// True if the connection was opened for another origin ([`ip_pooling`](crate::config::Config::ip_pooling)).
    pub shared: bool,
}
