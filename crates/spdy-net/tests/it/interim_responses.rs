//! Interim answers (RFC 9110 §15.2), of servers that send them: early hints before the answer itself.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderValue, Request, Response};
use spdy::body::Body;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::interim::early_hints::EarlyHints;
use spdy_net::interim::interim_responses::{InterimResponses, MAX_QUEUED_HEADS};
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::tap::{Direction, Tap, TapEvent};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::http3::TestServer;
use crate::support::{self, get, read};

/// The heads that came, as a person would read them.
#[derive(Default)]
struct Heads(Mutex<Vec<String>>);

impl Tap for Heads {
    fn seen(&self, _: u64, _: Instant, direction: Direction, event: &TapEvent<'_>) {
        let text = match event {
            TapEvent::Http1Head(head) => String::from_utf8_lossy(head).into_owned(),
            TapEvent::Http2Headers { fields, .. } | TapEvent::Http3Headers { fields, .. } => {
                format!("{fields:?}")
            }
            _ => return,
        };
        if direction == Direction::Received {
            self.0.lock().unwrap().push(text);
        }
    }
}

async fn respond_http1(mut io: DuplexStream) {
    let mut buffer = [0; 1024];
    assert!(io.read(&mut buffer).await.expect("a request") > 0);
    let heads = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n\
                  HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere";
    io.write_all(heads.as_bytes()).await.expect("it is read");
    let _ = io.read(&mut buffer).await; // until the client leaves
}

async fn respond_http2(io: DuplexStream) {
    let mut connection = h2::server::handshake(io).await.expect("a client");
    while let Some(exchange) = connection.accept().await {
        let (_, mut respond) = exchange.expect("a request");
        let hints = Response::builder().status(103);
        let hints = hints.header("link", "</a.css>; rel=preload").body(());
        respond
            .send_informational(hints.expect("valid"))
            .expect("it is open");
        let mut body = respond
            .send_response(Response::new(()), false)
            .expect("it is open");
        body.send_data("here".into(), true).expect("it is open");
    }
}

#[tokio::test]
async fn early_hints_are_reported_and_are_not_the_response() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        match protocol {
            Protocol::Http1 => tokio::spawn(respond_http1(far)),
            _ => tokio::spawn(respond_http2(far)),
        };
        let heads = Arc::<Heads>::default();
        let mut options = ClientOptions::default();
        options.tap = Some(heads.clone());
        let io: BoxIo = Box::new(near);
        let connection = Connection::start(io, protocol, 0, &options, &support::runtime())
            .await
            .expect("a connection");
        let response: Response<Body> = connection
            .send(get("/"), Priority::HIGHEST)
            .await
            .expect("a response");
        assert_eq!(response.status(), 200, "{protocol}");
        assert!(!response.headers().contains_key("link"), "{protocol}");
        assert_eq!(&read(response).await.expect("its body")[..], b"here");
        let heads = heads.0.lock().unwrap().clone();
        assert_eq!(heads.len(), 2, "{protocol}: {heads:?}");
        assert!(
            heads[0].contains("103") && heads[0].contains("/a.css"),
            "{heads:?}"
        );
    }
}

#[tokio::test]
async fn one_interim_head_over_the_limit_of_http1_is_an_error() {
    for (heads, is_taken) in [(16, true), (17, false), (100_000, false)] {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let server = tokio::spawn(async move {
            let mut buffer = [0; 1024];
            let _ = far.read(&mut buffer).await;
            for _ in 0..heads {
                let hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";
                if far.write_all(hint).await.is_err() {
                    return;
                }
            }
            let _ = far.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        });
        let (options, runtime) = (ClientOptions::default(), support::runtime());
        let io: BoxIo = Box::new(near);
        let connection = Connection::start(io, Protocol::Http1, 0, &options, &runtime).await;
        let connection = connection.expect("a connection");
        let response = connection.send(get("/"), Priority::HIGHEST).await;
        assert_eq!(response.is_ok(), is_taken, "{heads}: {response:?}");
        drop(response);
        server.await.expect("the connection ends");
    }
}

/// Sends two early hints, one after the other, and then responds.
async fn hinting(request: Request<Body>) -> Response<Body> {
    let hints = EarlyHints::of(request.extensions());
    let Some(hints) = hints else {
        return Response::new("no client to notify".into());
    };
    for link in ["</a.css>; rel=preload", "</b.js>; rel=preload"] {
        let mut fields = HeaderMap::new();
        fields.insert("link", HeaderValue::from_static(link));
        assert!(hints.send(fields));
        tokio::task::yield_now().await;
    }
    Response::new("here".into())
}

/// Sends more early hints than are queued, and then responds.
async fn flooding(request: Request<Body>) -> Response<Body> {
    let hints =
        EarlyHints::of(request.extensions()).expect("the request has a sender for early hints");
    for number in 0..=MAX_QUEUED_HEADS {
        let mut fields = HeaderMap::new();
        fields.insert("x-number", HeaderValue::from(number));
        assert!(hints.send(fields));
    }
    Response::new("here".into())
}

/// An HTTP/2 client of `handler`.
async fn over_http2(handler: impl Handler) -> Connection {
    let (protocol, stop) = (Protocol::Http2, Latch::new());
    let io = support::serve(&[protocol], handler, None, ServerOptions::default(), stop);
    let options = ClientOptions::default();
    let connection = Connection::start(io, protocol, 0, &options, &support::runtime()).await;
    connection.expect("a connection")
}

#[tokio::test]
async fn interim_heads_arrive_in_order_up_to_the_queue_limit() {
    let world = TestServer::serve(hinting);
    let over_http3 = world.connect(ClientOptions::default());
    for connection in [over_http2(hinting).await, over_http3.await] {
        let protocol = connection.protocol();
        let (listens, mut interim_heads) = InterimResponses::channel();
        let mut request = get("/");
        request.extensions_mut().insert(listens);
        let response = connection.send(request, Priority::HIGHEST).await;
        assert_eq!(response.expect("a response").status(), 200, "{protocol}");
        for link in ["</a.css>; rel=preload", "</b.js>; rel=preload"] {
            let head = interim_heads
                .try_recv()
                .expect("the early hints came before the response");
            assert_eq!(head.status, 103, "{protocol}");
            assert_eq!(head.headers["link"], link, "{protocol}");
        }
        assert!(interim_heads.try_recv().is_err(), "{protocol}");
    }
    // An early hint past the queue's limit is dropped; over HTTP/3 the exchange ends there.
    let connection = over_http2(flooding).await;
    let (listens, mut interim_heads) = InterimResponses::channel();
    let mut request = get("/");
    request.extensions_mut().insert(listens);
    let response = connection.send(request, Priority::HIGHEST).await;
    let body = read(response.expect("a response")).await.expect("its body");
    assert_eq!(&body[..], b"here");
    for number in 0..MAX_QUEUED_HEADS {
        let head = interim_heads.try_recv().expect("the channel had room");
        assert_eq!(head.headers["x-number"], number.to_string());
    }
    assert!(interim_heads.try_recv().is_err());
}

#[tokio::test]
async fn hints_of_a_handler_are_sent_before_its_response() {
    let world = TestServer::serve(hinting);
    for protocol in [Protocol::Http2, Protocol::Http3, Protocol::Http1] {
        let heads = Arc::<Heads>::default();
        let mut options = ClientOptions::default();
        options.tap = Some(heads.clone());
        let connection = if protocol == Protocol::Http3 {
            world.connect(options).await
        } else {
            let (options_of_server, stop) = (ServerOptions::default(), Latch::new());
            let io = support::serve(&[protocol], hinting, None, options_of_server, stop);
            Connection::start(io, protocol, 0, &options, &support::runtime())
                .await
                .expect("a connection")
        };
        let response = connection.send(get("/"), Priority::HIGHEST).await;
        let body = read(response.expect("a response")).await.expect("its body");
        let heads = heads.0.lock().unwrap().clone();
        if protocol == Protocol::Http1 {
            assert_eq!((&body[..], heads.len()), (&b"no client to notify"[..], 1));
            continue;
        }
        assert_eq!(&body[..], b"here", "{protocol}");
        let with_status: Vec<_> = ["103", "103", "200"].into_iter().zip(&heads).collect();
        assert_eq!(heads.len(), 3, "{protocol}: {heads:?}");
        assert!(
            with_status
                .iter()
                .all(|(status, head)| head.contains(status)),
            "{protocol}: {heads:?}"
        );
        assert!(heads[0].contains("/a.css") && heads[1].contains("/b.js"));
    }
}

/// Responds with the number of body bytes, or without reading the body for `/unseen`.
async fn looks(request: Request<Body>) -> Response<Body> {
    if request.uri().path() == "/unseen" {
        return Response::new("unseen".into());
    }
    let body = request.into_body().collect_up_to(1 << 20).await;
    Response::new(Body::full(body.map_or(0, |body| body.len()).to_string()))
}

/// The client got no 100 (Continue), waited, and timed out after a minute.
#[tokio::test]
async fn expect_continue_gets_100_when_the_body_is_read() {
    let world = TestServer::serve(looks);
    let over_http3 = world.connect(ClientOptions::default());
    for connection in [over_http2(looks).await, over_http3.await] {
        let protocol = connection.protocol();
        for (path, expect, continue_count, expected_body) in [
            ("/", Some("100-continue"), 1, "5"),
            ("/", Some("100-Continue"), 1, "5"),
            ("/", None, 0, "5"),
            ("/unseen", Some("100-continue"), 0, "unseen"),
        ] {
            let case = format!("{protocol} {path} {expect:?}");
            let (listens, mut interim_heads) = InterimResponses::channel();
            let (send, pieces) = tokio::sync::mpsc::unbounded_channel::<bytes::Bytes>();
            let pieces = futures_util::stream::unfold(pieces, async |mut pieces| {
                let piece = pieces.recv().await?;
                Some((Ok::<_, std::io::Error>(piece), pieces))
            });
            let request = Request::post(format!("http://localhost{path}")).extension(listens);
            let request = match expect {
                Some(expect) => request.header("expect", expect),
                None => request,
            };
            let request = request.body(Body::from_stream(pieces)).expect("a request");
            let response = tokio::spawn(connection.send(request, Priority::HIGHEST));
            if continue_count > 0 {
                let head = interim_heads
                    .recv()
                    .await
                    .expect("100 Continue came before the response");
                assert_eq!(head.status, 100, "{case}");
            }
            if path == "/" {
                send.send("piece".into()).expect("it is read");
                drop(send);
            }
            let response = response.await.expect("no panic").expect("a response");
            let body = read(response).await.expect("its body");
            assert_eq!(body, expected_body, "{case}");
            assert!(interim_heads.try_recv().is_err(), "{case}: once");
        }
    }
}
