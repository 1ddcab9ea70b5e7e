//! The operator's door: metrics are for whoever reaches it, purges for who has the token.
//!
//! ```text
//! GET  /metrics                                   OpenMetrics
//! POST /purge   Authorization: Bearer <token>     {"url": "https://www.site.test/a.css"}
//!                                                 {"tag": "article-7", "site": "www.site.test", "soft": true}
//!                                                 {"prefix": "https://www.site.test/static/"}
//!                                                 {"site": "www.site.test"}
//! ```
//!
//! A soft purge makes what is meant stale: it may still be served where that is allowed, and one word of the origin makes it
//! fresh. A URL may be one of another host: what was moved from there is meant, for each site that moved it.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use serde::{Deserialize, Serialize};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_net::handler::Handler;

use crate::proxy::Proxy;
use crate::purge::Purged;

/// The largest body of a purge, bytes.
const MAX_BODY: usize = 16 * 1024;

/// What is to be purged. One of `url`, `prefix`, `tag`, or `site` alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Purge {
    /// One URL: all its variants.
    pub url: Option<String>,
    /// All URLs that begin so.
    pub prefix: Option<String>,
    /// All answers with this `Surrogate-Key` or `Cache-Tag`; `site` says whose.
    pub tag: Option<String>,
    /// A name of the site.
    pub site: Option<String>,
    /// They become stale, and stay.
    pub soft: bool,
}

/// Tells the metrics: text, for a request.
pub type Metrics = Arc<dyn Fn(&Request<Body>) -> Response<Body> + Send + Sync>;

/// Answers the operator.
#[derive(Clone)]
pub struct Admin {
    proxy: Arc<Proxy>,
    token: Arc<str>,
    metrics: Metrics,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Admin")
    }
}

/// What a purge did.
#[derive(Debug, Serialize)]
struct Done {
    purged: usize,
    soft: bool,
}

impl Admin {
    /// Of `proxy`; who purges shows `token`.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>, token: &str, metrics: Metrics) -> Self {
        Self {
            proxy,
            token: token.into(),
            metrics,
        }
    }

    async fn purge(&self, request: Request<Body>) -> Response<Body> {
        if request.method() != Method::POST {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "want POST\n".to_owned());
            let allowed = http::HeaderValue::from_static("POST");
            response.headers_mut().insert(header::ALLOW, allowed);
            return response;
        }
        if !self.is_allowed(request.headers()) {
            let why = "want Authorization: Bearer, and the token\n".to_owned();
            let mut response = text(StatusCode::UNAUTHORIZED, why);
            let wanted = http::HeaderValue::from_static("Bearer");
            let headers = response.headers_mut();
            headers.insert(header::WWW_AUTHENTICATE, wanted);
            return response;
        }
        let body = match request.into_body().collect_up_to(MAX_BODY).await {
            Ok(body) => body,
            Err(error) => return text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        };
        let wanted: Purge = match serde_json::from_slice(&body) {
            Ok(wanted) => wanted,
            Err(error) => return text(StatusCode::BAD_REQUEST, format!("no purge: {error}\n")),
        };
        match self.proxy.purge(&wanted) {
            Ok(Purged(purged)) => {
                if let Some(disk) = self.proxy.disk() {
                    // A purge that a crash undoes is none.
                    disk.settled().await;
                }
                let soft = wanted.soft;
                let done = serde_json::to_vec(&Done { purged, soft }).expect("numbers are JSON");
                let mut response = Response::new(Body::from(done));
                let json = http::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
                response
            }
            Err(why) => text(StatusCode::BAD_REQUEST, format!("{why}\n")),
        }
    }

    /// Whether the token is there; how long that takes does not depend on how much of it is right.
    fn is_allowed(&self, headers: &http::HeaderMap) -> bool {
        let given = headers.get(header::AUTHORIZATION);
        let given = given.and_then(|given| given.as_bytes().strip_prefix(b"Bearer "));
        let given = given.unwrap_or_default();
        let wanted = self.token.as_bytes();
        let differs = (0..wanted.len().max(given.len())).fold(0, |differs, at| {
            differs | (wanted.get(at).copied().unwrap_or(1) ^ given.get(at).copied().unwrap_or(2))
        });
        differs == 0 && given.len() == wanted.len() && !wanted.is_empty()
    }
}

impl Handler for Admin {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let admin = self.clone();
        Box::pin(async move {
            match request.uri().path() {
                "/purge" => admin.purge(request).await,
                "/metrics" => (admin.metrics)(&request),
                _ => text(
                    StatusCode::NOT_FOUND,
                    "want /metrics or /purge\n".to_owned(),
                ),
            }
        })
    }
}

fn text(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into_bytes()));
    *response.status_mut() = status;
    response
}
