//! SPDY/2, 3 and 3.1 for async Rust.

pub mod body;
mod builder;
pub mod client;
mod dispatch;
mod entry;
pub mod error;
mod receive_body;
pub mod runtime;
mod send_body;
pub mod server;
mod session_driver;
mod shared;
pub mod stream;
mod stream_ref;

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
