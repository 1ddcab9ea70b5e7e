//! Options of connections: what a caller sets, with its defaults.

mod client;
mod qlog;
mod quic;
mod server;

pub use client::MIN_MAX_FRAME_BYTES;
pub use client::{ClientOptions, SpdyClientOptions};
pub use qlog::{QlogFiles, QlogWriter};
pub use quic::{Congestion, QuicOptions};
pub use server::{ServerOptions, ServerTimeouts, SpdyServerOptions};
