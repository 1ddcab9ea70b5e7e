//! Two ends of one connection in memory, each with its driver.

pub(crate) mod takes_nothing;
pub(crate) mod upgrade;
pub(crate) mod virtual_world;

use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::{Body, SharedRuntime, TokioRuntime, Version, client, server};
use tokio::io::DuplexStream;

/// Real time on the tokio runtime of the test.
pub(crate) fn runtime() -> SharedRuntime {
    SharedRuntime::new(TokioRuntime::start())
}

/// Bytes in flight each way.
const PIPE: usize = 64 * 1024;

/// A pipe with both ends.
pub(crate) fn pipe() -> (DuplexStream, DuplexStream) {
    tokio::io::duplex(PIPE)
}

/// A client session with a server that runs `service`. The task ends with the server's session.
pub(crate) fn connect_to_service<S, F>(
    version: Version,
    service: S,
) -> (
    client::Session,
    tokio::task::JoinHandle<Result<(), spdy::Error>>,
)
where
    S: FnMut(Request<Body>) -> F + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    connect_to_service_with(
        client::Builder::new(version),
        server::Builder::new(version),
        service,
    )
}

/// As [`connect_to_service`], with builders of the caller.
pub(crate) fn connect_to_service_with<S, F>(
    client: client::Builder,
    server: server::Builder,
    service: S,
) -> (
    client::Session,
    tokio::task::JoinHandle<Result<(), spdy::Error>>,
)
where
    S: FnMut(Request<Body>) -> F + Send + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let (near, far) = pipe();
    let runtime = runtime();
    let server_task = tokio::spawn(server.serve(far, runtime.clone(), service));
    let (session, connection) = client.handshake(near, runtime);
    connection.spawn();
    (session, server_task)
}

/// A GET of `path`.
pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(format!("http://example.org{path}"))
        .body(Body::empty())
        .expect("a valid request")
}

/// A POST of `body` to `path`.
pub(crate) fn post(path: &str, body: Body) -> Request<Body> {
    Request::post(format!("http://example.org{path}"))
        .body(body)
        .expect("a valid request")
}

/// All of a body.
pub(crate) async fn bytes_of(response: Response<Body>) -> Bytes {
    response
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes()
}

/// `length` bytes that differ from place to place.
pub(crate) fn pattern(length: usize) -> Bytes {
    (0..length)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}
