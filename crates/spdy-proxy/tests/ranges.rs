//! Parts of what is not kept yet: the whole is fetched for who wants its beginning, and others read along. In time that stands.

#[path = "support/wire.rs"]
mod wire;

use std::time::Duration;

use tokio::io::{AsyncReadExt, DuplexStream};
use wire::{Between, head, write};

/// A client that asks for these bytes.
async fn asks(between: &Between, target: &str, range: &str) -> DuplexStream {
    let (mut client, _) = between.client();
    let lines =
        format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\nRange: bytes={range}\r\n\r\n");
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
