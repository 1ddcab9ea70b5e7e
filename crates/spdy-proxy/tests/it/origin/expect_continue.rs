//! `Expect: 100-continue`: a client gets 100 (Continue) when the origin sends it, and not before. In virtual time.

use std::time::Duration;

use tokio::io::{AsyncReadExt, DuplexStream};

use crate::support::wire::{Between, head, write};

const HEAD: &str =
    "POST /a HTTP/1.1\r\nHost: www.site.test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";

/// A client that has sent its head, and the origin's connection, which has got it.
async fn begun(between: &mut Between) -> (DuplexStream, DuplexStream) {
    let (mut client, _) = between.client();
    write(&mut client, HEAD).await;
    between.clock.advance(Duration::ZERO).await;
    let mut origin = between.next_connection().await;
    let lines = head(&mut origin).await.to_ascii_lowercase();
    assert!(lines.contains("\r\nexpect: 100-continue\r\n"), "{lines}");
    assert!(lines.contains("\r\ncontent-length: 4\r\n"), "{lines}");
    (client, origin)
}

/// The bytes that have arrived so far.
async fn available_text(between: &Between, io: &mut DuplexStream) -> String {
    let mut bytes = [0; 4096];
    tokio::select! {
        biased;
        len = io.read(&mut bytes) => String::from_utf8_lossy(&bytes[..len.expect("the body has no error")]).into_owned(),
        () = between.clock.advance(Duration::ZERO) => String::new(),
    }
}

#[tokio::test]
async fn client_gets_100_after_origin_sends_100() {
    let mut between = Between::start("");
    let (mut client, mut origin) = begun(&mut between).await;
    between.clock.advance(Duration::from_millis(900)).await;
    assert_eq!(available_text(&between, &mut client).await, "");
    write(&mut origin, "HTTP/1.1 100 Continue\r\n\r\n").await;
    between.clock.advance(Duration::ZERO).await;
    let interim = available_text(&between, &mut client).await;
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim}");
    assert_eq!(available_text(&between, &mut origin).await, "");
    write(&mut client, "body").await;
    between.clock.advance(Duration::ZERO).await;
    assert_eq!(available_text(&between, &mut origin).await, "body");
    write(
        &mut origin,
        "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
}

#[tokio::test]
async fn origin_rejection_arrives_before_body_is_sent() {
    let mut between = Between::start("");
    let (mut client, mut origin) = begun(&mut between).await;
    let refusal = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 9\r\n\r\n";
    write(&mut origin, refusal).await;
    between.clock.advance(Duration::ZERO).await;
    write(&mut origin, "too large").await;
    let response = between.read_available(&mut client).await;
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert!(response.ends_with("too large"), "{response}");
    // Where the origin waits for a body nothing else is sent.
    assert_eq!(between.read_available(&mut origin).await, "");
    assert!(between.origin.try_recv().is_err(), "it is not sent again");
}

/// Many servers know nothing of it.
#[tokio::test]
async fn body_is_sent_after_one_second_without_100() {
    let mut between = Between::start("");
    let (mut client, mut origin) = begun(&mut between).await;
    between.clock.advance(Duration::from_millis(999)).await;
    assert_eq!(available_text(&between, &mut client).await, "");
    between.clock.advance(Duration::from_millis(1)).await;
    let interim = available_text(&between, &mut client).await;
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim}");
    write(&mut client, "body").await;
    between.clock.advance(Duration::ZERO).await;
    assert_eq!(available_text(&between, &mut origin).await, "body");
}

/// The response to `GET /after`, and whether the origin received it on another connection than `io`.
async fn next_request(between: &mut Between, io: &mut DuplexStream) -> (String, bool) {
    let (mut client, _) = between.client();
    write(
        &mut client,
        "GET /after HTTP/1.1\r\nHost: www.site.test\r\n\r\n",
    )
    .await;
    between.clock.advance(Duration::ZERO).await;
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nafter";
    let is_another = match between.origin.try_recv() {
        Ok(mut other) => {
            let request = head(&mut other).await;
            assert!(request.starts_with("GET /after "), "{request}");
            write(&mut other, response).await;
            true
        }
        Err(_) => {
            write(io, response).await;
            false
        }
    };
    (between.read_available(&mut client).await, is_another)
}

/// An origin that responds without reading the content would take the bytes of a body for its next request.
#[tokio::test]
async fn body_is_not_sent_once_response_started() {
    let mut between = Between::start("");
    let (mut client, _) = between.client();
    let smuggled = "GET /admin HTTP/1.1\r\nHost: www.site.test\r\n\r\n";
    let request = format!(
        "GET /big.iso HTTP/1.1\r\nHost: www.site.test\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n{smuggled}",
        smuggled.len()
    );
    write(&mut client, &request).await;
    between.clock.advance(Duration::ZERO).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    write(
        &mut origin,
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 8\r\n\r\nhalf",
    )
    .await;
    for tenth in 1..=20 {
        between.clock.advance(Duration::from_millis(100)).await;
        assert_eq!(
            available_text(&between, &mut origin).await,
            "",
            "after {tenth}00 ms"
        );
    }
    write(&mut origin, "half").await;
    between.clock.advance(Duration::ZERO).await;
    let (after, is_another) = next_request(&mut between, &mut origin).await;
    assert!(after.ends_with("\r\n\r\nafter"), "{after}");
    assert!(is_another, "the connection goes on with a body unsent");
    assert_eq!(between.read_available(&mut origin).await, "");
    let response = between.read_available(&mut client).await;
    assert!(response.ends_with("\r\n\r\nhalfhalf"), "{response}");
}

/// The origin may have begun its response when the timeout passed, so it may never read the body.
#[tokio::test]
async fn connection_is_not_reused_after_expect_timeout() {
    for interim in ["", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let mut between = Between::start("");
        let (mut client, mut origin) = begun(&mut between).await;
        write(&mut origin, interim).await;
        between.clock.advance(Duration::from_secs(1)).await;
        write(&mut client, "body").await;
        between.clock.advance(Duration::ZERO).await;
        assert_eq!(available_text(&between, &mut origin).await, "body");
        let created = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
        write(&mut origin, created).await;
        between.clock.advance(Duration::ZERO).await;
        let (after, is_another) = next_request(&mut between, &mut origin).await;
        assert!(after.ends_with("\r\n\r\nafter"), "{after}");
        assert_eq!(is_another, interim.is_empty(), "{interim:?}");
    }
}
