//! The client side of a session: sends requests, receives responses and pushes.

mod builder;
mod incoming_streams;
mod push;
mod response;
mod session;
mod unclaimed_pushes;

pub use crate::client::builder::Builder;
#[cfg(feature = "tokio-runtime")]
pub use crate::client::builder::handshake;
pub use crate::client::incoming_streams::{IncomingStream, IncomingStreams};
pub use crate::client::push::{Push, Pushes};
pub use crate::client::response::ResponseFuture;
pub use crate::client::session::Session;
pub use crate::session::driver::Connection;
pub use crate::session::push_limits::{PushInfo, PushLimits, PushStats};
pub use crate::session::push_parent::SELECTING_HEADERS;
pub use crate::stream::OpenOptions;
