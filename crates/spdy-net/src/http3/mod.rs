//! HTTP/3 on both sides, over quinn's QUIC (RFC 9114, RFC 9204, RFC 9218).
//!
//! ```text
//!   client.rs                      server.rs            an exchange a stream, both directions of it
//!      |  opening.rs: whose turn      |                 goaway.rs: who need not wait any more
//!   sending.rs, receiving.rs       the same             bodies, heads, trailers; RESET_STREAM, STOP_SENDING (room.rs)
//!   closer.rs                      the same             ends the connection for a fault, and remembers which
//!      |  fields.rs, qpack.rs         |                 heads <-> fields <-> header blocks
//!      |  frame.rs                    |                 frames <-> bytes of a stream
//!   control.rs                     the same             SETTINGS, GOAWAY, PRIORITY_UPDATE, each side's own stream
//!                                  floods.rs            what costs more than it brings
//! ```
//!
//! Streams, windows, recovery and TLS are QUIC's (`quic.rs`). The layer on top is our own, because the one there is
//! (the h3 crate, 0.0.8) takes header blocks of any length a peer announces, shuts down off by one, and has no way
//! to QUIC's priorities; it is a peer in the tests instead.
//!
//! What is not here: pushes, 0-RTT, a dynamic table for header blocks, and WebTransport.

mod bell;
pub(crate) mod client;
mod closer;
pub(crate) mod code;
pub(crate) mod control;
pub mod door;
mod fault;
mod fields;
mod floods;
mod frame;
mod goaway;
#[cfg(test)]
mod loopback;
mod opening;
mod qpack;
mod receiving;
mod room;
mod sending;
pub(crate) mod server;
mod static_table;
mod watch;
