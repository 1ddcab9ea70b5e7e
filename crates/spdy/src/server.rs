//! The server side of a session: requests in, responses and pushes out.
use std::future::Future;
use std::task::{Context, Poll};

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
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

/// How a server session is set up.
#[derive(Clone)]
pub struct Builder { config: Config, send_trailers: bool }
session_options!(Builder);
impl Builder {
    /// The defaults of `version`.
    pub fn new(version: Version) -> Self { Self { config: Config::new(Role::Server, version), send_trailers: false } }
    /// A session over `io`. Nothing moves until the connection is run.
    pub fn handshake<T>(self, io: T, runtime: SharedRuntime) -> (Accept, Connection<T>)
    where T: AsyncRead + AsyncWrite + Unpin { let _ = (io, runtime, self.send_trailers); todo!() }
}

/// Streams that the peer opens. Dropping it shuts the session down.
#[derive(Debug)]
pub struct Accept { _private: () }
impl Accept {
    /// The next stream; `None` when the session has ended.
    pub async fn next(&mut self) -> Option<Incoming> { todo!() }
    /// As [`next`](Self::next), for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> { let _ = cx; todo!() }
    /// Counters, shutdown and the like, from anywhere.
    pub fn handle(&self) -> Handle { todo!() }
}
/// A server session seen from outside.
#[derive(Clone, Debug)]
pub struct Handle { _private: () }
impl Handle {
    /// GOAWAY: no new streams; open ones go on to their end, then the session closes.
    pub fn shutdown(&self) { todo!() }
    /// Ends at once.
    pub fn abort(&self) { todo!() }
    /// Streams that are open.
    pub fn active_streams(&self) -> usize { todo!() }
    /// Counters so far.
    pub fn stats(&self) -> Stats { todo!() }
}

/// A stream that the peer opened and nobody answered yet. Dropping it refuses it.
#[derive(Debug)]
pub struct Incoming { _private: () }
impl Incoming {
    /// Its headers.
    pub fn headers(&self) -> &HeaderBlock { todo!() }
    /// Its priority.
    pub fn priority(&self) -> Priority { todo!() }
    /// Its number.
    pub fn id(&self) -> StreamId { todo!() }
    /// Reads it as an HTTP request. URI: absolute, from scheme, host and path. The extensions hold the
    /// stream's [`Priority`], its [`StreamId`] and a [`Pusher`].
    pub fn into_request(self) -> Result<(http::Request<Body>, Responder), spdy_http::request::BadRequest> { todo!() }
    /// Answers with SYN_REPLY and takes the stream as it is.
    pub fn accept_raw(self, headers: &HeaderBlock) -> Result<Stream, Error> { let _ = headers; todo!() }
    /// RST_STREAM.
    pub fn reject(self, status: RstStatus) { let _ = status; todo!() }
}

/// Answers one request. Dropped unused it resets the stream with INTERNAL_ERROR.
#[derive(Debug)]
pub struct Responder { _private: () }
impl Responder {
    /// The stream.
    pub fn id(&self) -> StreamId { todo!() }
    /// Sends `response`; done when its last byte was handed to the session.
    pub async fn respond<B>(self, response: http::Response<B>) -> Result<(), Error>
    where B: http_body::Body<Data = Bytes> + Send + 'static, B::Error: Into<BoxError> { let _ = response; todo!() }
    /// Pushes the answer to `request` (a GET, absolute URI of the same origin) beside this response; call it before `respond`.
    pub fn push(&self, request: http::Request<()>, priority: Priority) -> Result<Responder, Error> { let _ = (request, priority); todo!() }
    /// RST_STREAM.
    pub fn reset(self, status: RstStatus) { let _ = status; todo!() }
    /// Ready when the peer gave the stream up.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Error> { let _ = cx; todo!() }
}
/// Pushes beside a response; found in the extensions of a request.
#[derive(Clone, Debug)]
pub struct Pusher { _private: () }
impl Pusher {
    /// As [`Responder::push`].
    pub fn push(&self, request: http::Request<()>, priority: Priority) -> Result<Responder, Error> { let _ = (request, priority); todo!() }
}

/// Serves `io` until its session ends: `service` is called for every request. Returns `Ok` for an orderly end.
pub async fn serve<T, S, F, B>(io: T, builder: Builder, runtime: SharedRuntime, service: S) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: FnMut(http::Request<Body>) -> F + Send,
    F: Future<Output = http::Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{ let _ = (io, builder, runtime, service); todo!() }

/// As [`serve`]; when `stop` completes the session is shut down and ends with its last stream.
pub async fn serve_until<T, S, F, B>(io: T, builder: Builder, runtime: SharedRuntime, service: S, stop: impl Future<Output = ()> + Send) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: FnMut(http::Request<Body>) -> F + Send,
    F: Future<Output = http::Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{ let _ = (io, builder, runtime, service, stop); todo!() }
