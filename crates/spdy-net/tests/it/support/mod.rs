//! Two ends in one process: a server of `spdy-net` behind a pipe, and a client's connection to it.

pub(crate) mod http3;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, header};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

/// Every protocol.
pub(crate) const ALL: [Protocol; 5] = Protocol::ALL;
/// Those with many exchanges on a connection.
pub(crate) const MULTIPLEXED: [Protocol; 4] = [
    Protocol::Spdy(Version::V31),
    Protocol::Spdy(Version::V3),
    Protocol::Spdy(Version::V2),
    Protocol::Http2,
];
/// Bytes a pipe holds.
pub(crate) const PIPE: usize = 64 * 1024;

pub(crate) fn runtime() -> SharedRuntime {
    SharedRuntime::new(TokioRuntime::start())
}

pub(crate) fn quiet() -> TlsOptions {
    TlsOptions {
        key_log: KeyLogTarget::Disabled,
        ..TlsOptions::default()
    }
}

/// The two sides of TLS for `localhost`, which trust each other.
pub(crate) fn tls_pair(options: &TlsOptions) -> (ServerTls, ClientTls) {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &ALL, options).unwrap();
    let client = ClientTls::new(&Trust::only(vec![ca.certificate().clone()]), options).unwrap();
    (server, client)
}

/// A server with `handler` behind a pipe; the near end of the pipe.
pub(crate) fn serve(
    protocols: &[Protocol],
    handler: impl Handler,
    tls: Option<ServerTls>,
    options: ServerOptions,
    stop: Latch,
) -> BoxIo {
    serve_in(runtime(), protocols, handler, tls, options, stop)
}

/// The same in the time of `runtime`.
pub(crate) fn serve_in(
    runtime: SharedRuntime,
    protocols: &[Protocol],
    handler: impl Handler,
    tls: Option<ServerTls>,
    options: ServerOptions,
    stop: Latch,
) -> BoxIo {
    serve_with_end(runtime, protocols, handler, tls, options, stop).0
}

/// The same, with the news of its end.
pub(crate) fn serve_with_end(
    runtime: SharedRuntime,
    protocols: &[Protocol],
    handler: impl Handler,
    tls: Option<ServerTls>,
    options: ServerOptions,
    stop: Latch,
) -> (BoxIo, tokio::task::JoinHandle<()>) {
    let (near, far) = tokio::io::duplex(PIPE);
    let protocols = protocols.to_vec();
    let server_task = tokio::spawn(async move {
        let (handler, far, tls) = (Arc::new(handler), Box::new(far), tls.as_ref());
        let _ = serve_connection(far, handler, &protocols, tls, &options, &runtime, &stop).await;
    });
    (Box::new(near), server_task)
}

/// A plain connection of `protocol` to `handler`.
pub(crate) async fn connection(protocol: Protocol, handler: impl Handler) -> Connection {
    let io = serve(
        &[protocol],
        handler,
        None,
        ServerOptions::default(),
        Latch::new(),
    );
    Connection::start(io, protocol, 0, &ClientOptions::default(), &runtime())
        .await
        .unwrap()
}

/// A connection of `protocol` to `handler`, by ALPN.
pub(crate) async fn secure_connection(protocol: Protocol, handler: impl Handler) -> Connection {
    let (server, client) = tls_pair(&quiet());
    let io = serve(
        &ALL,
        handler,
        Some(server),
        ServerOptions::default(),
        Latch::new(),
    );
    let (io, negotiated) = client
        .with_alpn(&[protocol])
        .connect(io, "localhost")
        .await
        .unwrap();
    assert_eq!(negotiated.protocol, Some(protocol));
    Connection::start(io, protocol, 0, &ClientOptions::default(), &runtime())
        .await
        .unwrap()
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

/// `/N` returns N bytes; a POST is echoed; every response reports how its request arrived.
pub(crate) async fn echo(request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let arrival = *head
        .extensions
        .get::<RequestInfo>()
        .expect("every request has connection info");
    let requested_len: usize = head.uri.path().trim_start_matches('/').parse().unwrap_or(0);
    let body = match head.method {
        http::Method::POST => match body.collect_up_to(1 << 30).await {
            Ok(bytes) => bytes,
            Err(_) => return Response::builder().status(400).body(Body::empty()).unwrap(),
        },
        _ => pattern(requested_len),
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
