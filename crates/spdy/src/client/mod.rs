//! The client side of a session: requests out, responses and pushes in.

mod builder;
mod claim_push;
mod incoming_streams;
mod push;
pub(crate) mod push_parent;
mod response;
mod session;
pub(crate) mod unclaimed_pushes;

pub use crate::client::builder::Builder;
#[cfg(feature = "tokio-runtime")]
pub use crate::client::builder::handshake;
pub use crate::client::incoming_streams::{IncomingStream, IncomingStreams};
pub use crate::client::push::{Push, Pushes};
pub use crate::client::push_parent::SELECTING_HEADERS;
pub use crate::client::response::ResponseFuture;
pub use crate::client::session::Session;
pub use crate::client::unclaimed_pushes::{PushInfo, PushLimits, PushStats};
pub use crate::session::driver::Connection;
pub use crate::stream::OpenOptions;
