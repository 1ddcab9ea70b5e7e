//! The client as a `tower::Service` (feature `tower`), so that tower's layers can wrap it.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use spdy::body::{Body, BoxError};
use spdy::runtime::BoxFuture;
use spdy_frame::priority::Priority;
use tower_service::Service;

use crate::client::Client;
use crate::error::Error;

/// Sends with the [`Priority`] in the request's extensions; without one, with 0, the most urgent.
///
/// Always ready: requests wait in the client's queue, by priority.
impl<B> Service<Request<B>> for Client
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = BoxFuture<Result<Response<Body>, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let priority = request.extensions().get::<Priority>().copied();
        self.send(request.map(Body::wrap), priority.unwrap_or_default())
    }
}
