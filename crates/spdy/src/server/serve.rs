//! Runs a whole server session in one future.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::Instrument;

use crate::body::{Body, BoxError};
use crate::error::Error;
use crate::runtime::{BoxFuture, SharedRuntime};
use crate::server::accept::Accept;
use crate::server::builder::{Builder, OnBadRequest};
use crate::server::responder::Responder;

/// Serves SPDY/3.1 over `io` on tokio's runtime until the session ends: `service` is called for every request. See
/// [`Builder::serve`] for other versions, limits and runtimes.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> std::io::Result<()> {
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:6121").await?;
/// loop {
///     let (socket, _) = listener.accept().await?;
///     tokio::spawn(spdy::server::serve(socket, |_request| async { http::Response::new(spdy::Body::from("hello")) }));
/// }
/// # }
/// ```
///
/// # Errors
///
/// Why the session ended, unless it ended in order.
#[cfg(feature = "tokio-runtime")]
pub async fn serve<T, S, F, B>(io: T, service: S) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: FnMut(Request<Body>) -> F + Send,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let builder = Builder::default();
    builder.serve(io, SharedRuntime::tokio(), service).await
}

/// Like [`serve`]; when `stop` completes the session is shut down (GOAWAY) and ends with its last stream.
///
/// # Errors
///
/// Like [`serve`].
#[cfg(feature = "tokio-runtime")]
pub async fn serve_until<T, S, F, B>(
    io: T,
    service: S,
    stop: impl Future<Output = ()> + Send,
) -> Result<(), Error>
where
    T: AsyncRead + AsyncWrite + Unpin + Send,
    S: FnMut(Request<Body>) -> F + Send,
    F: Future<Output = Response<B>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let builder = Builder::default();
    let runtime = SharedRuntime::tokio();
    builder.serve_until(io, runtime, service, stop).await
}

impl Builder {
    /// Serves `io` until its session ends: `service` is called for every request.
    ///
    /// A response that is ready at once is written in the same batch as others. A pending one is finished by a task of the
    /// `runtime`. When the peer resets a request, its future is dropped. An invalid request is answered with 400, without calling
    /// the service. A service that panics resets only its own stream, with INTERNAL_ERROR.
    ///
    /// # Errors
    ///
    /// Why the session ended, unless it ended in order.
    pub async fn serve<T, S, F, B>(
        self,
        io: T,
        runtime: SharedRuntime,
        service: S,
    ) -> Result<(), Error>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send,
        S: FnMut(Request<Body>) -> F + Send,
        F: Future<Output = Response<B>> + Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let stop = std::future::pending();
        self.serve_until(io, runtime, service, stop).await
    }

    /// Like [`serve`](Self::serve); when `stop` completes the session is shut down (GOAWAY) and ends with its last stream.
    ///
    /// # Errors
    ///
    /// Like [`serve`](Self::serve).
    pub async fn serve_until<T, S, F, B>(
        self,
        io: T,
        runtime: SharedRuntime,
        mut service: S,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), Error>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send,
        S: FnMut(Request<Body>) -> F + Send,
        F: Future<Output = Response<B>> + Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = |request| service(request).map(Ok::<_, Infallible>);
        self.serve_fallible(io, runtime, service, stop).await
    }

    /// Like [`serve_until`](Self::serve_until), for a service that may fail: its stream is then reset with
    /// INTERNAL_ERROR.
    ///
    /// The session begins here, not in the future: otherwise the future would contain the builder for as long as the session lasts.
    pub(crate) fn serve_fallible<T, S, F, B, E>(
        self,
        io: T,
        runtime: SharedRuntime,
        mut service: S,
        stop: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<(), Error>>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send,
        S: FnMut(Request<Body>) -> F + Send,
        F: Future<Output = Result<Response<B>, E>> + Send + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
        E: Into<BoxError> + 'static,
    {
        let on_bad_request = self.on_bad_request.clone();
        let (mut accept, mut connection) = self.handshake(io, runtime.clone());
        let stop = stop.fuse();
        async move {
            let mut stop = pin!(stop);
            poll_fn(|cx| {
                if stop.as_mut().poll(cx).is_ready() {
                    accept.handle().shutdown();
                }
                connection.poll_run(cx, |cx| {
                    serve_all(
                        &mut accept,
                        &runtime,
                        &mut service,
                        on_bad_request.as_ref(),
                        cx,
                    );
                })
            })
            .await
        }
    }
}

/// Calls the service for every stream that has arrived.
fn serve_all<S, F, B, E>(
    accept: &mut Accept,
    runtime: &SharedRuntime,
    service: &mut S,
    on_bad_request: Option<&OnBadRequest>,
    cx: &mut Context<'_>,
) where
    S: FnMut(Request<Body>) -> F,
    F: Future<Output = Result<Response<B>, E>> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError> + 'static,
{
    while let Some(incoming) = accept.try_next() {
        let (request, responder) = match incoming.into_request() {
            Ok(both) => both,
            Err(error) => {
                if let Some(on_bad_request) = on_bad_request {
                    on_bad_request(&error);
                }
                continue;
            }
        };
        let span = responder.span.clone();
        // Taken inside, because each closure that owns the request would move it once more.
        let mut request = Some(request);
        let call = AssertUnwindSafe(|| {
            let _entered = span.enter();
            request.take().map(&mut *service)
        });
        let Ok(Some(answering)) = std::panic::catch_unwind(call) else {
            continue;
        };
        let mut exchange: BoxFuture<()> = Box::pin(exchange(responder, answering));
        let poll = AssertUnwindSafe(|| span.in_scope(|| exchange.as_mut().poll(cx)));
        match std::panic::catch_unwind(poll) {
            Ok(Poll::Ready(())) => {}
            Ok(Poll::Pending) => {
                let guarded = AssertUnwindSafe(exchange).catch_unwind();
                let rest = guarded.map(|ended| ended.unwrap_or_else(|_| log_panic()));
                runtime.spawn(Box::pin(rest.instrument(span)));
            }
            Err(_) => log_panic(),
        }
    }
}

fn log_panic() {
    tracing::error!("the service panicked");
}

/// Handles one request until its response was sent.
async fn exchange<F, B, E>(mut responder: Responder, answering: F)
where
    F: Future<Output = Result<Response<B>, E>>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    E: Into<BoxError> + 'static,
{
    let mut answering = pin!(answering);
    let answer = poll_fn(|cx| match answering.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        // The client no longer waits: the service can stop.
        Poll::Pending => responder.poll_reset(cx).map(|_| None),
    });
    let response = match answer.await {
        Some(Ok(response)) => response,
        Some(Err(error)) => {
            // Dropping the responder unused resets the stream.
            return tracing::warn!(error = %error.into(), "the service failed");
        }
        None => return,
    };
    match responder.begin(response) {
        Ok(None) => {}
        Ok(Some(rest)) => {
            if let Err(error) = rest.await {
                tracing::debug!(%error, "response body was not sent completely");
            }
        }
        Err(error) => tracing::debug!(%error, "request got no response"),
    }
}
