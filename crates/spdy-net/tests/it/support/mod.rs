//! Two ends in one process: a server of `spdy-net` behind a pipe, and a client's connection to it.

pub(crate) mod http3;

use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::ServerTls;
pub(crate) use spdy_testkit::echo::{echo, get, pattern, post, read, runtime};
pub(crate) use spdy_testkit::tls::{tls_pair, without_key_log};

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
    let (server, client) = (ServerOptions::default(), ClientOptions::default());
    connection_with(protocol, handler, server, &client).await
}

/// The same with options of the server and of the client.
pub(crate) async fn connection_with(
    protocol: Protocol,
    handler: impl Handler,
    server: ServerOptions,
    client: &ClientOptions,
) -> Connection {
    connection_in(runtime(), protocol, handler, server, client).await
}

/// The same with the server in the time of `server_runtime`.
pub(crate) async fn connection_in(
    server_runtime: SharedRuntime,
    protocol: Protocol,
    handler: impl Handler,
    server: ServerOptions,
    client: &ClientOptions,
) -> Connection {
    let protocols = &[protocol];
    let io = serve_in(
        server_runtime,
        protocols,
        handler,
        None,
        server,
        Latch::new(),
    );
    Connection::start(io, protocol, 0, client, &runtime())
        .await
        .unwrap()
}

/// A connection of `protocol` to `handler`, by ALPN.
pub(crate) async fn secure_connection(protocol: Protocol, handler: impl Handler) -> Connection {
    let (server, client) = tls_pair(&without_key_log());
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
