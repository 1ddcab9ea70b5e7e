//! Clients of HTTP/3 that cost more than they bring: at each limit, and one past it. Time stands, until it is pushed.

use std::time::Duration;

use spdy::runtime::SharedRuntime;
use spdy_net_core::handler::Handler;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};
use spdy_net_core::options::ServerOptions;
use spdy_testkit::clock::Clock;

use crate::support::echo;
use crate::support::http3::{
    CONTROL, TestServer, announced, close_code, code, headers, outcome, uni,
};

/// A server whose clock is moved by the test.
fn still(handler: impl Handler) -> (TestServer, Clock, LimitHits) {
    let (time, hits) = (Clock::default(), LimitHits::default());
    let mut options = ServerOptions::default();
    options.hits = hits.clone();
    let world = TestServer::serve_in(SharedRuntime::new(time.clone()), handler, options);
    (world, time, hits)
}

/// A POST, whose `body` the server reads.
fn posted(body: &[u8]) -> Vec<u8> {
    let mut head = headers(b"");
    head[7] = 0xd4; // in the place of GET
    [&head, body].concat()
}

/// A connection that `limit` ended counts as abuse, and is counted.
async fn assert_ended(
    world: &mut TestServer,
    raw: &quinn::Connection,
    hits: &LimitHits,
    limit: ConnectionLimit,
) {
    assert_eq!(close_code(raw).await, code::EXCESSIVE_LOAD);
    assert!(world.end().await.unwrap_err().is_abuse());
    assert_eq!(hits.of(limit), 1);
}

#[tokio::test]
async fn a_thousand_empty_http3_frames_pass_and_one_more_closes() {
    // Empty DATA, frames of an unknown type with nothing and with something in them.
    for frame in [
        announced(0, 0, b""),
        announced(0x21, 0, b""),
        announced(0x21, 1, b"x"),
    ] {
        let (mut world, time, hits) = still(echo);
        let raw = world.raw().await;
        let of = |count| posted(&frame.repeat(count));
        assert_eq!(outcome(&raw, &of(1000)).await, None, "{frame:x?}");
        time.push(Duration::from_secs(10));
        assert_eq!(outcome(&raw, &of(1000)).await, None, "{frame:x?}");
        let _ = outcome(&raw, &of(1)).await;
        assert_ended(&mut world, &raw, &hits, ConnectionLimit::FloodEmptyFrames).await;
    }
}

#[tokio::test]
async fn control_frames_are_rate_limited() {
    // PRIORITY_UPDATE of stream 0, GOAWAY, MAX_PUSH_ID, and a type that is unknown.
    let updated = [&[0x80, 0x0f, 0x07, 0x00][..], &[0x02, 0x00, b'i']].concat();
    for frame in [
        updated,
        announced(7, 1, &[0]),
        announced(0xd, 1, &[0]),
        announced(0x21, 0, b""),
    ] {
        let (mut world, _, hits) = still(echo);
        let raw = world.raw().await;
        let control_bytes = [CONTROL, &frame.repeat(1000)].concat();
        let mut control = uni(&raw, &control_bytes, false).await;
        assert_eq!(outcome(&raw, &headers(b"")).await, None, "{frame:x?}");
        let _ = control.write_all(&frame).await;
        assert_ended(&mut world, &raw, &hits, ConnectionLimit::FloodEmptyFrames).await;
    }
}

#[tokio::test]
async fn streams_of_unknown_types_are_rate_limited() {
    let (mut world, _, hits) = still(echo);
    let raw = world.raw().await;
    for nth in 0..=1000 {
        assert!(
            raw.close_reason().is_none(),
            "ended before the limit, by {nth}"
        );
        let unknown = uni(&raw, &[0x21], false).await;
        let _ = unknown.stopped().await;
    }
    assert_ended(&mut world, &raw, &hits, ConnectionLimit::FloodEmptyFrames).await;
}

#[tokio::test]
async fn qpack_instructions_are_rate_limited() {
    // A capacity of 0, and cancellations of stream 0.
    for (kind, instruction) in [(2, 0x20), (3, 0x40)] {
        let (mut world, _, hits) = still(echo);
        let raw = world.raw().await;
        let mut stream = uni(&raw, &[kind], false).await;
        stream.write_all(&[instruction; 1000]).await.unwrap();
        // Each request allows 64 more.
        assert_eq!(outcome(&raw, &headers(b"")).await, None);
        stream.write_all(&[instruction; 64]).await.unwrap();
        assert_eq!(outcome(&raw, &headers(b"")).await, None);
        let _ = stream.write_all(&[instruction; 65]).await;
        assert_ended(&mut world, &raw, &hits, ConnectionLimit::FloodEmptyFrames).await;
    }
}

#[tokio::test]
async fn http3_streams_reset_by_us_count_as_aborted() {
    let (mut world, time, hits) = still(echo);
    let raw = world.raw().await;
    let invalid = headers(b"\x21A\x01b");
    let broken = Some(code::MESSAGE_ERROR);
    for nth in 0..100 {
        assert_eq!(outcome(&raw, &invalid).await, broken, "{nth}");
    }
    time.push(Duration::from_secs(10));
    // As many that are answered, and one: not over half of them are aborted.
    for nth in 0..102 {
        assert_eq!(outcome(&raw, &headers(b"")).await, None, "{nth}");
    }
    for nth in 0..102 {
        assert_eq!(outcome(&raw, &invalid).await, broken, "{nth}");
    }
    outcome(&raw, &invalid).await; // 103 of 205
    assert_ended(
        &mut world,
        &raw,
        &hits,
        ConnectionLimit::FloodAbortedStreams,
    )
    .await;
}

#[tokio::test]
async fn an_error_in_a_body_closes_the_connection() {
    for (invalid, expected, abuse) in [
        (
            announced(0x21, 64 * 1024 + 1, b""),
            code::EXCESSIVE_LOAD,
            true,
        ),
        (announced(4, 0, b""), code::FRAME_UNEXPECTED, false),
    ] {
        let (mut world, ..) = still(echo);
        let raw = world.raw().await;
        assert_eq!(outcome(&raw, &posted(&invalid)).await, Some(expected));
        let end = world
            .end()
            .await
            .expect_err("the connection did not end normally");
        assert_eq!(end.is_abuse(), abuse, "{end}");
    }
}
