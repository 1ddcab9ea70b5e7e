//! SPDY/2, 3 and 3.1 for async Rust: sessions, streams, and HTTP over them.
//!
//! A session runs over anything that is `AsyncRead + AsyncWrite`: TCP, TLS after ALPN said `spdy/3.1`, a
//! pipe in a test. A handshake gives two things: a handle, to be used from any task, and a
//! [`Connection`](client::Connection), a future that does the I/O and must run beside it.
//!
//! ```
//! use http::{Request, Response};
//! use spdy::{Body, Priority, client, server};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), spdy::Error> {
//! let (near, far) = tokio::io::duplex(64 * 1024);
//!
//! // A server is a function from request to response.
//! tokio::spawn(server::serve(far, |request: Request<Body>| async move {
//!     Response::new(Body::from(format!("you asked for {}", request.uri().path()).into_bytes()))
//! }));
//!
//! // A client opens a session, and asks as much as it likes at once.
//! let (session, connection) = client::handshake(near);
//! connection.spawn();
//! let get = |path| Request::get(format!("http://example.org{path}")).body(Body::empty()).expect("a valid url");
//! let (page, style) = tokio::join!(
//!     session.request(get("/page"), Priority::HIGHEST),
//!     session.request(get("/style.css"), Priority::new(1)),
//! );
//! let text = page?.into_body().collect_up_to(1_000_000).await.expect("a body");
//! assert_eq!(text, "you asked for /page");
//! assert_eq!(style?.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! # What is where
//!
//! | | |
//! | --- | --- |
//! | [`client`] | sessions that ask: requests by priority, pushes, raw streams |
//! | [`server`] | sessions that answer: [`serve`](server::serve) a function, or take streams one by one |
//! | [`stream`] | raw streams, `AsyncRead + AsyncWrite`, with any headers |
//! | [`upgrade`] | sessions behind HTTP/1.1 `Upgrade: SPDY/3.1`, as Kubernetes and Docker have them |
//! | [`body`] | the one body type: in memory, from a stream, or any `http_body::Body` |
//! | [`error`] | what went wrong, and whether to try again |
//! | [`runtime`] | clock, timers and tasks: tokio's, or your own |
//!
//! # Back-pressure
//!
//! Credit goes back to the peer when the application has read, not when bytes arrived, and a body is
//! asked for more only when the session has room for it. So a slow reader stops its sender and nobody
//! else, and what a peer can make a session hold is bounded by the limits of its [`Config`], each of
//! which has a name and a default.
//!
//! # Without tokio's runtime
//!
//! Tokio's traits and locks are used, its runtime only in [`TokioRuntime`]. With another [`Runtime`] the
//! same client and server run in virtual time, on one thread, and repeat to the nanosecond.

pub mod body;
mod buffers;
mod builder;
pub mod client;
mod dispatch;
mod entry;
pub mod error;
pub mod metrics;
mod receive_body;
pub mod runtime;
mod send_body;
mod sendable;
pub mod server;
mod session_driver;
mod shared;
pub mod stream;
mod stream_ref;
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
pub use spdy_session::config::{Config, Role};
pub use spdy_session::error::SessionError;
pub use spdy_session::limit::{Hits, Limit};
pub use spdy_session::observe::{Direction, Observe, Seen};
pub use spdy_session::session::Stats;
pub use stream::Stream;
