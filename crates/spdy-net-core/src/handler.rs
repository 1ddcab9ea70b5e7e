//! Who answers: one trait, whatever protocol the request came by.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt;
use http::{Extensions, Request, Response};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_frame::priority::Priority;

use crate::protocol::Protocol;
use crate::refusal::Refusal;

/// How a request came; in its extensions when a [`Handler`] sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestInfo {
    /// Spoken on the connection.
    pub protocol: Protocol,
    /// The client came over TLS.
    pub secure: bool,
    /// The priority that the client requested; 0 for HTTP/1.1, which has none.
    pub priority: Priority,
}

/// Pushes beside a response, in any protocol. Use it before the [`Handler`] returns the response: a push
/// must be announced before the client can request it.
#[derive(Clone, Debug)]
pub struct Pusher(Arc<dyn PushSender>);

/// Pushes of one protocol.
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
    /// A pusher by `sender`, for the extensions of a request.
    pub fn new(sender: impl PushSender + 'static) -> Self {
        Self(Arc::new(sender))
    }

    /// The one that came with a request; `None` where nothing can be pushed (HTTP/1.1, HTTP/3, and HTTP/2 unless
    /// [it is enabled](crate::options::ServerOptions::http2_push)).
    #[must_use]
    pub fn of(request: &Extensions) -> Option<Self> {
        let spdy = request.get::<spdy::server::Pusher>().cloned();
        spdy.map(Self::new).or_else(|| request.get().cloned())
    }

    /// Pushes `response` as the answer to `request`, a GET of the same origin as the request it came with. The
    /// future sends what there is no room for yet, and must be run; it gives whether all of it was taken.
    ///
    /// # Errors
    ///
    /// Why nothing was pushed: the client takes none, or no more, or this may not be.
    pub fn push(
        &self,
        request: &Request<()>,
        priority: Priority,
        response: Response<Body>,
    ) -> Result<BoxFuture<bool>, PushError> {
        self.0.push(request, priority, response)
    }
}

/// Why something was not pushed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PushError(pub String);

/// Answers requests. The request's URI is absolute where the client named a host.
pub trait Handler: Send + Sync + 'static {
    /// The answer to `request`. A future that is dropped belongs to a client that left.
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>>;

    /// Called with what the connection answered by itself: what cannot be read as a request over HTTP/1.1, HTTP/2 or
    /// SPDY. It is not called where the stream ended instead of an answer, as over HTTP/3. It is not called for a head
    /// that h2 finds too large: h2 answers 431 itself, without a report.
    fn refused(&self, _refusal: &Refusal<'_>) {}
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
