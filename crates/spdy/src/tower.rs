//! Integration with tower: any `tower::Service` as a server, and a client session as a `tower::Service` (feature `tower`).
//!
//! ```text
//!  http::Request<Body> --> S: tower::Service --> http::Response<B>      serve(io, S)
//!  http::Request<B>    --> client::Session   --> http::Response<Body>   itself a tower::Service
//! ```
//!
//! An axum application, over plain TCP (over TLS, pass [`serve`] the stream for which ALPN chose `spdy/3.1`):
//!
//! ```no_run
//! # #[tokio::main]
//! # async fn main() -> std::io::Result<()> {
//! let app = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:6121").await?;
//! loop {
//!     tokio::spawn(spdy::tower::serve(listener.accept().await?.0, app.clone()));
//! }
//! # }
//! ```
//!
//! # Contract with tower
//!
//! Every request gets a clone of the service. Within the request's own future, the clone is polled until it is ready, and then
//! called. So a service that is not ready (a `ConcurrencyLimit`, say) delays only its own requests, of which at most
//! `max_concurrent_streams` wait. A service that panics or fails resets only its own stream, with INTERNAL_ERROR.
//!
//! The client is always ready until its session ends: requests wait in the session's queue, by priority. Wrap it in a
//! `ConcurrencyLimit` to bound that queue.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use spdy_frame::priority::Priority;
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use crate::body::{Body, BoxError};
use crate::client::{ResponseFuture, Session};
use crate::error::Error;
use crate::runtime::SharedRuntime;
use crate::server::Builder;

/// Serves SPDY/3.1 over `io` on tokio's runtime until the session ends: a clone of `service` is called for
/// every request. [`Builder::serve_service`] takes other versions, limits and runtimes.
///
/// # Errors
///
/// Why the session ended, unless it ended in order.
#[cfg(feature = "tokio-runtime")]
pub async fn serve<T, S, B>(io: T, service: S) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    serve_until(io, service, std::future::pending()).await
}

/// Like [`serve`]; when `stop` completes the session is shut down (GOAWAY) and ends with its last stream.
///
/// # Errors
///
/// Like [`serve`].
#[cfg(feature = "tokio-runtime")]
pub async fn serve_until<T, S, B>(
    io: T,
    service: S,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let builder = Builder::default();
    let runtime = SharedRuntime::tokio();
    builder.serve_service(io, runtime, service, stop).await
}

impl Builder {
    /// Serves `io` with a `tower::Service` until its session ends; when `stop` completes it is shut down (GOAWAY) and ends with its
    /// last stream. [`crate::tower`] describes how the service is called.
    ///
    /// # Errors
    ///
    /// Why the session ended, unless it ended in order.
    pub async fn serve_service<T, S, B>(
        self,
        io: T,
        runtime: SharedRuntime,
        service: S,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), Error>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send,
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let call = move |request| ServiceCall {
            service: service.clone(),
            request: Some(request),
            answering: None,
        };
        self.serve_fallible(io, runtime, call, stop).await
    }
}

/// One request: waits until its clone of the service is ready, then until that has responded.
struct ServiceCall<S: Service<Request<Body>>> {
    service: S,
    /// `Some` until the service is called.
    request: Option<Request<Body>>,
    /// `Some` after the service was called.
    answering: Option<Pin<Box<S::Future>>>,
}

/// The only pinned value is in its own box.
impl<S: Service<Request<Body>>> Unpin for ServiceCall<S> {}

impl<S: Service<Request<Body>>> Future for ServiceCall<S> {
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.request.is_some() {
            ready!(this.service.poll_ready(cx))?;
        }
        if let Some(request) = this.request.take() {
            this.answering = Some(Box::pin(this.service.call(request)));
        }
        match &mut this.answering {
            Some(answering) => answering.as_mut().poll(cx),
            None => unreachable!("polled again after the call panicked"),
        }
    }
}

/// Sends with the [`Priority`] in the request's extensions; without one, with 0, the most urgent.
impl<B> Service<Request<B>> for Session
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = ResponseFuture;

    /// Ready while the session accepts requests, otherwise [`Error::Closing`].
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(match self.is_closing() {
            true => Err(Error::Closing),
            false => Ok(()),
        })
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        let priority = request.extensions().get::<Priority>().copied();
        self.request(request, priority.unwrap_or_default())
    }
}
