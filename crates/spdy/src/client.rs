//! The client side of a session: requests out, responses and pushes in.
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::session::Stats;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::body::{Body, BoxError};
use crate::builder::session_options;
use crate::error::Error;
use crate::runtime::SharedRuntime;
pub use crate::session_driver::Connection;
use crate::stream::Stream;

/// How a client session is set up.
#[derive(Clone)]
pub struct Builder { config: Config, send_trailers: bool }
session_options!(Builder);
impl Builder {
    /// The defaults of `version`.
    pub fn new(version: Version) -> Self { Self { config: Config::new(Role::Client, version), send_trailers: false } }
    /// A session over `io`; pushes are refused. Nothing moves until the connection is run.
    pub fn handshake<T>(self, io: T, runtime: SharedRuntime) -> (Session, Connection<T>)
    where T: AsyncRead + AsyncWrite + Unpin { let _ = (io, runtime, self.send_trailers); todo!() }
    /// Likewise, with the peer's pushes offered.
    pub fn handshake_with_pushes<T>(self, io: T, runtime: SharedRuntime) -> (Session, Pushes, Connection<T>)
    where T: AsyncRead + AsyncWrite + Unpin { let _ = (io, runtime); todo!() }
}

/// What SYN_STREAM of a raw stream says besides its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions { pub priority: Priority, pub unidirectional: bool, pub fin: bool }

/// A session's handle: cheap to clone. When the last one is gone and the last stream has ended, the session ends.
#[derive(Clone, Debug)]
pub struct Session { _private: () }
impl Session {
    /// Sends `request`; the future gives its response, and cancels the exchange when dropped before.
    pub fn request<B>(&self, request: http::Request<B>, priority: Priority) -> ResponseFuture
    where B: http_body::Body<Data = Bytes> + Send + 'static, B::Error: Into<BoxError> { let _ = (request, priority); todo!() }
    /// Opens a raw stream.
    pub async fn open(&self, headers: HeaderBlock, options: OpenOptions) -> Result<Stream, Error> { let _ = (headers, options); todo!() }
    /// Sends a PING and gives its round trip.
    pub async fn ping(&self) -> Result<Duration, Error> { todo!() }
    /// Takes no new requests; the session ends with its last stream.
    pub fn shutdown(&self) { todo!() }
    /// Ends at once: open streams are lost.
    pub fn abort(&self) { todo!() }
    /// No new request will be taken: GOAWAY came, it was shut down, or it ended.
    pub fn is_closing(&self) -> bool { todo!() }
    /// Completes when the session has ended.
    pub async fn closed(&self) { todo!() }
    /// Streams that are open, or waiting to be.
    pub fn active_streams(&self) -> usize { todo!() }
    /// Counters so far.
    pub fn stats(&self) -> Stats { todo!() }
    /// The version spoken.
    pub fn version(&self) -> Version { todo!() }
}

/// A response on its way.
#[derive(Debug)]
#[must_use = "dropping it cancels the request"]
pub struct ResponseFuture { _private: () }
impl Future for ResponseFuture {
    type Output = Result<http::Response<Body>, Error>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> { let _ = cx; todo!() }
}

/// What the peer pushes, in the order in which it came.
#[derive(Debug)]
pub struct Pushes { _private: () }
impl Pushes {
    /// The next push; `None` when the session has ended.
    pub async fn next(&mut self) -> Option<Push> { todo!() }
}
/// One pushed response. Dropped unread it is cancelled.
#[derive(Debug)]
pub struct Push { _private: () }
impl Push {
    /// The GET it answers: absolute URI, and the request headers the push named.
    pub fn request(&self) -> &http::request::Parts { todo!() }
    /// The stream.
    pub fn id(&self) -> StreamId { todo!() }
    /// The stream of the request it belongs to.
    pub fn associated_to(&self) -> StreamId { todo!() }
    /// Its priority.
    pub fn priority(&self) -> Priority { todo!() }
    /// Waits for its status and headers.
    pub async fn response(self) -> Result<http::Response<Body>, Error> { todo!() }
}
