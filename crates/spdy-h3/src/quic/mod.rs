//! QUIC by quinn, with our clock, tasks, sockets and randomness (RFC 9000, RFC 9002).
//!
//! ```text
//!   quinn::Endpoint  --datagrams-->  network::Network::datagrams      UDP (socket.rs), or virtual time
//!         |          --timers, tasks, now-->  spdy::runtime::Runtime
//!         |          --ids, skipped packet numbers, padding-->  QuicOptions::seed, or the system
//!   quinn::Connection  -->  HTTP/3: client.rs, server.rs of the crate
//! ```
//!
//! A client has a socket for each connection, as in browsers; a server has one for all. Congestion control, pacing, loss recovery
//! and acknowledgements are quinn's. A server's connections can start with the window of earlier ones
//! (`recorded_windows.rs`).

mod client;
mod early_attempt;
mod endpoint;
mod recorded_windows;
mod runtime;
mod socket;
mod transport;

pub(crate) use client::certificates;
pub use client::{QuicConnection, connect, connect_early};
pub(crate) use early_attempt::EarlyAttempt;
pub use early_attempt::PendingHandshake;
pub use endpoint::{QuicEndpoint, QuicIncoming};
pub use transport::DATAGRAM_BYTES;
#[cfg(test)]
pub(crate) use transport::MAX_UNI_STREAMS;
pub(crate) use transport::SEND_WINDOW_BYTES;

pub use spdy_net_core::options::{Congestion, QuicOptions};
