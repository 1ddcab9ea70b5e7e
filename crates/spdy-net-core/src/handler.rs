//! The trait that answers requests, for every protocol.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use http::{Extensions, Request, Response};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_frame::priority::Priority;

use crate::protocol::Protocol;
use crate::refusal::Refusal;

/// How a request was received; in its extensions when a [`Handler`] gets it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestInfo {
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// True if the client uses TLS.
    pub secure: bool,
    /// The priority that the client requested; 0 for HTTP/1.1, which has none.
    pub priority: Priority,
}

/// Pushes along with a response, in any protocol. Use it before the [`Handler`] returns the response: a push must be announced
/// before the client can request the resource.
#[derive(Clone, Debug)]
pub struct Pusher(Arc<dyn PushSender>);

/// Sends pushes in one protocol.
pub trait PushSender: fmt::Debug + Send + Sync {
    /// See [`Pusher::push`].
    fn push(
        &self,
        request: &Request<()>,
        priority: Priority,
        response: Response<Body>,
    ) -> Result<BoxFuture<bool>, PushError>;
}

impl PushSender for spdy::server::Pusher {
    fn push(
        &self,
        request: &Request<()>,
        priority: Priority,
        response: Response<Body>,
    ) -> Result<BoxFuture<bool>, PushError> {
        let sending = self.push_response(request, priority, response);
        let sending = sending.map_err(|error| PushError(error.to_string()))?;
        Ok(sending.map(|sent| sent.is_ok()).boxed())
    }
}

impl Pusher {
    /// A pusher that uses `sender`, for the extensions of a request.
    pub fn new(sender: impl PushSender + 'static) -> Self {
        Self(Arc::new(sender))
    }

    /// The pusher of a request; `None` if nothing can be pushed (HTTP/1.1, HTTP/3, and HTTP/2 unless [it is
    /// enabled](crate::options::ServerOptions::http2_push)).
    #[must_use]
    pub fn of(request: &Extensions) -> Option<Self> {
        let spdy = request.get::<spdy::server::Pusher>().cloned();
        spdy.map(Self::new).or_else(|| request.get().cloned())
    }

    /// Pushes `response` as the answer to `request`, a GET of the same origin as the request of this pusher. The future sends the
    /// part that does not fit yet, and must be polled; it returns whether all of it was accepted.
    ///
    /// # Errors
    ///
    /// Why nothing was pushed: the client accepts none, or no more, or this push is not allowed.
    pub fn push(
        &self,
        request: &Request<()>,
        priority: Priority,
        response: Response<Body>,
    ) -> Result<BoxFuture<bool>, PushError> {
        self.0.push(request, priority, response)
    }
}

/// Why a push was not sent.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PushError(pub String);

/// Answers requests. The request's URI is absolute if the client sent a host.
pub trait Handler: Send + Sync + 'static {
    /// Answers `request`. If the client leaves, the future is dropped.
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>>;

    /// Called for each request that the connection answered itself, because it is invalid in HTTP/1.1, HTTP/2 or SPDY. Not called
    /// if the stream was reset instead, as over HTTP/3. Not called for a head that is too large for h2, which answers 431 without a
    /// report.
    fn refused(&self, _refusal: &Refusal<'_>) {}
}

impl fmt::Debug for dyn Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dyn Handler")
    }
}

impl<F, A> Handler for F
where
    F: Fn(Request<Body>) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        Box::pin(self(request))
    }
}
