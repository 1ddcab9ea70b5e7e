//! How sessions end, and how that is reported.

use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::{Body, Error, Priority, Version, client, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{bytes_of, connect_to_service, get, pattern, pipe, runtime};

#[tokio::test]
async fn a_server_that_shuts_down_completes_open_responses() {
    let (near, far) = pipe();
    let runtime = runtime();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let service = |_| async { Response::new(Body::full(pattern(1_000_000))) };
    let server_task = tokio::spawn(server::Builder::new(Version::V31).serve_until(
        far,
        runtime.clone(),
        service,
        async move {
            stopped.await.ok();
        },
    ));
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime);
    let driver = tokio::spawn(connection.run());
    let response = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect("a head");
    stop.send(()).expect("the server is running");
    while !session.is_closing() {
        tokio::task::yield_now().await;
    }
    let error = session
        .request(get("/late"), Priority::HIGHEST)
        .await
        .expect_err("no new streams");
    assert!(error.is_retry_safe(), "{error}");
    assert!(bytes_of(response).await == pattern(1_000_000));
    driver.await.expect("no panic").expect("an orderly end");
    server_task
        .await
        .expect("no panic")
        .expect("an orderly end");
    session.closed().await;
    assert!(session.error().is_none());
}

#[tokio::test]
async fn a_client_that_shuts_down_waits_for_its_responses() {
    let (session, server_task) = connect_to_service(Version::V31, |_| async {
        Response::new(Body::full("late"))
    });
    let request = session.request(get("/"), Priority::HIGHEST);
    session.shutdown();
    assert!(session.is_closing());
    assert!(
        session
            .request(get("/"), Priority::HIGHEST)
            .await
            .expect_err("shut down")
            .is_retry_safe()
    );
    assert_eq!(bytes_of(request.await.expect("a response")).await, "late");
    session.closed().await;
    assert!(session.error().is_none());
    server_task
        .await
        .expect("no panic")
        .expect("an orderly end");
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_session_cleanly() {
    let (session, server_task) =
        connect_to_service(Version::V31, |_| async { Response::new(Body::full("ok")) });
    let request = session.request(get("/"), Priority::HIGHEST);
    drop(session);
    assert_eq!(bytes_of(request.await.expect("a response")).await, "ok");
    server_task
        .await
        .expect("no panic")
        .expect("an orderly end");
}

#[tokio::test]
async fn a_peer_that_vanishes_fails_every_stream() {
    let (near, far) = pipe();
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime());
    let driver = tokio::spawn(connection.run());
    let requests: Vec<_> = (0..10)
        .map(|_| session.request(get("/"), Priority::HIGHEST))
        .collect();
    drop(far);
    for request in requests {
        let error = request.await.expect_err("no response arrives");
        assert!(
            matches!(error, Error::SessionLost(_) | Error::Io(_)),
            "{error}"
        );
        assert!(!error.is_retry_safe() && error.is_retry_safe_if_idempotent());
    }
    driver
        .await
        .expect("no panic")
        .expect_err("not an orderly end");
    session.closed().await;
    assert!(session.error().is_some());
    let error = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect_err("over");
    assert!(error.is_retry_safe(), "never written: {error}");
}

#[tokio::test]
async fn a_body_cut_off_is_an_error_and_not_an_end() {
    let (near, far) = pipe();
    let (near_proxy, far_proxy) = pipe();
    let runtime = runtime();
    tokio::spawn(
        server::Builder::new(Version::V31).serve(far, runtime.clone(), |_| async {
            Response::new(Body::full(pattern(500_000)))
        }),
    );
    // Between them is a wire that is cut after 100,000 bytes.
    let cutter = tokio::spawn(async move {
        let (mut from_server, mut to_server) = tokio::io::split(near);
        let (mut from_client, to_client) = tokio::io::split(far_proxy);
        let up =
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
        let mut to_client = to_client;
        let mut part = (&mut from_server).take(100_000);
        tokio::io::copy(&mut part, &mut to_client)
            .await
            .expect("a pipe");
        to_client.shutdown().await.expect("a pipe");
        up.abort();
    });
    let (session, connection) = client::Builder::new(Version::V31).handshake(near_proxy, runtime);
    connection.spawn();
    let response = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect("a head");
    let error = response.into_body().collect().await.expect_err("cut off");
    assert!(matches!(
        *error.downcast::<Error>().expect("our error"),
        Error::SessionLost(_)
    ));
    cutter.await.expect("no panic");
}

#[tokio::test]
async fn dropping_the_driver_ends_the_session() {
    let (near, _far) = pipe();
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime());
    let request = session.request(get("/"), Priority::HIGHEST);
    drop(connection);
    assert!(matches!(request.await, Err(Error::ConnectionDropped)));
    session.closed().await;
}

#[tokio::test]
async fn an_abort_sends_goaway() {
    let (session, server_task) =
        connect_to_service(Version::V31, |_: Request<Body>| std::future::pending());
    let request = session.request(get("/"), Priority::HIGHEST);
    session.abort();
    assert!(matches!(
        request.await,
        Err(Error::SessionLost(spdy::SessionError::Aborted))
    ));
    server_task.await.expect("no panic").expect_or_truncated();
}

/// GOAWAY may overtake the request or not: in order, or with a stream cut off.
trait ExpectOrTruncated {
    fn expect_or_truncated(self);
}

impl ExpectOrTruncated for Result<(), Error> {
    fn expect_or_truncated(self) {
        assert!(
            matches!(
                self,
                Ok(()) | Err(Error::SessionLost(spdy::SessionError::Truncated { .. }))
            ),
            "{self:?}"
        );
    }
}

#[tokio::test]
async fn invalid_bytes_end_the_session_with_a_goaway() {
    let (mut near, far) = pipe();
    let server_task = tokio::spawn(server::Builder::new(Version::V31).serve(
        far,
        runtime(),
        |_| async { Response::new(Body::empty()) },
    ));
    near.write_all(b"GET / HTTP/1.1\r\nhost: example.org\r\n\r\n")
        .await
        .expect("a pipe");
    let mut received = Vec::new();
    near.read_to_end(&mut received).await.expect("a pipe");
    let goaway = [0x80, 3, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1];
    assert!(received.ends_with(&goaway), "{received:02x?}");
    drop(near);
    assert!(matches!(
        server_task.await.expect("no panic"),
        Err(Error::SessionLost(_))
    ));
}

#[tokio::test]
async fn a_ping_is_echoed_and_fails_with_the_session() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |_| async { Response::new(Body::empty()) });
    session.ping().await.expect("a response");
    let (first, second) = tokio::join!(session.ping(), session.ping());
    first.expect("a response");
    second.expect("a response");
    session.abort();
    session.closed().await;
    assert!(session.ping().await.is_err());
}
