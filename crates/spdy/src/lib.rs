//! SPDY/2, 3 and 3.1 for async Rust. (Signatures are fixed points; the rest is being written.)

pub mod body;
mod builder;
pub mod client;
pub mod error;
pub mod runtime;
pub mod server;
mod session_driver;
pub mod stream;

pub use body::{Body, BoxError};
pub use error::Error;
pub use runtime::{Runtime, SharedRuntime, TokioRuntime};
pub use spdy_clock::Instant;
pub use spdy_frame::compress::Compression;
pub use spdy_frame::header_block::HeaderBlock;
pub use spdy_frame::priority::Priority;
pub use spdy_frame::status::{GoAwayStatus, RstStatus};
pub use spdy_frame::stream_id::StreamId;
pub use spdy_frame::version::Version;
pub use spdy_session::config::{Config, Role};
pub use spdy_session::error::SessionError;
pub use spdy_session::session::Stats;
pub use stream::Stream;
