//! A network in virtual time: one client on one side of a path, every server and the resolver on the other.
//!
//! ```text
//!    spdy-client           spdy-server
//!        │                     │            real SPDY, HTTP and TLS bytes
//!    tcp_socket.rs         tcp_socket.rs    AsyncRead + AsyncWrite
//!        │                     │
//!    netem Tcp ── segments ── netem Tcp     packet_network.rs moves them; datagrams of QUIC
//!              │           │                (udp_socket.rs) use the same path
//!              └─ netem Path ─┘             rate, delay, queue, loss
//! ```
//!
//! [`SimNetwork`] (`sim_network.rs`) has hosts and connections, and is the [`Network`](spdy_net::network::Network) of the client.
//! `endpoint.rs` has one end of a connection, `packet.rs` and `datagram.rs` packets in transit, `program.rs` the arrivals that a host's
//! program has not handled yet, [`dns`] name lookups, `config.rs` the configuration and `traffic.rs` the counters. Every event is a timer
//! of [`runtime`](crate::runtime).

mod config;
mod datagram;
pub mod dns;
mod endpoint;
mod packet;
mod packet_network;
mod program;
mod sim_network;
mod tcp_socket;
mod traffic;
mod udp_socket;

pub use config::NetworkConfig;
pub(crate) use config::PROGRAM_LATENCY;
pub use sim_network::{Acceptor, SimNetwork};
pub use traffic::Traffic;
