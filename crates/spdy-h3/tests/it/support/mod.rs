//! Requests, a handler, and the time and TLS of both ends.

pub(crate) mod http3;
pub(crate) mod raw_server;

use bytes::Bytes;
use http::{Request, Response, header};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_net_core::handler::RequestInfo;
use spdy_net_core::tls::{KeyLogTarget, TlsOptions};

pub(crate) fn runtime() -> SharedRuntime {
    SharedRuntime::new(TokioRuntime::start())
}

/// TLS without a key log.
pub(crate) fn quiet() -> TlsOptions {
    TlsOptions {
        key_log: KeyLogTarget::Disabled,
        ..TlsOptions::default()
    }
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(format!("http://localhost{path}"))
        .body(Body::empty())
        .unwrap()
}

pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Body> {
    Request::post(format!("http://localhost{path}"))
        .body(Body::full(body))
        .unwrap()
}

pub(crate) async fn read(response: Response<Body>) -> Result<Bytes, spdy::BoxError> {
    response.into_body().collect_up_to(1 << 30).await
}

/// Responds to `/N` with N bytes and to a POST with its body. The response has headers that report how the request came.
pub(crate) async fn echo(request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let arrival = *head
        .extensions
        .get::<RequestInfo>()
        .expect("every request has connection info");
    let request: usize = head.uri.path().trim_start_matches('/').parse().unwrap_or(0);
    let body = match head.method {
        http::Method::POST => match body.collect_up_to(1 << 30).await {
            Ok(bytes) => bytes,
            Err(_) => return Response::builder().status(400).body(Body::empty()).unwrap(),
        },
        _ => pattern(request),
    };
    Response::builder()
        .header(header::CONTENT_LENGTH, body.len())
        .header("x-uri", head.uri.to_string())
        .header("x-protocol", arrival.protocol.alpn())
        .header("x-secure", arrival.secure.to_string())
        .header("x-priority", arrival.priority.to_string())
        .body(if head.method == http::Method::HEAD {
            Body::empty()
        } else {
            Body::full(body)
        })
        .unwrap()
}

/// Bytes that do not repeat where frames do.
pub(crate) fn pattern(len: usize) -> Bytes {
    (0..len)
        .map(|at| (at % 251) as u8)
        .collect::<Vec<_>>()
        .into()
}
