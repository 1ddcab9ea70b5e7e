//! Ranges of resources that are not stored yet: a range from the beginning fetches the whole, and others share it. In virtual time.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use spdy::body::Body;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::{AsyncReadExt, DuplexStream};

use crate::support::wire::{Between, head, write};

/// A client that requests these bytes.
async fn request_range(between: &Between, target: &str, range: &str) -> DuplexStream {
    request_range_with(between, target, range, "").await
}

/// The same, with `more` lines of its head.
async fn request_range_with(
    between: &Between,
    target: &str,
    range: &str,
    more: &str,
) -> DuplexStream {
    let (mut client, _) = between.client();
    let lines = format!(
        "GET {target} HTTP/1.1\r\nHost: www.site.test\r\nRange: bytes={range}\r\n{more}\r\n"
    );
    write(&mut client, &lines).await;
    between.clock.advance(Duration::ZERO).await;
    client
}

/// The next so many bytes.
async fn bytes(io: &mut DuplexStream, len: usize) -> String {
    let mut buffer = vec![0; len];
    io.read_exact(&mut buffer)
        .await
        .expect("the responses arrive");
    String::from_utf8(buffer).expect("the text is UTF-8")
}

async fn is_part(client: &mut DuplexStream, range: &str) {
    let head = head(client).await;
    assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
    let line = format!("\r\ncontent-range: bytes {range}\r\n");
    assert!(head.to_ascii_lowercase().contains(&line), "{head}");
}

/// Regression: nothing was stored of films that browsers play.
#[tokio::test]
async fn range_from_zero_fills_the_cache_and_others_share() {
    let mut between = Between::start("");
    let mut first = request_range(&between, "/film", "0-3").await;
    let mut origin = between.next_connection().await;
    let request_head = head(&mut origin).await.to_ascii_lowercase();
    assert!(
        request_head.starts_with("get /film ") && !request_head.contains("range:"),
        "{request_head}"
    );
    let fields = "Content-Type: video/mp4\r\nCache-Control: max-age=60\r\nContent-Length: 10";
    write(
        &mut origin,
        &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n0123"),
    )
    .await;
    is_part(&mut first, "0-3/10").await;
    assert_eq!(
        bytes(&mut first, 4).await,
        "0123",
        "the rest is not waited for"
    );

    let mut within = request_range(&between, "/film", "2-6").await;
    is_part(&mut within, "2-6/10").await;
    assert_eq!(bytes(&mut within, 2).await, "23");
    let mut begins = request_range(&between, "/film", "0-").await;
    is_part(&mut begins, "0-9/10").await;
    assert!(
        between.origin.try_recv().is_err(),
        "no other request is sent"
    );
    // A range past the received bytes does not wait for them.
    let mut beyond = request_range(&between, "/film", "8-").await;
    let mut another = between.next_connection().await;
    let request_head = head(&mut another).await.to_ascii_lowercase();
    assert!(
        request_head.contains("\r\nrange: bytes=8-\r\n"),
        "{request_head}"
    );
    let fields = "Content-Range: bytes 8-9/10\r\nContent-Length: 2";
    write(
        &mut another,
        &format!("HTTP/1.1 206 Partial Content\r\n{fields}\r\n\r\n89"),
    )
    .await;
    is_part(&mut beyond, "8-9/10").await;

    write(&mut origin, "456789").await;
    assert_eq!(bytes(&mut within, 3).await, "456");
    assert_eq!(bytes(&mut begins, 10).await, "0123456789");
    let mut later = request_range(&between, "/film", "7-").await;
    is_part(&mut later, "7-9/10").await;
    assert_eq!(bytes(&mut later, 3).await, "789");
    assert!(between.origin.try_recv().is_err(), "it is kept");
}

#[tokio::test]
async fn unstorable_response_falls_back_to_range_requests() {
    for fields in [
        "Cache-Control: no-store\r\nContent-Length: 10",
        "Cache-Control: max-age=60\r\nContent-Length: 2000000",
        "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked",
    ] {
        let mut between = Between::start("[cache]\nobject_mib = 1\n");
        let mut client = request_range(&between, "/film", "0-1").await;
        let mut origin = between.next_connection().await;
        let request_head = head(&mut origin).await.to_ascii_lowercase();
        assert!(!request_head.contains("range:"), "{request_head}");
        write(&mut origin, &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
        let part = "Content-Range: bytes 0-1/10\r\nContent-Length: 2";
        for nth in ["first", "second"] {
            let mut origin = between.next_connection().await;
            let request_head = head(&mut origin).await.to_ascii_lowercase();
            assert!(
                request_head.contains("\r\nrange: bytes=0-1\r\n"),
                "{nth}: {request_head}"
            );
            let response =
                format!("HTTP/1.1 206 Partial Content\r\nConnection: close\r\n{part}\r\n\r\n01");
            write(&mut origin, &response).await;
            is_part(&mut client, "0-1/10").await;
            assert_eq!(bytes(&mut client, 2).await, "01");
            client = request_range(&between, "/film", "0-1").await;
        }
    }
}

/// Expects a request for `/film` at the origin: for all of it, or for `range`.
async fn expect_request(between: &mut Between, range: Option<&str>) -> (DuplexStream, String) {
    let mut origin = between.next_connection().await;
    let request_head = head(&mut origin).await.to_ascii_lowercase();
    assert!(request_head.starts_with("get /film "), "{request_head}");
    match range {
        Some(range) => assert!(
            request_head.contains(&format!("\r\nrange: bytes={range}\r\n")),
            "{request_head}"
        ),
        None => assert!(!request_head.contains("range:"), "{request_head}"),
    }
    (origin, request_head)
}

/// Regression: a player that requested two bytes got all of them as 200, and each client's request was sent to the origin.
#[tokio::test]
async fn without_memory_range_is_cut_from_one_full_fetch() {
    let mut between = Between::start("[cache]\nobject_mib = 1\nin_flight_mib = 1\n");
    let mut large = request_range(&between, "/large", "0-").await;
    let mut of_large = between.next_connection().await;
    head(&mut of_large).await;
    let fields = "Cache-Control: max-age=60\r\nContent-Length: 1000000";
    write(
        &mut of_large,
        &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"),
    )
    .await;
    is_part(&mut large, "0-999999/1000000").await;

    let mut film = request_range(&between, "/film", "0-1").await;
    let mut other = request_range(&between, "/film", "0-1").await;
    let (mut origin, _) = expect_request(&mut between, None).await;
    let fields = "Cache-Control: max-age=60\r\nContent-Length: 200000";
    write(
        &mut origin,
        &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n01"),
    )
    .await;
    for client in [&mut film, &mut other] {
        is_part(client, "0-1/200000").await;
        assert_eq!(bytes(client, 2).await, "01");
    }
    assert!(
        between.origin.try_recv().is_err(),
        "no other request is sent"
    );
    let limits = between.proxy.telemetry.counters.read(CounterFamily::Limits);
    assert_eq!(limits, [("in_flight_mib", 1)]);
}

/// Regression: after one client's fallback, nothing was stored for any client for an hour.
#[tokio::test]
async fn per_client_fallback_does_not_stop_other_fills() {
    let mut between = Between::start("");
    let full =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n0123456789";
    let part = "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n\
                Content-Range: bytes 0-1/10\r\nContent-Length: 2\r\n\r\n01";
    for (fields, requests_all) in [
        ("Cache-Control: no-store\r\n", false),
        ("Cookie: id=1\r\n", true),
        ("Cookie: id=2\r\n", false),
    ] {
        let mut client = request_range_with(&between, "/film", "0-1", fields).await;
        if requests_all {
            let (mut origin, _) = expect_request(&mut between, None).await;
            write(&mut origin, full).await;
        }
        let (mut origin, _) = expect_request(&mut between, Some("0-1")).await;
        write(&mut origin, part).await;
        is_part(&mut client, "0-1/10").await;
    }
    let mut client = request_range(&between, "/film", "0-1").await;
    let (mut origin, _) = expect_request(&mut between, None).await;
    write(&mut origin, full).await;
    is_part(&mut client, "0-1/10").await;
    let mut later = request_range_with(&between, "/film", "2-3", "Cookie: id=1\r\n").await;
    is_part(&mut later, "2-3/10").await;
    assert!(between.origin.try_recv().is_err(), "it is kept");
}

#[tokio::test]
async fn fallback_range_request_keeps_client_headers() {
    let mut between = Between::start("");
    let mut client = request_range_with(&between, "/film", "0-1", "If-None-Match: \"a\"\r\n").await;
    let (mut origin, request_head) = expect_request(&mut between, None).await;
    assert!(!request_head.contains("if-none-match:"), "{request_head}");
    let fields = "Cache-Control: no-store\r\nETag: \"a\"\r\nContent-Length: 10";
    write(&mut origin, &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
    let (mut origin, request_head) = expect_request(&mut between, Some("0-1")).await;
    assert!(
        request_head.contains("\r\nif-none-match: \"a\"\r\n"),
        "{request_head}"
    );
    write(
        &mut origin,
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
    )
    .await;
    let head = head(&mut client).await;
    assert!(head.starts_with("HTTP/1.1 304 "), "{head}");
}

/// The ranges that the origin receives, `None` for the whole. It answers each request with `len` bytes.
fn record_ranges(between: &mut Between, len: usize) -> Arc<Mutex<Vec<Option<String>>>> {
    let spans: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let log = spans.clone();
    between.serve_origin(move |request: Request<Body>| {
        let range = request.headers().get("range");
        let range = range.map(|range| range.to_str().expect("the value is ASCII").to_owned());
        let mut response = Response::builder().header("cache-control", "max-age=60");
        let body = match &range {
            Some(_) => {
                response = response.status(206);
                response = response.header("content-range", format!("bytes 0-0/{len}"));
                vec![b'x'; 1]
            }
            None => vec![b'x'; len],
        };
        log.lock().unwrap().push(range);
        let response = response.body(Body::full(body)).expect("a response");
        std::future::ready(response)
    });
    spans
}

/// All that the client at 192.0.2.`number` reads when it requests `range` of `target`.
async fn read_range(between: &Between, number: u8, target: &str, range: &str) -> String {
    let from = IpAddr::from([192, 0, 2, number]);
    let (mut client, _) = between.client_at(from, Protocol::Http1, ServerOptions::default());
    let lines = format!(
        "GET {target} HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\nRange: bytes={range}\r\n\r\n"
    );
    write(&mut client, &lines).await;
    let response = between.read_available(&mut client).await;
    assert!(
        response.starts_with("HTTP/1.1 206 "),
        "{target}: {response}"
    );
    response
}

/// Before, one byte of ever new URLs made the origin send 94,000 times as many.
#[tokio::test]
async fn range_fills_are_limited_by_client_credit() {
    let mut between = Between::start("[cache]\nobject_mib = 1\nrange_fill_mib = 1\n");
    let spans = record_ranges(&mut between, 600_000);
    let part = Some("bytes=0-0".to_owned());
    for (target, number, expected) in [
        ("/film?1", 1, None),
        // Credit is left, if not for all of it.
        ("/film?2", 1, None),
        ("/film?3", 1, part.clone()),
        ("/film?4", 1, part.clone()),
        ("/film?4", 2, None),
    ] {
        read_range(&between, number, target, "0-0").await;
        let range = spans.lock().unwrap().pop();
        assert_eq!(range, Some(expected), "{target} of client {number}");
    }
    // Every client gets stored responses, also those that another client's request fetched.
    for target in ["/film?1", "/film?4"] {
        read_range(&between, 1, target, "0-0").await;
        assert_eq!(spans.lock().unwrap().pop(), None, "{target}");
    }
    let limits = between.proxy.telemetry.counters.read(CounterFamily::Limits);
    assert_eq!(limits, [("range_fill_mib", 2)]);
    // The rest of a minute pays for what is owed, and for more.
    between.clock.advance(Duration::from_secs(30)).await;
    read_range(&between, 1, "/film?5", "0-0").await;
    assert_eq!(spans.lock().unwrap().pop(), Some(None));
}

#[tokio::test]
async fn client_reading_its_fills_is_not_limited() {
    let mut between = Between::start("[cache]\nobject_mib = 1\nrange_fill_mib = 1\n");
    let spans = record_ranges(&mut between, 600_000);
    for number in 0..10 {
        let response = read_range(&between, 1, &format!("/film?{number}"), "0-").await;
        assert!(response.len() > 600_000);
        assert_eq!(spans.lock().unwrap().pop(), Some(None), "{number}");
    }
    assert_eq!(
        between.proxy.telemetry.counters.read(CounterFamily::Limits),
        []
    );
}
