//! The server side of a session: receives requests, sends responses and pushes.

mod accept;
mod builder;
mod incoming;
mod push;
mod responder;
mod serve;

pub use crate::server::accept::{Accept, Handle};
pub use crate::server::builder::Builder;
#[cfg(feature = "tokio-runtime")]
pub use crate::server::builder::handshake;
pub use crate::server::push::Pusher;
pub use crate::server::responder::{Responder, ResponseBodyFuture};
#[cfg(feature = "tokio-runtime")]
pub use crate::server::serve::{serve, serve_until};
pub use crate::session::driver::Connection;
pub use crate::session::incoming::Incoming;
pub use crate::stream::OpenOptions;
pub use spdy_http::push::PushForm;
