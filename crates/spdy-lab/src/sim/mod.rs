//! Virtual time: an executor whose clock jumps, and a network of packets under it.
//!
//! The server and the client that ship run here unchanged. They are async code over a
//! [`Runtime`](spdy::runtime::Runtime) and a [`Network`](spdy_net::network::Network); in a program these
//! are tokio and the system's sockets, here they are [`runtime`] and [`network`]:
//!
//! ```text
//!   load/         ── spdy-client          spdy-server
//!                     │                     │            real SPDY, HTTP and TLS bytes
//!                 tcp_socket.rs         tcp_socket.rs    AsyncRead + AsyncWrite
//!                     │                     │
//!                 netem Tcp ── segments ── netem Tcp     packet_network.rs moves them; datagrams of QUIC
//!                           │              │             (udp_socket.rs) go the same way
//!                           └── netem Path ──┘           rate, delay, queue, loss
//!                     every event: one heap of timers in executor.rs
//! ```
//!
//! No thread, no system clock, no unseeded chance: the same seed gives the same nanoseconds.

mod config;
mod datagram;
pub mod dns;
mod endpoint;
pub(crate) mod epoch;
pub mod executor;
mod executor_state;
pub mod network;
mod packet;
mod packet_network;
pub mod runtime;
pub mod seed;
pub mod tcp_socket;
mod timers;
pub mod traffic;
mod udp_socket;
