//! Answers http-01 requests before a handler: requests for known tokens are answered, all others are passed on, so that an origin
//! behind us can obtain certificates by itself.

use std::sync::Arc;

use http::{HeaderValue, Method, Request, Response, header};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_net::handler::Handler;
use spdy_net::refusal::Refusal;

use crate::challenge::Http01Tokens;

/// The path that an authority requests (RFC 8555 §8.3).
const PATH: &str = "/.well-known/acme-challenge/";

/// A handler that answers http-01 requests first.
pub struct Http01Handler {
    tokens: Http01Tokens,
    rest: Arc<dyn Handler>,
}

impl std::fmt::Debug for Http01Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answering").finish_non_exhaustive()
    }
}

impl Http01Handler {
    /// Passes all requests that are not for `tokens` to `rest`.
    #[must_use]
    pub fn new(tokens: Http01Tokens, rest: Arc<dyn Handler>) -> Self {
        Self { tokens, rest }
    }

    fn authorization(&self, request: &Request<Body>) -> Option<String> {
        let token = request.uri().path().strip_prefix(PATH)?;
        let is_get_or_head = matches!(*request.method(), Method::GET | Method::HEAD);
        self.tokens.authorization(token).filter(|_| is_get_or_head)
    }
}

impl Handler for Http01Handler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let Some(authorization) = self.authorization(&request) else {
            return self.rest.answer(request);
        };
        let mut response = Response::new(Body::full(authorization));
        let headers = response.headers_mut();
        let text = HeaderValue::from_static("application/octet-stream");
        headers.insert(header::CONTENT_TYPE, text);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Box::pin(std::future::ready(response))
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        self.rest.refused(refusal);
    }
}
