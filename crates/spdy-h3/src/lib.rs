//! HTTP/3 on both sides, over quinn's QUIC (RFC 9114, RFC 9204, RFC 9218).
//!
//! ```text
//!   quic/client.rs                    serve.rs          QUIC's handshake
//!   client.rs                         server.rs         one exchange per stream, in both directions
//!      |  quinn_shims/stream_open_queue.rs: the order   |  goaway.rs: requests that will not be processed
//!   body/send.rs, body/receive.rs     the same          bodies, heads, trailers; RESET_STREAM, STOP_SENDING
//!      |                                 |              (quinn_shims/send_budget.rs: the order of bodies)
//!   closer.rs                         the same          ends the connection for a fault, and remembers which
//!      |  fields/                        |              heads <-> fields
//!      |  compression/, qpack/           |              fields <-> header blocks, with the streams of QPACK
//!      |  frame/                         |              frames <-> bytes of a stream
//!   control/                          the same          SETTINGS, GOAWAY, PRIORITY_UPDATE, each side's own stream
//!                                     flood_budget.rs   limits frames and streams that cost more than they carry
//! ```
//!
//! Streams, windows, recovery and TLS are QUIC's (`quic/`, which imports nothing of the other files). The layer on top is our own.
//! The h3 crate (0.0.8) stores header blocks of any length that a peer announces, its GOAWAY is off by one, and it has no access to
//! QUIC's priorities. It is a peer in the tests instead.
//!
//! Not supported: pushes and WebTransport. Early data (0-RTT) is for safe requests without content. Listeners and the limits of connections are
//! in `spdy-net`, with those of the other protocols. Networks, options, timeouts and TLS are in `spdy-net-core`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

mod body;
pub mod client;
mod closer;
mod code;
mod compression;
mod control;
mod fault;
mod fields;
mod flood_budget;
mod frame;
#[doc(hidden)] // for fuzz/
pub mod fuzz_api;
mod goaway;
#[cfg(test)]
mod loopback;
mod priority_updates;
mod qpack;
pub mod quic;
mod quinn_shims;
mod role;
pub mod serve;
mod server;
mod stream_observer;
