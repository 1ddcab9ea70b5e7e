//! Parts of what is not kept yet: the whole is fetched for who wants its beginning, and others read along. In time that stands.

#[path = "support/wire.rs"]
mod wire;

use std::time::Duration;

use spdy_proxy::counters::Family;
use tokio::io::{AsyncReadExt, DuplexStream};
use wire::{Between, head, write};

/// A client that asks for these bytes.
async fn asks(between: &Between, target: &str, range: &str) -> DuplexStream {
    asks_so(between, target, range, "").await
}

/// The same, with `more` lines of its head.
async fn asks_so(between: &Between, target: &str, range: &str, more: &str) -> DuplexStream {
    let (mut client, _) = between.client();
    let lines = format!(
        "GET {target} HTTP/1.1\r\nHost: www.site.test\r\nRange: bytes={range}\r\n{more}\r\n"
    );
    write(&mut client, &lines).await;
    between.clock.turn(Duration::ZERO).await;
    client
}

/// The next so many bytes.
async fn bytes(io: &mut DuplexStream, len: usize) -> String {
    let mut got = vec![0; len];
    io.read_exact(&mut got).await.expect("they come");
    String::from_utf8(got).expect("text")
}

async fn is_part(client: &mut DuplexStream, range: &str) {
    let head = head(client).await;
    assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
    let line = format!("\r\ncontent-range: bytes {range}\r\n");
    assert!(head.to_ascii_lowercase().contains(&line), "{head}");
}

/// Of no film that a browser plays anything was kept.
#[tokio::test]
async fn who_wants_the_beginning_has_the_whole_fetched_and_kept_and_others_read_along() {
    let mut between = Between::start("");
    let mut first = asks(&between, "/film", "0-3").await;
    let mut origin = between.asked().await;
    let asked = head(&mut origin).await.to_ascii_lowercase();
    assert!(
        asked.starts_with("get /film ") && !asked.contains("range:"),
        "{asked}"
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

    let mut within = asks(&between, "/film", "2-6").await;
    is_part(&mut within, "2-6/10").await;
    assert_eq!(bytes(&mut within, 2).await, "23");
    let mut begins = asks(&between, "/film", "0-").await;
    is_part(&mut begins, "0-9/10").await;
    assert!(
        between.origin.try_recv().is_err(),
        "nobody else is asked for"
    );
    // What is not there yet is not waited for.
    let mut beyond = asks(&between, "/film", "8-").await;
    let mut another = between.asked().await;
    let asked = head(&mut another).await.to_ascii_lowercase();
    assert!(asked.contains("\r\nrange: bytes=8-\r\n"), "{asked}");
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
    let mut later = asks(&between, "/film", "7-").await;
    is_part(&mut later, "7-9/10").await;
    assert_eq!(bytes(&mut later, 3).await, "789");
    assert!(between.origin.try_recv().is_err(), "it is kept");
}

#[tokio::test]
async fn where_the_whole_is_not_to_be_kept_the_part_is_asked_for_and_from_then_on_at_once() {
    for fields in [
        "Cache-Control: no-store\r\nContent-Length: 10",
        "Cache-Control: max-age=60\r\nContent-Length: 2000000",
        "Cache-Control: max-age=60\r\nTransfer-Encoding: chunked",
    ] {
        let mut between = Between::start("[cache]\nobject_mib = 1\n");
        let mut client = asks(&between, "/film", "0-1").await;
        let mut origin = between.asked().await;
        let asked = head(&mut origin).await.to_ascii_lowercase();
        assert!(!asked.contains("range:"), "{asked}");
        write(&mut origin, &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
        let part = "Content-Range: bytes 0-1/10\r\nContent-Length: 2";
        for nth in ["first", "second"] {
            let mut origin = between.asked().await;
            let asked = head(&mut origin).await.to_ascii_lowercase();
            assert!(asked.contains("\r\nrange: bytes=0-1\r\n"), "{nth}: {asked}");
            let answer =
                format!("HTTP/1.1 206 Partial Content\r\nConnection: close\r\n{part}\r\n\r\n01");
            write(&mut origin, &answer).await;
            is_part(&mut client, "0-1/10").await;
            assert_eq!(bytes(&mut client, 2).await, "01");
            client = asks(&between, "/film", "0-1").await;
        }
    }
}

/// The origin is asked for `/film`: all of it, or the part that `range` is.
async fn is_asked_for(between: &mut Between, range: Option<&str>) -> (DuplexStream, String) {
    let mut origin = between.asked().await;
    let asked = head(&mut origin).await.to_ascii_lowercase();
    assert!(asked.starts_with("get /film "), "{asked}");
    match range {
        Some(range) => assert!(
            asked.contains(&format!("\r\nrange: bytes={range}\r\n")),
            "{asked}"
        ),
        None => assert!(!asked.contains("range:"), "{asked}"),
    }
    (origin, asked)
}

/// A player that wanted two bytes got all of them as 200, and each client asked the origin.
#[tokio::test]
async fn without_room_to_keep_the_whole_the_part_comes_out_of_it_and_one_asks_for_all() {
    let mut between = Between::start("[cache]\nobject_mib = 1\nin_flight_mib = 1\n");
    let mut large = asks(&between, "/large", "0-").await;
    let mut of_large = between.asked().await;
    head(&mut of_large).await;
    let fields = "Cache-Control: max-age=60\r\nContent-Length: 1000000";
    write(
        &mut of_large,
        &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"),
    )
    .await;
    is_part(&mut large, "0-999999/1000000").await;

    let mut film = asks(&between, "/film", "0-1").await;
    let mut other = asks(&between, "/film", "0-1").await;
    let (mut origin, _) = is_asked_for(&mut between, None).await;
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
    assert!(between.origin.try_recv().is_err(), "nobody else asks");
    let limits = between.proxy.counters.of(Family::Limits);
    assert_eq!(limits, [("in_flight_mib", 1)]);
}

/// One client who said so had nothing kept for anybody, for an hour.
#[tokio::test]
async fn what_is_about_one_client_keeps_nobody_else_from_having_the_whole_fetched() {
    let mut between = Between::start("");
    let whole =
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\n0123456789";
    let part = "HTTP/1.1 206 Partial Content\r\nConnection: close\r\n\
                Content-Range: bytes 0-1/10\r\nContent-Length: 2\r\n\r\n01";
    for (said, is_whole_asked) in [
        ("Cache-Control: no-store\r\n", false),
        ("Cookie: id=1\r\n", true),
        ("Cookie: id=2\r\n", false),
    ] {
        let mut client = asks_so(&between, "/film", "0-1", said).await;
        if is_whole_asked {
            let (mut origin, _) = is_asked_for(&mut between, None).await;
            write(&mut origin, whole).await;
        }
        let (mut origin, _) = is_asked_for(&mut between, Some("0-1")).await;
        write(&mut origin, part).await;
        is_part(&mut client, "0-1/10").await;
    }
    let mut client = asks(&between, "/film", "0-1").await;
    let (mut origin, _) = is_asked_for(&mut between, None).await;
    write(&mut origin, whole).await;
    is_part(&mut client, "0-1/10").await;
    let mut later = asks_so(&between, "/film", "2-3", "Cookie: id=1\r\n").await;
    is_part(&mut later, "2-3/10").await;
    assert!(between.origin.try_recv().is_err(), "it is kept");
}

#[tokio::test]
async fn where_the_part_is_asked_for_after_all_it_is_asked_for_as_the_client_did() {
    let mut between = Between::start("");
    let mut client = asks_so(&between, "/film", "0-1", "If-None-Match: \"a\"\r\n").await;
    let (mut origin, asked) = is_asked_for(&mut between, None).await;
    assert!(!asked.contains("if-none-match:"), "{asked}");
    let fields = "Cache-Control: no-store\r\nETag: \"a\"\r\nContent-Length: 10";
    write(&mut origin, &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).await;
    let (mut origin, asked) = is_asked_for(&mut between, Some("0-1")).await;
    assert!(asked.contains("\r\nif-none-match: \"a\"\r\n"), "{asked}");
    write(
        &mut origin,
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
    )
    .await;
    let head = head(&mut client).await;
    assert!(head.starts_with("HTTP/1.1 304 "), "{head}");
}
