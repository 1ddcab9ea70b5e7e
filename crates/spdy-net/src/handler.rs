//! Who answers: one trait, whatever protocol the request came by.

use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_frame::priority::Priority;

use crate::protocol::Protocol;

/// How a request came; in its extensions when a [`Handler`] sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// Spoken on the connection.
    pub protocol: Protocol,
    /// The connection is TLS.
    pub secure: bool,
    /// What the client asked for; 0 for HTTP/1.1, which cannot say.
    pub priority: Priority,
}

/// Answers requests. The request's URI is absolute where the client named a host.
pub trait Handler: Send + Sync + 'static {
    /// The answer to `request`. A future that is dropped belongs to a client that left.
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>>;
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
