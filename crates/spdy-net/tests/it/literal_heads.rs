//! Heads that go out over HTTP/1.1 byte for byte, hyper in between.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::shims::literal_head::LiteralHead;
use spdy_net::tls::ServerTls;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{self, ALL, get, read};

const CHUNKED: &str = "HTTP/1.1 200 Fine, thanks\r\nDate: long ago\r\nx-B:  1 \r\nX-A:\r\n  2\r\nx-B:1\r\nTransfer-Encoding: chunked\r\n\r\n";
const LENGTH: &str = "HTTP/1.1 404 \r\nConnection: Keep-Alive\r\ncontent-LENGTH: 6\r\n\r\n";
const OLD: &str = "HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\n";
const TO_THE_END: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";
const TOO_MUCH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
const SAME: &str = "HTTP/1.1 304 Still The Same\r\nETag: \"a\"\r\nContent-Length: 6\r\n\r\n";

/// Each path with a head of its own, `/fields` with none; the body has six bytes where there may be one.
async fn answer(request: Request<Body>) -> Response<Body> {
    let head = match request.uri().path() {
        "/chunked" | "/empty" => CHUNKED,
        "/length" => LENGTH,
        "/old" => OLD,
        "/to-the-end" => TO_THE_END,
        "/cut" => CUT,
        "/too-much" => TOO_MUCH,
        "/same" => SAME,
        _ => "",
    };
    let has_none = ["/empty", "/same"].contains(&request.uri().path());
    if *request.method() == http::Method::POST {
        request
            .into_body()
            .collect_up_to(1 << 20)
            .await
            .expect("it comes");
    }
    let mut response = Response::new(Body::full(if has_none { "" } else { "a body" }));
    if head.is_empty() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    } else {
        let head = LiteralHead::new(Bytes::from(head)).expect("it is a head");
        *response.status_mut() = head.status();
        response.extensions_mut().insert(head);
    }
    response
        .headers_mut()
        .insert("x-field", "of the response".parse().expect("it is one"));
    response
}

fn served(protocols: &[Protocol], tls: Option<ServerTls>, literal_heads: bool) -> BoxIo {
    let options = ServerOptions {
        literal_heads,
        ..ServerOptions::default()
    };
    support::serve(protocols, answer, tls, options, Latch::new())
}

/// All that comes for `asked` until the connection ends.
async fn all(mut io: BoxIo, asked: &str) -> String {
    io.write_all(asked.as_bytes()).await.expect("it is read");
    let mut came = String::new();
    io.read_to_string(&mut came)
        .await
        .expect("it ends in order");
    came
}

async fn literally(asked: &str) -> String {
    all(served(&[Protocol::Http1], None, true), asked).await
}

fn ask(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

const BY_FIELDS: &str =
    "HTTP/1.1 404 Not Found\r\nx-field: of the response\r\ncontent-length: 6\r\n\r\na body";

#[tokio::test]
async fn pipelined_requests_get_literal_heads_until_a_close() {
    let asked = [
        ask("GET", "/chunked"),
        ask("HEAD", "/chunked"),
        ask("GET", "/empty"),
        ask("GET", "/fields"),
        ask("GET", "/same"),
        ask("HEAD", "/fields"),
        ask("GET", "/length"),
        ask("GET", "/to-the-end"),
        ask("GET", "/length"),
    ];
    let wanted = [
        CHUNKED,
        "6\r\na body\r\n0\r\n\r\n",
        CHUNKED,
        CHUNKED,
        "0\r\n\r\n",
        BY_FIELDS,
        SAME,
        BY_FIELDS.trim_end_matches("a body"),
        LENGTH,
        "a body",
        TO_THE_END,
        "a body",
    ];
    assert_eq!(literally(&asked.concat()).await, wanted.concat());
}

#[tokio::test]
async fn a_literal_connection_close_is_honoured() {
    let next = ask("GET", "/length");
    for (path, head) in [("/old", OLD), ("/to-the-end", TO_THE_END), ("/cut", CUT)] {
        let came = literally(&[ask("GET", path), next.clone()].concat()).await;
        assert_eq!(came, format!("{head}a body"));
    }
}

#[tokio::test]
async fn a_literal_head_with_a_short_length_is_not_used() {
    let came = literally(&[ask("GET", "/too-much"), ask("GET", "/old")].concat()).await;
    let by_fields = BY_FIELDS.replace("404 Not Found", "200 OK");
    assert_eq!(came, format!("{by_fields}{OLD}a body"));
}

#[tokio::test]
async fn who_waits_for_100_continue_gets_it_before_the_literal_head() {
    let mut io = served(&[Protocol::Http1], None, true);
    let head = "POST /old HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
    io.write_all(head.as_bytes()).await.expect("it is read");
    let goes_on = "HTTP/1.1 100 Continue\r\n\r\n";
    let mut came = vec![0; goes_on.len()];
    io.read_exact(&mut came).await.expect("it comes");
    assert_eq!(String::from_utf8_lossy(&came), goes_on);
    assert_eq!(all(io, "ok").await, format!("{OLD}a body"));
}

#[tokio::test]
async fn invalid_requests_get_400_from_hyper_missing_hosts_from_us() {
    let came = literally(&[&ask("GET", "/length"), "what is this\r\n\r\n"].concat()).await;
    let rest = came
        .strip_prefix(&format!("{LENGTH}a body"))
        .expect("the first is literal");
    assert!(
        rest.starts_with("HTTP/1.1 400 Bad Request\r\n") && rest.ends_with("\r\n\r\n"),
        "{rest}"
    );
    let came = literally("GET /chunked HTTP/1.1\r\n\r\n").await;
    assert!(came.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{came}");
}

#[tokio::test]
async fn an_old_client_gets_no_chunks_and_the_end() {
    assert_eq!(
        literally("GET /length HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").await,
        format!("{LENGTH}a body")
    );
    let came = literally("GET /chunked HTTP/1.0\r\n\r\n").await;
    assert!(
        came.contains("x-field") && came.ends_with("\r\n\r\na body"),
        "{came}"
    );
}

#[tokio::test]
async fn a_body_larger_than_all_buffers_comes_whole_through_a_pipe_that_is_full() {
    let body = support::pattern(1_000_000);
    let sent = body.clone();
    let handler = move |_| {
        let mut response = Response::new(Body::full(sent.clone()));
        let head = LiteralHead::new(Bytes::from(CHUNKED)).expect("it is a head");
        response.extensions_mut().insert(head);
        std::future::ready(response)
    };
    let options = ServerOptions {
        literal_heads: true,
        ..ServerOptions::default()
    };
    let mut io = support::serve(&[Protocol::Http1], handler, None, options, Latch::new());
    let asked = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    io.write_all(asked.as_bytes()).await.expect("it is read");
    let mut came = Vec::new();
    io.read_to_end(&mut came).await.expect("it ends in order");
    let wanted = [CHUNKED.as_bytes(), b"f4240\r\n", &body, b"\r\n0\r\n\r\n"].concat();
    assert!(came == wanted, "{} bytes came", came.len());
}

#[tokio::test]
async fn without_the_option_and_over_other_protocols_the_fields_go_out() {
    let (near, asked) = (
        served(&[Protocol::Http1], None, false),
        "GET /old HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    let came = all(near, asked).await;
    assert!(
        came.starts_with("HTTP/1.1 200 OK\r\nx-field: of the response\r\n"),
        "{came}"
    );
    for protocol in ALL
        .into_iter()
        .filter(|protocol| *protocol != Protocol::Http1)
    {
        let io = served(&[protocol], None, true);
        let (options, runtime) = (ClientOptions::default(), support::runtime());
        let connection = Connection::start(io, protocol, 0, &options, &runtime);
        let connection = connection.await.expect("a connection");
        let answered = connection
            .send(get("/length"), Priority::HIGHEST)
            .await
            .expect("an answer");
        assert_eq!(answered.status(), 404, "{protocol}");
        assert!(answered.headers().contains_key("x-field"), "{protocol}");
        assert_eq!(
            &read(answered).await.expect("its body")[..],
            b"a body",
            "{protocol}"
        );
    }
}

#[tokio::test]
async fn over_tls_it_is_the_same() {
    let (server, client) = support::tls_pair(&support::quiet());
    let io = served(&ALL, Some(server), true);
    let client = client.with_alpn(&[Protocol::Http1]);
    let (io, _) = client
        .connect(io, "localhost")
        .await
        .expect("it is trusted");
    assert_eq!(all(io, &ask("GET", "/old")).await, format!("{OLD}a body"));
}
