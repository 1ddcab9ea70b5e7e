//! HTTP/1.1 connections whose clients offer to speak another protocol: how they end when the offer is not taken.

use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{serve, tls_pair, without_key_log};

async fn refuse(_: Request<Body>) -> Response<Body> {
    let mut response = Response::new(Body::full("no upgrade"));
    *response.status_mut() = StatusCode::FORBIDDEN;
    response
}

/// hyper does not end a connection in order after a request with `Upgrade`; a TLS client reports that as truncation.
#[tokio::test]
async fn a_connection_with_a_declined_upgrade_closes_cleanly() {
    for offer in [
        "GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "CONNECT localhost:1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n",
    ] {
        let (server, client) = tls_pair(&without_key_log());
        let (options, stop) = (ServerOptions::default(), Latch::new());
        let io = serve(
            &[Protocol::Http1],
            refuse,
            Some(server),
            options,
            stop.clone(),
        );
        let client = client.with_alpn(&[Protocol::Http1]);
        let (mut io, _) = client.connect(io, "localhost").await.expect("TLS");
        for request in [offer, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"] {
            io.write_all(request.as_bytes()).await.expect("it is read");
            let mut response = Vec::new();
            while !response.ends_with(b"no upgrade") {
                response.push(io.read_u8().await.expect("the response continues"));
            }
            assert!(response.starts_with(b"HTTP/1.1 403 "), "{offer}");
        }
        stop.set();
        let end = io.read_to_end(&mut Vec::new()).await;
        assert_eq!(end.map_err(|error| error.kind()), Ok(0), "{offer}");
    }
}
