//! Heads on the wire: what is made of those of requests, and how large those of answers may be.

use std::sync::Arc;

use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{self, ALL};

/// Responds with the URL and the cookies of the request.
async fn report_request(request: Request<Body>) -> Response<Body> {
    let cookies = request.headers().get_all("cookie").iter();
    let cookies: Vec<_> = cookies.filter_map(|cookie| cookie.to_str().ok()).collect();
    let text = format!("{} {}", request.uri(), cookies.join("|"));
    Response::new(Body::full(text))
}

/// The response of [`report_request`] over HTTP/2 to a request of `builder`, whose fields are sent unchanged.
async fn over_http2(builder: http::request::Builder) -> (StatusCode, String) {
    let options = ServerOptions::default();
    let io = support::serve(
        &[Protocol::Http2],
        report_request,
        None,
        options,
        Latch::new(),
    );
    let (mut sender, connection) = h2::client::handshake(io).await.expect("a connection");
    let reading = tokio::spawn(connection);
    let request = builder.body(()).expect("a request");
    let (response, _) = sender.send_request(request, true).expect("it is open");
    let mut response = response.await.expect("a response");
    let mut text = Vec::new();
    while let Some(data) = response.body_mut().data().await {
        text.extend_from_slice(&data.expect("the whole body"));
    }
    reading.abort();
    let text = String::from_utf8(text).expect("text");
    (response.status(), text)
}

/// Browsers send each cookie by itself; origins behind HTTP/1.1 took the first for all.
#[tokio::test]
async fn split_http2_cookies_are_joined() {
    let builder = Request::get("http://site.test/a");
    let builder = builder.header("cookie", "id=1").header("cookie", "lang=de");
    let (status, text) = over_http2(builder).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(text, "http://site.test/a id=1; lang=de");
}

#[tokio::test]
async fn an_http2_request_with_an_invalid_host_gets_400() {
    let get = |uri: &str| Request::get(uri);
    for (builder, reason) in [
        (
            get("http://site.test/").header("host", "other.test"),
            ":authority and host differ",
        ),
        (
            get("http://site.test/")
                .header("host", "site.test")
                .header("host", "site.test"),
            "more than one host",
        ),
        (get("http://me@site.test/"), "authority with userinfo"),
    ] {
        let (status, text) = over_http2(builder).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert_eq!(text, format!("malformed message: {reason}\n"));
    }
}

/// An answer with a text for HEAD had its stream reset, and was lost.
#[tokio::test]
async fn any_http2_response_to_head_has_no_content() {
    let builder = Request::head("http://site.test/").header("host", "other.test");
    assert_eq!(
        over_http2(builder).await,
        (StatusCode::BAD_REQUEST, String::new())
    );
    let builder = Request::head("http://site.test/");
    assert_eq!(over_http2(builder).await, (StatusCode::OK, String::new()));
}

/// The first line of a server's response to `request`, which is written at once, and the whole response.
async fn response_to(request: &str) -> (String, String) {
    // What is there at once is more than any read takes.
    let (mut io, far) = tokio::io::duplex(4 * request.len());
    io.write_all(request.as_bytes())
        .await
        .expect("there is room");
    tokio::spawn(async move {
        let (handler, options) = (Arc::new(report_request), ServerOptions::default());
        let (http1, runtime) = (&[Protocol::Http1], support::runtime());
        let stop = Latch::new();
        let connection = serve_connection(
            Box::new(far),
            handler,
            http1,
            None,
            &options,
            &runtime,
            &stop,
        );
        connection.await
    });
    let mut response = Vec::new();
    io.read_to_end(&mut response).await.expect("it closes");
    let response = String::from_utf8(response).expect("text");
    let first = response.lines().next().unwrap_or_default().to_owned();
    (first, response)
}

#[tokio::test]
async fn a_too_large_head_in_one_read_gets_431() {
    let limit = ServerOptions::default().max_head_bytes;
    let too_large = "HTTP/1.1 431 Request Header Fields Too Large";
    for (bytes, expected) in [
        (limit - 1000, "HTTP/1.1 200 OK"),
        (limit - 20, too_large),
        (limit + 5000, too_large),
        (limit + 20_000, too_large),
        (limit + 50_000, too_large),
        (limit + 100_000, too_large),
    ] {
        let long = "x".repeat(bytes);
        let request = format!(
            "GET / HTTP/1.1\r\nhost: site.test\r\nconnection: close\r\nlong: {long}\r\n\r\n"
        );
        assert_eq!(response_to(&request).await.0, expected, "{bytes}");
    }
}

/// It is the root (RFC 9110 §4.2.3).
#[tokio::test]
async fn a_path_that_is_empty_before_its_query_is_the_root() {
    let request =
        "GET http://site.test?a=1 HTTP/1.1\r\nhost: site.test\r\nconnection: close\r\n\r\n";
    let (_, response) = response_to(request).await;
    assert!(response.ends_with("http://site.test/?a=1 "), "{response}");
}

/// The server that a request is sent to may differ from its host.
#[tokio::test]
async fn the_host_field_selects_the_host_over_every_protocol() {
    for protocol in ALL {
        if protocol == Protocol::Http3 {
            continue; // it has no pipe
        }
        let connection = support::connection(protocol, report_request).await;
        let request = Request::get("http://127.0.0.1:8000/a").header("host", "www.site.test:8443");
        let request = request.body(Body::empty()).expect("a request");
        let response = connection.send(request, Priority::new(3)).await;
        let body = response.expect("a response").into_body();
        let text = http_body_util::BodyExt::collect(body).await;
        let text = text.expect("the whole body").to_bytes();
        assert_eq!(text, "http://www.site.test:8443/a ", "{protocol:?}");
    }
}

/// Responds with the number of body bytes received, and whether the request had a length and a transfer coding.
async fn report_framing(request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let has_field = |name| head.headers.contains_key(name);
    let (length, coding) = (has_field("content-length"), has_field("transfer-encoding"));
    let framing = format!("{length} {coding}");
    let body = http_body_util::BodyExt::collect(body).await;
    let body_len = body.map_or(0, |body| body.to_bytes().len());
    let response = Response::builder().header("x-came", body_len);
    let response = response.header("x-framing", framing).body(Body::empty());
    response.expect("a response")
}

/// Over HTTP/1.1 none of it was sent, without an error.
#[tokio::test]
async fn a_body_of_unknown_length_is_sent_with_any_method() {
    for protocol in ALL {
        if protocol == Protocol::Http3 {
            continue; // it has no pipe
        }
        let connection = support::connection(protocol, report_framing).await;
        for (method, len) in [
            ("GET", true),
            ("GET", false),
            ("HEAD", false),
            ("POST", false),
        ] {
            let pieces = [20_000, 20_000].map(|len| Ok::<_, std::io::Error>(support::pattern(len)));
            let body = match len {
                true => Body::full(support::pattern(40_000)),
                false => Body::from_stream(futures_util::stream::iter(pieces)),
            };
            let request = Request::builder().method(method).uri("http://site.test/");
            let request = request.body(body).expect("a request");
            let response = connection.send(request, Priority::new(3)).await;
            let response = response.expect("a response");
            let case = format!("{protocol} {method} {len}");
            assert_eq!(response.headers()["x-came"], "40000", "{case}");
            if protocol == Protocol::Http1 {
                let framing = if len { "true false" } else { "false true" };
                assert_eq!(response.headers()["x-framing"], framing, "{case}");
            }
        }
        // A request without a body has neither field.
        let request = Request::get("http://site.test/").body(Body::empty());
        let response = connection.send(request.expect("a request"), Priority::new(3));
        let response = response.await.expect("a response");
        assert_eq!(response.headers()["x-came"], "0", "{protocol}");
        if protocol == Protocol::Http1 {
            assert_eq!(response.headers()["x-framing"], "false false");
        }
    }
}

/// One whose end came in the read that took it past the limit was taken, and refused when it came in smaller pieces.
#[tokio::test]
async fn a_too_large_head_is_rejected_with_any_split() {
    let limit = ClientOptions::default().max_head_bytes;
    for (field_bytes, fields, is_taken) in [
        (60 * 1024, 1, true),
        (limit, 1, false),
        (1000, 64, true),
        (1000, 66, false),
        (limit / 2, 2, false),
        (1000, 100, false),
        (10, 100, true),
        (10, 101, false),
    ] {
        for piece in [limit * 2, 5000] {
            // What is there at once is more than any read takes.
            let (near, mut far) = tokio::io::duplex(4 * limit);
            let options = ClientOptions::default();
            let runtime = support::runtime();
            let started = Connection::start(Box::new(near), Protocol::Http1, 0, &options, &runtime);
            let connection = started.await.expect("a connection");
            let server = tokio::spawn(async move {
                let mut buffer = [0; 1024];
                let _ = far.read(&mut buffer).await;
                let mut head = "HTTP/1.1 204 No Content\r\n".to_owned();
                for nth in 0..fields {
                    head += &format!("x-{nth}: {}\r\n", "v".repeat(field_bytes));
                }
                head += "\r\n";
                for piece in head.as_bytes().chunks(piece) {
                    // Who has had enough is gone.
                    let _ = far.write_all(piece).await;
                    tokio::task::yield_now().await;
                }
            });
            let request = Request::get("http://site.test/").body(Body::empty());
            let response = connection.send(request.expect("a request"), Priority::new(3));
            let response =
                response.map(|response| response.map_err(|error| (error.too_large, error)));
            match response.await {
                Ok(response) => {
                    assert!(is_taken, "{fields} of {field_bytes} by {piece}");
                    assert_eq!(response.headers().len(), fields);
                }
                Err((is_too_large, error)) => {
                    assert!(!is_taken, "{fields} of {field_bytes} by {piece}: {error}");
                    assert!(is_too_large, "{error}");
                    assert!(error.to_string().contains("65536 bytes and 100 fields"));
                }
            }
            server.await.expect("no panic");
        }
    }
}
