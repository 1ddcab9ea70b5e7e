//! HTTP/2 streams that end early, and the code of their RST_STREAM (RFC 9113 §7) as h2 reports it.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use h2::Reason;
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_testkit::clock::Clock;

use crate::support::{PIPE, pattern, runtime, serve_in};

type H2Server = h2::server::Connection<tokio::io::DuplexStream, Bytes>;

/// Our client, and a server of the h2 crate.
async fn client() -> (Connection, H2Server) {
    let (near, far) = tokio::io::duplex(PIPE);
    let (options, runtime) = (ClientOptions::default(), runtime());
    let io = Box::new(near);
    let starting = Connection::start(io, Protocol::Http2, 0, &options, &runtime);
    let (client, server) = tokio::join!(starting, h2::server::handshake(far));
    (client.unwrap(), server.unwrap())
}

/// How the body of the one request at `server` ends. If `responds`, a response is sent before the body is read.
async fn upload_at(mut server: H2Server, responds: bool) -> Result<(), h2::Error> {
    let (request, mut respond) = server.accept().await.unwrap().unwrap();
    tokio::spawn(async move { while server.accept().await.is_some() {} });
    let _response = responds.then(|| respond.send_response(Response::new(()), false).unwrap());
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        let len = data?.len();
        body.flow_control().release_capacity(len).unwrap();
    }
    Ok(())
}

/// A client of the h2 crate with streams of no window, at a server in the time of `time`.
async fn at_server(
    time: &Clock,
    handler: impl Handler,
) -> (h2::client::SendRequest<Bytes>, impl Sized) {
    let runtime = SharedRuntime::new(time.clone());
    let options = ServerOptions::default();
    let io = serve_in(
        runtime,
        &[Protocol::Http2],
        handler,
        None,
        options,
        Latch::new(),
    );
    let client = h2::client::Builder::new()
        .initial_window_size(0)
        .handshake(io);
    let (sender, connection) = client.await.unwrap();
    (sender, tokio::spawn(connection))
}

/// The code with which a server resets its response to one request.
async fn response_reset_code(
    time: &Clock,
    handler: impl Handler,
    wait: Duration,
) -> Option<Reason> {
    let (mut sender, _driven) = at_server(time, handler).await;
    let request = Request::get("http://localhost/").body(()).unwrap();
    let (response, _send) = sender.send_request(request, true).unwrap();
    // The reset may overtake the head in the client.
    match response.await {
        Ok(response) => {
            let mut body = response.into_body();
            time.advance(wait).await;
            body.data().await.unwrap().unwrap_err().reason()
        }
        Err(error) => error.reason(),
    }
}

#[tokio::test]
async fn an_unread_http2_response_is_reset_with_cancel() {
    let long = |_| async { Response::new(Body::full(pattern(100_000))) };
    let reset = response_reset_code(&Clock::default(), long, Duration::from_secs(61)).await;
    assert_eq!(reset, Some(Reason::CANCEL));
}

#[tokio::test]
async fn an_http2_response_whose_body_fails_is_reset_with_internal_error() {
    let failing = |_| async {
        let error = Err::<Bytes, _>(std::io::Error::other("gone"));
        Response::new(Body::from_stream(stream::iter([error])))
    };
    let reset = response_reset_code(&Clock::default(), failing, Duration::ZERO).await;
    assert_eq!(reset, Some(Reason::INTERNAL_ERROR));
}

#[tokio::test]
async fn an_http2_upload_whose_body_fails_is_reset_with_cancel() {
    let (client, server) = client().await;
    let pieces = [
        Ok(Bytes::from_static(b"x")),
        Err(std::io::Error::other("gone")),
    ];
    let body = Body::from_stream(stream::iter(pieces));
    let request = Request::post("http://localhost/").body(body).unwrap();
    let reply = client.send(request, Priority::HIGHEST);
    let (_, upload_result) = tokio::join!(reply, upload_at(server, false));
    assert_eq!(upload_result.unwrap_err().reason(), Some(Reason::CANCEL));
}

#[tokio::test]
async fn an_http2_response_that_is_dropped_before_its_end_cancels_its_upload() {
    let (client, server) = client().await;
    let first = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
    let body = Body::from_stream(first.chain(stream::pending()));
    let request = Request::post("http://localhost/").body(body).unwrap();
    let reply = client.send(request, Priority::HIGHEST).map(drop);
    let both = async { tokio::join!(reply, upload_at(server, true)) };
    let both = tokio::time::timeout(Duration::from_secs(10), both).await;
    let (_, upload_result) = both.expect("the upload goes on");
    assert_eq!(upload_result.unwrap_err().reason(), Some(Reason::CANCEL));
}

/// With h2's own limit, a long header block ends the connection, and the exchanges of all its users.
#[tokio::test]
async fn a_too_large_header_block_ends_its_exchange_alone() {
    let (client, mut server) = client().await;
    let send = |path: &str| {
        let request = Request::get(format!("http://localhost/{path}"));
        client.send(request.body(Body::empty()).unwrap(), Priority::HIGHEST)
    };
    tokio::spawn(async move {
        while let Some(Ok((request, mut respond))) = server.accept().await {
            tokio::spawn(async move {
                let large = match request.uri().path() {
                    "/large" | "/large-head" => 200_000,
                    _ => 1000,
                };
                let fields = |len: usize| {
                    let mut fields = http::HeaderMap::new();
                    let value = "x".repeat(len).parse().unwrap();
                    fields.insert("x-large", value);
                    fields
                };
                let mut response = Response::new(());
                if request.uri().path() == "/large-head" {
                    *response.headers_mut() = fields(large);
                }
                let mut sending = respond.send_response(response, false).unwrap();
                if request.uri().path() == "/open" {
                    std::future::poll_fn(|cx| sending.poll_reset(cx)).await.ok();
                    return;
                }
                sending.send_trailers(fields(large)).unwrap();
            });
        }
    });
    let open = send("open").await.expect("a response");
    for (path, is_taken) in [("small", true), ("large", false), ("small", true)] {
        let response = send(path).await.expect("a response");
        let body = http_body_util::BodyExt::collect(response.into_body()).await;
        assert_eq!(body.is_ok(), is_taken, "{path}");
    }
    let error = send("large-head").await.expect_err("too large");
    assert!(error.too_large, "{error}");
    assert!(!client.is_closing());
    let open = http_body_util::BodyExt::collect(open.into_body()).now_or_never();
    assert!(open.is_none(), "{open:?}");
}
