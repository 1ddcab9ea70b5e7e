//! Requests to `localhost`, and a handler that echoes them: for tests of connections.

use bytes::Bytes;
use http::{Method, Request, Response, header};
use spdy::BoxError;
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_net_core::handler::RequestInfo;

/// The longest body that is collected.
const MAX_BODY_BYTES: usize = 1 << 30;

/// Tokio's clock, timers and tasks.
#[must_use]
pub fn runtime() -> SharedRuntime {
    SharedRuntime::new(TokioRuntime::start())
}

/// A GET of `path`.
///
/// # Panics
///
/// If `path` is not the path of a URL.
#[must_use]
pub fn get(path: &str) -> Request<Body> {
    Request::get(format!("http://localhost{path}"))
        .body(Body::empty())
        .expect("the path is valid")
}

/// A POST of `body` to `path`.
///
/// # Panics
///
/// If `path` is not the path of a URL.
#[must_use]
pub fn post(path: &str, body: impl Into<Bytes>) -> Request<Body> {
    Request::post(format!("http://localhost{path}"))
        .body(Body::full(body))
        .expect("the path is valid")
}

/// Reads the body of `response` to its end.
///
/// # Errors
///
/// The error of the body.
pub async fn read(response: Response<Body>) -> Result<Bytes, BoxError> {
    response.into_body().collect_up_to(MAX_BODY_BYTES).await
}

/// Responds to `/N` with N bytes of [`pattern`] and to a POST with its body, or with 400 if that body fails.
///
/// The headers `x-uri`, `x-protocol`, `x-secure` and `x-priority` report how the request was received.
///
/// # Panics
///
/// If the request has no [`RequestInfo`].
pub async fn echo(request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let info = head.extensions.get::<RequestInfo>();
    let info = *info.expect("every request has connection info");
    let requested_len: usize = head.uri.path().trim_start_matches('/').parse().unwrap_or(0);
    let body = match head.method {
        Method::POST => match body.collect_up_to(MAX_BODY_BYTES).await {
            Ok(bytes) => bytes,
            Err(_) => {
                let response = Response::builder().status(400).body(Body::empty());
                return response.expect("the status is valid");
            }
        },
        _ => pattern(requested_len),
    };
    Response::builder()
        .header(header::CONTENT_LENGTH, body.len())
        .header("x-uri", head.uri.to_string())
        .header("x-protocol", info.protocol.alpn())
        .header("x-secure", info.secure.to_string())
        .header("x-priority", info.priority.to_string())
        .body(if head.method == Method::HEAD {
            Body::empty()
        } else {
            Body::full(body)
        })
        .expect("the headers are valid")
}

/// `len` bytes that do not repeat at the boundaries of frames.
#[must_use]
pub fn pattern(len: usize) -> Bytes {
    (0..len)
        .map(|at| (at % 251) as u8)
        .collect::<Vec<_>>()
        .into()
}
