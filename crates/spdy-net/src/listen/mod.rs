//! Listeners for TCP and QUIC, the proxies in front of them, and inherited sockets.

pub mod allowed_hosts;
pub(crate) mod connection_acceptor;
pub mod inherited_sockets;
pub(crate) mod open_connections;
pub(crate) mod proxy_protocol;
pub mod quic;
pub mod sockets;
mod tcp;
pub mod trusted_proxies;

pub use tcp::{ListenOptions, Listener};
