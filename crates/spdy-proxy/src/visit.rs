//! One connection of a client: whose it is, and what it has had.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderValue, Request, Response};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_net::handler::Handler;

use crate::proxy::Proxy;

/// A connection's handler.
#[derive(Clone, Debug)]
pub struct Visit {
    proxy: Arc<Proxy>,
    from: Option<IpAddr>,
    /// Where else the same is served (RFC 7838).
    alt_svc: Option<HeaderValue>,
}

impl Visit {
    /// Of a client at `from`.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>, from: Option<IpAddr>, alt_svc: Option<HeaderValue>) -> Self {
        Self {
            proxy,
            from,
            alt_svc,
        }
    }
}

impl Handler for Visit {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let visit = self.clone();
        Box::pin(async move {
            let mut response = visit.proxy.answer(request, visit.from).await;
            if let Some(alt_svc) = visit.alt_svc {
                let headers = response.headers_mut();
                headers.entry(http::header::ALT_SVC).or_insert(alt_svc);
            }
            response
        })
    }
}
