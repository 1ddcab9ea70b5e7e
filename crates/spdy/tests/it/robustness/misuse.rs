//! Calls in the wrong order, or too often: each returns a value or an error with a remedy, and none waits for ever.

use std::future::Future;
use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use spdy::client::OpenOptions;
use spdy::{Body, Error, HeaderBlock, Priority, RstStatus, Stream, Version, client, server};

use crate::support::{connect_to_service, get, pipe, runtime};

/// Virtual time advances while all tasks wait, so a task that is not ready after an hour never will be.
async fn in_an_hour<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(3600), future)
        .await
        .expect("the call never completes")
}

fn reply() -> HeaderBlock {
    [("x", "y")].into_iter().collect()
}

/// A stream of a client, and the same stream at the server, which has answered it.
async fn stream_pair() -> (client::Session, Stream, Stream) {
    let (near, far) = pipe();
    let (mut accept, connection) = server::Builder::new(Version::V31).handshake(far, runtime());
    connection.spawn();
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime());
    connection.spawn();
    let near = session
        .open(HeaderBlock::new(), OpenOptions::default())
        .await;
    let far = accept.next().await.expect("a stream").accept_raw(&reply());
    tokio::spawn(async move { accept.next().await });
    (session, near.expect("a stream"), far.expect("a stream"))
}

#[tokio::test(start_paused = true)]
async fn a_second_call_of_reply_gives_the_same_headers() {
    let (_session, mut near, _far) = stream_pair().await;
    for call in 1..=3 {
        let headers = in_an_hour(near.reply()).await.expect("a reply");
        assert_eq!(headers, reply(), "call {call}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_available_again_after_the_stream_was_reset() {
    let (_session, mut near, far) = stream_pair().await;
    near.reply().await.expect("a reply");
    far.reset(RstStatus::CANCEL);
    in_an_hour(near.failed()).await.expect("a reset");
    assert_eq!(near.reply().await.expect("the same"), reply());
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_reply_returns_no_reply() {
    let (session, _near, mut far) = stream_pair().await;
    let error = in_an_hour(far.reply())
        .await
        .expect_err("the peer opened it");
    assert!(matches!(error, Error::NoReply { .. }), "{error}");
    let mut options = OpenOptions::default();
    options.unidirectional = true;
    let mut one_way = session
        .open(HeaderBlock::new(), options)
        .await
        .expect("a stream");
    let error = in_an_hour(one_way.reply())
        .await
        .expect_err("the stream is unidirectional");
    assert!(matches!(error, Error::NoReply { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_failure_ends_when_the_stream_ends_in_order() {
    let (_session, mut near, mut far) = stream_pair().await;
    let failed = tokio::spawn(async move {
        near.reply().await.expect("a reply");
        near.finish().expect("FIN");
        near.failed().await
    });
    far.finish().expect("FIN");
    let failed = in_an_hour(failed).await.expect("no panic");
    assert!(failed.is_none(), "{failed:?}");
    assert!(in_an_hour(far.failed()).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connection_is_named_in_the_error() {
    let (near, _far) = pipe();
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime());
    let waiting = session.request(get("/"), Priority::HIGHEST);
    drop(connection);
    let errors = [
        in_an_hour(waiting)
            .await
            .expect_err("a request in progress"),
        in_an_hour(session.request(get("/"), Priority::HIGHEST))
            .await
            .expect_err("a request"),
        in_an_hour(session.open(HeaderBlock::new(), OpenOptions::default()))
            .await
            .expect_err("a stream"),
        in_an_hour(session.ping()).await.expect_err("a ping"),
        session.error().expect("a lost session"),
    ];
    for error in errors {
        assert!(matches!(error, Error::ConnectionDropped), "{error}");
        assert!(error.to_string().contains("spawn"), "{error}");
    }
    in_an_hour(session.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn requests_on_a_connection_that_is_not_run_fail() {
    let (near, _far) = pipe();
    let (session, _connection) = client::Builder::new(Version::V31).handshake(near, runtime());
    let error = in_an_hour(session.request(get("/"), Priority::HIGHEST)).await;
    let error = error.expect_err("no driver");
    assert!(matches!(error, Error::ConnectionNotRun { .. }), "{error}");
    assert!(error.to_string().contains("spawn"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn all_waits_on_a_connection_that_is_not_run_fail() {
    let session = || {
        let (near, far) = pipe();
        let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime());
        (session, (connection, far))
    };
    let (ping, _connection) = session();
    let error = in_an_hour(ping.ping()).await.expect_err("no driver");
    assert!(matches!(error, Error::ConnectionNotRun { .. }), "{error}");
    let (unrun_session, _connection) = session();
    in_an_hour(unrun_session.closed()).await;
    let (opener, _connection) = session();
    let stream = opener
        .open(HeaderBlock::new(), OpenOptions::default())
        .await;
    let error = in_an_hour(stream.expect("room").receive()).await;
    let error = error.expect("no end").expect_err("no driver");
    assert!(matches!(error, Error::ConnectionNotRun { .. }), "{error}");
    let (_near, far) = pipe();
    let (mut accept, connection) = server::Builder::new(Version::V31).handshake(far, runtime());
    assert!(in_an_hour(accept.next()).await.is_none());
    let error = in_an_hour(connection.run()).await.expect_err("too late");
    assert!(matches!(error, Error::ConnectionNotRun { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_runs_late_but_in_time_serves_what_waited() {
    let (near, far) = pipe();
    let service = |_| async { Response::new(Body::full("late")) };
    tokio::spawn(server::Builder::new(Version::V31).serve(far, runtime(), service));
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime());
    let waiting = tokio::spawn(session.request(get("/"), Priority::HIGHEST));
    tokio::time::sleep(Duration::from_secs(9)).await;
    connection.spawn();
    assert_eq!(
        waiting
            .await
            .expect("no panic")
            .expect("a response")
            .status(),
        200
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    session.ping().await.expect("the session is alive");
}

#[tokio::test(start_paused = true)]
async fn a_response_whose_body_fails_at_once_keeps_its_head() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: http::Request<Body>| async move {
            let first_piece =
                (request.uri().path() == "/some").then_some(Ok(bytes::Bytes::from("some")));
            let fails = first_piece.into_iter().chain([Err("the disk is gone")]);
            let mut response = Response::new(Body::from_stream(futures_util::stream::iter(fails)));
            response
                .headers_mut()
                .insert("x-job", http::HeaderValue::from_static("7"));
            response
        });
    for (path, expected_body) in [("/none", ""), ("/some", "some")] {
        let response = in_an_hour(session.request(get(path), Priority::HIGHEST)).await;
        let response = response.expect("a head");
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-job"]),
            (200, &http::HeaderValue::from_static("7"))
        );
        let mut body = response.into_body();
        let mut received = Vec::new();
        let error = loop {
            match in_an_hour(body.frame())
                .await
                .expect("the body does not end normally")
            {
                Ok(frame) => received.extend_from_slice(&frame.into_data().expect("DATA")),
                Err(error) => break error.downcast::<Error>().expect("our error"),
            }
        };
        assert_eq!(error.reset_status(), Some(RstStatus::INTERNAL_ERROR));
        assert_eq!(
            received,
            expected_body.as_bytes(),
            "{path}: data received before the failure"
        );
    }
}
