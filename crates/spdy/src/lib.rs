#![doc = include_str!("../README.md")]
#![doc = include_str!("../GUIDE.md")]
//!
//! # Modules
//!
//! | | |
//! | --- | --- |
//! | [`client`] | client sessions: requests by priority, pushes, raw streams |
//! | [`server`] | server sessions: [`serve`](server::serve) a function, or take streams one by one |
//! | [`stream`] | raw streams, `AsyncRead + AsyncWrite`, with any headers |
//! | [`upgrade`] | sessions after HTTP/1.1 `Upgrade: SPDY/3.1`, as Kubernetes uses them |
//! | [`body`] | the one body type: in memory, from a stream, or any `http_body::Body` |
//! | [`error`] | what went wrong, and whether to try again |
//! | [`runtime`] | clock, timers and tasks: tokio's, or your own |
//! | [`tower`] | any `tower::Service` as a server, and sessions as `tower::Service` |
//! | [`metrics`] | counters over many sessions |
//! | [`trace`] | `tracing` spans of sessions and streams |
#![warn(missing_debug_implementations)]

pub mod body;
pub mod client;
pub mod error;
mod io_wrapper;
pub mod metrics;
mod receive_body;
pub mod runtime;
mod send_body;
pub mod server;
mod session;
pub mod stream;
#[cfg(feature = "tower")]
pub mod tower;
pub mod trace;
pub mod upgrade;

pub use body::{Body, BoxError};
pub use error::Error;
pub use metrics::Metrics;
#[cfg(feature = "tokio-runtime")]
pub use runtime::TokioRuntime;
pub use runtime::{Runtime, SharedRuntime};
pub use spdy_clock::Instant;
pub use spdy_frame::compress::Compression;
pub use spdy_frame::frame::Frame;
pub use spdy_frame::header_block::HeaderBlock;
pub use spdy_frame::priority::Priority;
pub use spdy_frame::secrets::Secrets;
pub use spdy_frame::status::{GoAwayStatus, RstStatus};
pub use spdy_frame::stream_id::StreamId;
pub use spdy_frame::version::Version;
pub use spdy_http::request::RequestError;
pub use spdy_session::config::{Config, FloodLimits, PushPolicy, Role, SettingsTiming};
pub use spdy_session::error::SessionError;
pub use spdy_session::limit::{Hits, Limit};
pub use spdy_session::observe::{Direction, Observe, ObservedFrame};
pub use spdy_session::session::Stats;
pub use stream::Stream;
