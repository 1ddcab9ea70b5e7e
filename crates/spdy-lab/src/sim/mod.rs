//! Virtual time: an executor whose clock jumps, and a network of packets under it.
//!
//! The server and the client that ship run here unchanged. They are async code over a
//! [`Runtime`](spdy::runtime::Runtime) and a [`Network`](spdy_net::network::Network); in a program these
//! are tokio and the system's sockets, here they are [`runtime`] and [`network`]:
//!
//! ```text
//!   browser.rs ── spdy-client          spdy-server
//!                     │                     │            real SPDY, HTTP and TLS bytes
//!                 sim/socket.rs         sim/socket.rs    AsyncRead + AsyncWrite
//!                     │                     │
//!                 netem Tcp ── segments ── netem Tcp     sim/carrier.rs moves them; datagrams of QUIC
//!                           │              │             (sim/udp.rs) go the same way
//!                           └── netem Path ──┘           rate, delay, queue, loss
//!                     every event: one heap of timers in sim/executor.rs
//! ```
//!
//! No thread, no system clock, no unseeded chance: the same seed gives the same nanoseconds.

mod carrier;
mod config;
mod datagram;
pub mod dns;
mod endpoint;
pub(crate) mod epoch;
pub mod executor;
pub mod network;
mod packet;
pub mod runtime;
pub mod seed;
pub mod socket;
mod timers;
pub mod traffic;
mod udp;
