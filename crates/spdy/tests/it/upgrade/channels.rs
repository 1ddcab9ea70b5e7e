//! Sessions and channels behind an upgrade, and how they end.

use bytes::{Bytes, BytesMut};
use spdy::client::{self, OpenOptions};
use spdy::upgrade::{self, Channel, Limits};
use spdy::{
    Compression, Error, Frame, HeaderBlock, Instant, Priority, RstStatus, StreamId, Version, server,
};
use spdy_frame::compress::Deflater;
use spdy_frame::frame::{RstStream, SynStream};
use spdy_session::session::Session as Machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::upgrade::{EXEC, connect, request};
use crate::support::{pattern, pipe, runtime};

/// Two sessions behind an upgrade, the client's and what the server accepts.
async fn pair() -> (client::Session, server::Accept) {
    let (near, far) = pipe();
    let server_task = tokio::spawn(async move {
        let offer = upgrade::read_request(far, Limits::default(), &runtime())
            .await
            .expect("a request");
        let upgraded = offer.accept(EXEC).await.expect("a switch");
        let (accept, connection) =
            upgrade::server_builder().handshake(upgraded.into_io(), runtime());
        connection.spawn();
        accept
    });
    let upgraded = connect(near, EXEC).await.expect("a switch");
    let (session, connection) = upgrade::client_builder().handshake(upgraded.into_io(), runtime());
    connection.spawn();
    (session, server_task.await.expect("no panic"))
}

async fn open(session: &client::Session, accept: &mut server::Accept) -> (Channel, Channel) {
    let headers = HeaderBlock::from_iter([("streamtype", "stdout")]);
    let near = session
        .open(headers, OpenOptions::default())
        .await
        .expect("a stream");
    let incoming = accept.next().await.expect("a stream");
    let far = incoming.accept_raw(&HeaderBlock::new()).expect("a stream");
    let mut near = Channel::new(near);
    assert!(near.reply().await.expect("a reply").is_empty());
    (near, Channel::new(far))
}

#[tokio::test]
async fn no_window_stops_a_transfer_either_way() {
    let (session, mut accept) = pair().await;
    let (mut near, mut far) = open(&session, &mut accept).await;
    let payload = pattern(3_000_000);
    for _ in 0..2 {
        let writer = tokio::spawn({
            let payload = payload.clone();
            async move {
                far.write_all(&payload).await.expect("written");
                far
            }
        });
        let mut received = vec![0; payload.len()];
        near.read_exact(&mut received).await.expect("read");
        assert!(received == payload);
        (near, far) = (writer.await.expect("no panic"), near);
    }
}

#[tokio::test]
async fn a_dropped_channel_loses_no_data_and_is_removed() {
    let (session, mut accept) = pair().await;
    let (mut near, mut far) = open(&session, &mut accept).await;
    let payload = pattern(1_000_000);
    let writer = tokio::spawn({
        let payload = payload.clone();
        async move {
            far.send(payload).await.expect("sent");
            far.end(); // with what the session holds still unsent
        }
    });
    let mut received = Vec::new();
    near.read_to_end(&mut received).await.expect("an end");
    assert!(
        received == payload,
        "{} bytes of {}",
        received.len(),
        payload.len()
    );
    writer.await.expect("no panic");
    drop(near);
    let handle = accept.handle();
    handle.shutdown();
    handle.closed().await;
    assert!(handle.error().is_none(), "{:?}", handle.error());
    assert_eq!((session.active_streams(), handle.active_streams()), (0, 0));
}

#[tokio::test]
async fn cancel_is_read_as_the_end_and_any_other_reset_as_an_error() {
    for status in [RstStatus::CANCEL, RstStatus::INTERNAL_ERROR] {
        let (session, mut accept) = pair().await;
        let (mut near, mut far) = open(&session, &mut accept).await;
        let (mut other_near, other_far) = open(&session, &mut accept).await;
        far.send(Bytes::from_static(b"all there is"))
            .await
            .expect("sent");
        assert_eq!(
            near.receive().await.expect("data").expect("no error"),
            "all there is"
        );
        far.reset(status);
        other_far.reset(status);
        let mut rest = Vec::new();
        let read_result = near.read_to_end(&mut rest).await;
        let received = other_near.receive().await;
        if status == RstStatus::CANCEL {
            assert_eq!(read_result.expect("an end"), 0);
            assert!(received.is_none());
        } else {
            assert!(read_result.is_err());
            let error = received.expect("an error").expect_err("reset");
            assert!(matches!(error, Error::ResetByPeer { .. }), "{error}");
        }
    }
}

#[tokio::test]
async fn a_server_sends_nothing_before_the_first_client_frame() {
    let (mut near, far) = pipe();
    let head = request(&["Connection: Upgrade", "Upgrade: SPDY/3.1"]);
    near.write_all(&head).await.expect("room");
    let offer = upgrade::read_request(far, Limits::default(), &runtime())
        .await
        .expect("a request");
    let upgraded = offer.accept(&[]).await.expect("a switch");
    let (accept, connection) = upgrade::server_builder().handshake(upgraded.into_io(), runtime());
    let connection_task = tokio::spawn(connection.run());
    // A PING of ours makes it speak: its echo must then be the first thing behind the 101.
    near.write_all(&[0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])
        .await
        .expect("room");
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(near.read_u8().await.expect("a head"));
    }
    let mut echo = [0; 12];
    near.read_exact(&mut echo).await.expect("an echo");
    assert_eq!(echo, [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]);
    drop((near, accept));
    connection_task
        .await
        .expect("no panic")
        .expect("an orderly end");
}

/// `kubectl port-forward` resets a stream for each connection that it closes: the session outlives as many as are
/// allowed, and not one more.
#[test]
fn one_reset_more_than_the_limit_in_ten_seconds_ends_the_session() {
    let mut builder = upgrade::server_builder();
    let mut session = Machine::new(builder.config_mut().clone(), Instant::ZERO);
    let mut deflater = Deflater::new(Version::V31, Compression::Zlib(0));
    let headers = HeaderBlock::from_iter([("streamtype", "data")]);
    let mut open_and_reset = |number: u32| {
        let stream_id = StreamId::new(2 * number + 1);
        let (mut block, mut wire) = (BytesMut::new(), BytesMut::new());
        deflater.deflate(&headers, &mut block);
        let syn = Frame::SynStream(SynStream {
            stream_id,
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            unidirectional: false,
            fin: false,
            block: block.freeze(),
        });
        let status = RstStatus::CANCEL;
        let reset = Frame::RstStream(RstStream { stream_id, status });
        syn.encode(Version::V31, &mut wire);
        reset.encode(Version::V31, &mut wire);
        session.handle_input(Instant::ZERO, &wire);
        while session.poll_event().is_some() {}
        session.is_closing()
    };
    for number in 0..upgrade::MAX_RESETS {
        assert!(!open_and_reset(number), "after {} resets", number + 1);
    }
    assert!(open_and_reset(upgrade::MAX_RESETS));
    assert_eq!(
        session.stats().limits.to_string(),
        "flood_aborted_streams 1"
    );
}
