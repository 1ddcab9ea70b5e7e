//! SPDY/2, 3 and 3.1 for async Rust. (Contract: signatures are fixed points; docs and files are the author's.)
//!
//! `client::handshake(io, ..)` and `server::handshake(io, ..)` over any `AsyncRead + AsyncWrite`.

pub mod runtime;
pub mod client;
pub mod server;
pub mod stream;
pub mod body;
pub mod error;
