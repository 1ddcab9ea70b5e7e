//! Streams without HTTP.

use std::io::IoSlice;

use bytes::Bytes;
use futures_util::FutureExt;
use spdy::client::OpenOptions;
use spdy::{Error, HeaderBlock, RstStatus, Stream, Version, client, server};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::support::{pattern, pipe, runtime};

fn block(pairs: &[(&'static str, &'static str)]) -> HeaderBlock {
    pairs.iter().copied().collect()
}

/// A client's session and what its server accepts.
fn pair() -> (client::Session, server::Accept) {
    let (near, far) = pipe();
    let runtime = runtime();
    let (accept, server_connection) =
        server::Builder::new(Version::V31).handshake(far, runtime.clone());
    server_connection.spawn();
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime);
    connection.spawn();
    (session, accept)
}

async fn open(session: &client::Session, accept: &mut server::Accept) -> (Stream, Stream) {
    let headers = block(&[("streamtype", "stdin")]);
    let mut near = session
        .open(headers.clone(), OpenOptions::default())
        .await
        .expect("a stream");
    let incoming = accept.next().await.expect("a stream");
    assert_eq!(incoming.headers(), &headers);
    let far = incoming
        .accept_raw(&block(&[("x", "y")]))
        .expect("a stream");
    assert_eq!(near.reply().await.expect("a reply"), block(&[("x", "y")]));
    assert_eq!(near.id(), far.id());
    (near, far)
}

#[tokio::test]
async fn bytes_go_both_ways_and_each_half_ends_on_its_own() {
    let (session, mut accept) = pair();
    let (near, far) = open(&session, &mut accept).await;
    let echo = tokio::spawn(async move {
        let (mut from, mut to) = tokio::io::split(far);
        tokio::io::copy(&mut from, &mut to).await.expect("an echo");
        to.shutdown().await.expect("an end");
    });
    let (mut from, mut to) = tokio::io::split(near);
    let payload = pattern(3_000_000);
    let writer = tokio::spawn({
        let payload = payload.clone();
        async move {
            to.write_all(&payload).await.expect("written");
            to.shutdown().await.expect("an end");
            to
        }
    });
    let mut back = Vec::new();
    from.read_to_end(&mut back).await.expect("read");
    assert!(back == payload);
    let to = writer.await.expect("no panic");
    echo.await.expect("no panic");
    drop((from, to));
    assert_eq!(session.active_streams(), 0);
    assert_eq!(
        session.stats().resets_sent.total(),
        0,
        "both halves ended, so nothing was reset"
    );
}

#[tokio::test]
async fn data_arrives_complete_without_frame_borders() {
    let (session, mut accept) = pair();
    let (mut near, mut far) = open(&session, &mut accept).await;
    near.send(Bytes::from_static(b"hello "))
        .await
        .expect("sent");
    near.send(Bytes::from_static(b"world")).await.expect("sent");
    near.finish().expect("an end");
    assert!(matches!(
        near.send(Bytes::from_static(b"!")).await,
        Err(Error::SendClosed { .. })
    ));
    let mut received = Vec::new();
    while let Some(data) = far.receive().await {
        received.extend_from_slice(&data.expect("no error"));
    }
    assert_eq!(received, b"hello world");
}

#[tokio::test]
async fn vectored_writes_become_one_frame_within_the_window() {
    let (session, mut accept) = pair();
    let (mut near, mut far) = open(&session, &mut accept).await;
    assert!(near.is_write_vectored());
    let frames = session.stats().frames_sent.total();
    let slices = [&b"hello "[..], b"", b"wor", b"ld"].map(IoSlice::new);
    let len = near.write_vectored(&slices).await.expect("written");
    assert_eq!(len, 11);
    assert_eq!(
        far.receive().await.expect("data").expect("no error"),
        "hello world"
    );
    assert_eq!(session.stats().frames_sent.total(), frames + 1);

    // Without a reader, the window of 64 KiB and the buffer of the same size are all there is.
    let (long, mut accepted_len) = (pattern(100_000), 0);
    let slices = [&long[..], &long[..]].map(IoSlice::new);
    while let Some(result) = near.write_vectored(&slices).now_or_never() {
        accepted_len += result.expect("written");
        tokio::task::yield_now().await;
    }
    assert!(
        (65_536..=2 * 65_536).contains(&accepted_len),
        "{accepted_len} bytes"
    );
}

#[tokio::test]
async fn more_headers_can_follow_the_first() {
    let (session, mut accept) = pair();
    let (mut near, mut far) = open(&session, &mut accept).await;
    near.send_headers(&block(&[("x-more", "1")]), false)
        .expect("sent");
    near.send(Bytes::from_static(b"data")).await.expect("sent");
    assert_eq!(
        far.receive().await.expect("data").expect("no error"),
        "data"
    );
    assert_eq!(far.take_headers(), Some(block(&[("x-more", "1")])));
    assert_eq!(far.take_headers(), None);
}

#[tokio::test]
async fn a_reset_is_reported_after_earlier_data() {
    let (session, mut accept) = pair();
    let (near, mut far) = open(&session, &mut accept).await;
    let mut near = near;
    near.send(Bytes::from_static(b"last words"))
        .await
        .expect("sent");
    assert_eq!(
        far.receive().await.expect("data").expect("no error"),
        "last words"
    );
    near.reset(RstStatus::CANCEL);
    let error = far.receive().await.expect("an error").expect_err("reset");
    assert_eq!(error.reset_status(), Some(RstStatus::CANCEL));
    let mut far = far;
    let error = far.write_all(b"too late").await.expect_err("reset");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_unidirectional_stream_is_read_and_not_answered() {
    let (session, mut accept) = pair();
    let mut options = OpenOptions::default();
    options.unidirectional = true;
    let mut near = session
        .open(block(&[("x", "log")]), options)
        .await
        .expect("a stream");
    near.send(Bytes::from_static(b"line")).await.expect("sent");
    near.finish().expect("an end");
    let incoming = accept.next().await.expect("a stream");
    assert!(incoming.is_unidirectional());
    let mut far = incoming.accept_raw(&HeaderBlock::new()).expect("a stream");
    let mut received = String::new();
    far.read_to_string(&mut received).await.expect("read");
    assert_eq!(received, "line");
    assert!(far.write_all(b"x").await.is_err());
    drop((near, far));
    assert_eq!(session.active_streams(), 0);
}

#[tokio::test]
async fn a_dropped_stream_is_cancelled_and_a_dropped_offer_refused() {
    let (session, mut accept) = pair();
    let (near, mut far) = open(&session, &mut accept).await;
    drop(near);
    assert_eq!(
        far.failed().await.and_then(|error| error.reset_status()),
        Some(RstStatus::CANCEL)
    );
    let mut near = session
        .open(block(&[("x", "y")]), OpenOptions::default())
        .await
        .expect("a stream");
    drop(accept.next().await.expect("a stream"));
    let error = near.reply().await.expect_err("refused");
    assert_eq!(error.reset_status(), Some(RstStatus::REFUSED_STREAM));
    assert!(error.is_retry_safe());
}

/// A stream was reset by its own drop after `finish`, and what it had still to send went with it.
#[tokio::test]
async fn data_written_before_finish_survives_the_drop() {
    let (session, mut accept) = pair();
    let payload = pattern(60_000);
    let (mut near, mut far) = open(&session, &mut accept).await;
    near.write_all(&payload).await.expect("room");
    near.shutdown().await.expect("an end");
    drop(near);
    let mut received = Vec::new();
    far.read_to_end(&mut received).await.expect("no reset");
    assert!(received == payload);
    // The other way round, the answer included.
    let mut near = session
        .open(block(&[("x", "y")]), OpenOptions::default())
        .await
        .expect("a stream");
    let incoming = accept.next().await.expect("a stream");
    let mut far = incoming.accept_raw(&block(&[])).expect("a stream");
    far.write_all(&payload).await.expect("room");
    far.shutdown().await.expect("an end");
    drop(far);
    near.reply().await.expect("a reply");
    let mut received = Vec::new();
    near.read_to_end(&mut received).await.expect("no reset");
    assert!(received == payload);
}

#[tokio::test]
async fn sending_to_a_closed_client_is_an_error() {
    let (session, mut accept) = pair();
    let (mut near, mut far) = open(&session, &mut accept).await;
    near.finish().expect("an end");
    drop(near);
    far.send(Bytes::from_static(b"anyone?"))
        .await
        .expect("room");
    assert_eq!(
        far.failed().await.and_then(|error| error.reset_status()),
        Some(RstStatus::CANCEL)
    );
    assert_eq!(session.active_streams(), 0);
}

/// Names and values reach the encoder by other ways than `http`'s types, and its lengths are of 16 bits in
/// SPDY/2: it panicked, within the driver.
#[tokio::test]
async fn headers_that_cannot_be_encoded_are_refused_before_sending() {
    for version in Version::ALL {
        let (near, far) = pipe();
        let runtime = runtime();
        let (mut accept, server_connection) =
            server::Builder::new(version).handshake(far, runtime.clone());
        server_connection.spawn();
        let (session, connection) = client::Builder::new(version).handshake(near, runtime);
        connection.spawn();
        let long: HeaderBlock = [("x", vec![b'v'; 1024 * 1024 + 1])].into_iter().collect();
        let invalid_blocks = [
            long,
            block(&[("x", "a\r\nset-cookie: b")]),
            block(&[("x", "a\0\0b")]),
            block(&[("X", "upper")]),
            block(&[("", "empty")]),
        ];
        let is_refused = |result: Result<(), Error>| matches!(result, Err(Error::Headers(_)));
        for headers in invalid_blocks {
            let result = session.open(headers.clone(), OpenOptions::default()).await;
            assert!(is_refused(result.map(|_| ())), "{version}");
            let near = session
                .open(block(&[("x", "y")]), OpenOptions::default())
                .await
                .expect("a stream");
            let incoming = accept.next().await.expect("a stream");
            assert!(
                is_refused(incoming.accept_raw(&headers).map(|_| ())),
                "{version}"
            );
            drop(near);
            let near = session.open(block(&[("x", "y")]), OpenOptions::default());
            let mut near = near.await.expect("a stream");
            assert!(is_refused(near.send_headers(&headers, false)), "{version}");
            drop(accept.next().await);
        }
        session.ping().await.expect("the session is alive");
    }
}

#[tokio::test]
async fn a_value_that_spdy_2_cannot_count_is_refused_in_messages_too() {
    let value = "v".repeat(65_536);
    let (near, far) = pipe();
    let runtime = runtime();
    let header_value = value.clone();
    let server = server::Builder::new(Version::V2).serve(far, runtime.clone(), move |_| {
        let response = http::Response::builder().header("x", &header_value);
        std::future::ready(response.body(spdy::Body::empty()).expect("valid"))
    });
    tokio::spawn(server);
    let (session, connection) = client::Builder::new(Version::V2).handshake(near, runtime);
    connection.spawn();
    let request = http::Request::get("http://example.org/").header("x", &value);
    let request = request.body(spdy::Body::empty()).expect("valid");
    let result = session.request(request, spdy::Priority::HIGHEST).await;
    assert!(matches!(result, Err(Error::Headers(_))), "{result:?}");
    let request = http::Request::get("http://example.org/").body(spdy::Body::empty());
    let result = session
        .request(request.expect("valid"), spdy::Priority::HIGHEST)
        .await;
    let error = result.expect_err("the response was rejected");
    assert_eq!(error.reset_status(), Some(RstStatus::INTERNAL_ERROR));
}

/// A client that accepts streams opened by its server, and that server.
fn offered(
    client: client::Builder,
    version: Version,
) -> (client::Session, client::IncomingStreams, server::Accept) {
    let (near, far) = pipe();
    let runtime = runtime();
    let (accept, server_connection) = server::Builder::new(version).handshake(far, runtime.clone());
    server_connection.spawn();
    let (session, offers, connection) = client.handshake_with_streams(near, runtime);
    connection.spawn();
    (session, offers, accept)
}

#[tokio::test]
async fn a_server_opens_streams_as_a_client_does() {
    for version in Version::ALL {
        let (session, mut offers, accept) = offered(client::Builder::new(version), version);
        let headers = block(&[("streamtype", "event")]);
        let result = accept
            .handle()
            .open(headers.clone(), OpenOptions::default());
        let mut far = result.expect("a stream");
        assert_eq!(far.id().value(), 2, "{version}");
        let offer = offers.next().await.expect("a stream");
        assert_eq!((offer.headers(), offer.id()), (&headers, far.id()));
        assert!(offer.associated_to().is_zero() && !offer.is_unidirectional());
        let mut near = offer.accept(&block(&[("x", "y")])).expect("a stream");
        assert_eq!(far.reply().await.expect("a reply"), block(&[("x", "y")]));
        // More than any window, there and back.
        let payload = pattern(300_000);
        let echo = tokio::spawn(async move {
            let (mut from, mut to) = tokio::io::split(&mut near);
            tokio::io::copy(&mut from, &mut to).await.expect("an echo");
            to.shutdown().await.expect("an end");
        });
        let (mut from, mut to) = tokio::io::split(far);
        let write = async {
            to.write_all(&payload).await.expect("written");
            to.shutdown().await.expect("an end");
        };
        let mut back = Vec::new();
        let (_, read_result) = tokio::join!(write, from.read_to_end(&mut back));
        read_result.expect("read");
        assert!(back == payload, "{version}");
        echo.await.expect("no panic");
        drop((from, to));
        assert_eq!(session.active_streams(), 0, "{version}");
        assert_eq!(accept.handle().active_streams(), 0, "{version}");
    }
}

#[tokio::test]
async fn a_client_accepts_or_rejects_server_streams() {
    let (session, mut offers, accept) = offered(client::Builder::new(Version::V31), Version::V31);
    let mut one_way = OpenOptions::default();
    one_way.unidirectional = true;
    let handle = accept.handle();
    let open = || handle.open(block(&[("x", "log")]), one_way);
    let mut far = open().expect("a stream");
    far.send(Bytes::from_static(b"line")).await.expect("sent");
    far.finish().expect("an end");
    let offer = offers.next().await.expect("a stream");
    assert!(offer.is_unidirectional());
    let mut near = offer.accept(&HeaderBlock::new()).expect("a stream");
    let mut received = String::new();
    near.read_to_string(&mut received).await.expect("read");
    assert_eq!(received, "line");
    assert!(near.write_all(b"x").await.is_err());
    let mut far = open().expect("a stream");
    drop(offers.next().await.expect("a stream"));
    let refused_stream = Some(RstStatus::REFUSED_STREAM);
    assert_eq!(
        far.failed().await.and_then(|error| error.reset_status()),
        refused_stream
    );
    // Streams are no longer taken, so waiting ones are refused too.
    let mut waits = open().expect("a stream");
    session.ping().await.expect("the stream has arrived");
    drop(offers);
    assert_eq!(
        waits.failed().await.and_then(|error| error.reset_status()),
        refused_stream
    );
    let mut late_stream = open().expect("a stream");
    assert_eq!(
        late_stream
            .failed()
            .await
            .and_then(|error| error.reset_status()),
        refused_stream
    );
}

/// The session drained with its last handle, and later offers were refused.
#[tokio::test]
async fn incoming_streams_keep_the_session_open() {
    let (session, mut offers, accept) = offered(client::Builder::new(Version::V31), Version::V31);
    drop(session);
    let handle = accept.handle();
    for _ in 0..2 {
        handle.ping().await.expect("the session is alive");
        let result = handle.open(block(&[("x", "y")]), OpenOptions::default());
        let mut far = result.expect("a stream");
        let offer = offers.next().await.expect("a stream");
        let mut near = offer.accept(&HeaderBlock::new()).expect("a stream");
        near.finish().expect("an end");
        far.finish().expect("an end");
        assert!(far.receive().await.is_none());
    }
    drop(offers);
    handle.closed().await;
    assert!(handle.error().is_none());
}

/// Streams that a client had requested, and still held, were counted as the server's.
#[tokio::test]
async fn open_client_streams_do_not_count_against_server_streams() {
    let mut client = client::Builder::new(Version::V31);
    client.config_mut().ended_streams_in_work = 1;
    let (session, mut offers, mut accept) = offered(client, Version::V31);
    let mut streams = Vec::new();
    for _ in 0..3 {
        let (mut near, mut far) = open(&session, &mut accept).await;
        near.finish().expect("an end");
        far.finish().expect("an end");
        assert!(far.receive().await.is_none());
        streams.push(near);
    }
    // Regression: the last of them stayed open until its FIN arrived.
    session.ping().await.expect("all frames have arrived");
    assert_eq!(session.active_streams(), 0);
    let handle = accept.handle();
    let open = || handle.open(block(&[("x", "y")]), OpenOptions::default());
    for _ in 0..2 {
        let mut far = open().expect("a stream");
        far.finish().expect("an end");
        let offer = tokio::select! {
            offer = offers.next() => offer.expect("an offer"),
            failed = far.failed() => panic!("{failed:?}"),
        };
        let mut near = offer.accept(&HeaderBlock::new()).expect("a stream");
        near.finish().expect("an end");
        assert!(far.receive().await.is_none());
        streams.push(near);
    }
    // Those that the server opened do count: two, and the limit is one.
    let status = open()
        .expect("a stream")
        .failed()
        .await
        .and_then(|error| error.reset_status());
    assert_eq!(status, Some(RstStatus::REFUSED_STREAM));
}

#[tokio::test]
async fn a_server_opens_no_more_streams_than_the_client_allows() {
    let client = client::Builder::new(Version::V31).max_concurrent_streams(2);
    let (_session, _offers, accept) = offered(client, Version::V31);
    let handle = accept.handle();
    handle
        .ping()
        .await
        .expect("the client's SETTINGS have arrived");
    let open = || handle.open(block(&[("x", "y")]), OpenOptions::default());
    let _open_streams = [open().expect("a stream"), open().expect("a stream")];
    assert!(matches!(open(), Err(Error::TooManyStreams { limit: 2 })));
}

#[tokio::test]
async fn a_client_without_incoming_streams_allows_none() {
    let (_session, accept) = pair();
    let handle = accept.handle();
    handle
        .ping()
        .await
        .expect("the client's SETTINGS have arrived");
    let result = handle.open(block(&[("x", "y")]), OpenOptions::default());
    assert!(matches!(result, Err(Error::TooManyStreams { limit: 0 })));
}
