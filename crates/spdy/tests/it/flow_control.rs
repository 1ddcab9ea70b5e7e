//! Flow control: windows, slow readers, the peer's limits, cancelling.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::{Body, Error, Priority, RstStatus, Version, client, server};

use crate::support::{
    bytes_of, connect_to_service, connect_to_service_with, get, pattern, pipe, post, runtime,
};

#[tokio::test]
async fn a_stopped_reader_blocks_only_its_stream() {
    let piece_count = Arc::new(AtomicUsize::new(0));
    let counter = piece_count.clone();
    let service = move |request: Request<Body>| {
        let counter = counter.clone();
        async move {
            if request.uri().path() == "/small" {
                return Response::new(Body::full("small"));
            }
            let pieces = (0..1024).map(move |_| {
                counter.fetch_add(1024, Ordering::Relaxed);
                Ok::<_, std::convert::Infallible>(Bytes::from(vec![7; 1024]))
            });
            Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
        }
    };
    let client = client::Builder::new(Version::V31)
        .initial_window_bytes(65_536)
        .session_window_bytes(1 << 20);
    let (session, _server_task) =
        connect_to_service_with(client, server::Builder::new(Version::V31), service);
    let stalled = session
        .request(get("/large"), Priority::HIGHEST)
        .await
        .expect("a head");
    for _ in 0..100 {
        let response = session
            .request(get("/small"), Priority::LOWEST)
            .await
            .expect("a response");
        assert_eq!(bytes_of(response).await, "small");
    }
    // The window, what the server may queue, and a piece in hand.
    let bound = 65_536 + 65_536 + 2 * 1024;
    assert!(
        piece_count.load(Ordering::Relaxed) <= bound,
        "{} bytes were pulled",
        piece_count.load(Ordering::Relaxed)
    );
    assert_eq!(bytes_of(stalled).await.len(), 1024 * 1024);
}

/// A client and a server with their defaults; `/` is 20 MB, anything else longer than a stream's window.
fn by_default(version: Version) -> client::Session {
    let (small, large) = (pattern(1_100_000), pattern(20_000_000));
    let (session, _server_task) = connect_to_service(version, move |request: Request<Body>| {
        let body = if request.uri().path() == "/" {
            &large
        } else {
            &small
        };
        let response = Response::new(Body::full(body.clone()));
        async move { response }
    });
    session
}

/// Heads of `count` responses whose bodies are not read.
async fn unread(session: &client::Session, count: usize) -> Vec<Response<Body>> {
    let heads =
        (0..count).map(|number| session.request(get(&format!("/{number}")), Priority::HIGHEST));
    futures_util::future::try_join_all(heads)
        .await
        .expect("heads")
}

#[tokio::test(start_paused = true)]
async fn unread_responses_do_not_block_others() {
    for version in [Version::V31, Version::V3] {
        for count in [1, 10, 99] {
            let session = by_default(version);
            let _unread = unread(&session, count).await;
            let download = async {
                let response = session.request(get("/"), Priority::LOWEST).await;
                bytes_of(response.expect("a head")).await.len()
            };
            let length = tokio::time::timeout(Duration::from_secs(1), download).await;
            assert_eq!(length, Ok(20_000_000), "{version}, {count} unread");
        }
    }
}

/// The limit in `docs/reference/memory.md`: the windows of 100 streams.
#[tokio::test(start_paused = true)]
async fn a_hundred_unread_windows_block_the_next_response() {
    let window = 1024 * 1024;
    let body = pattern(window);
    let (session, _server_task) = connect_to_service(Version::V31, move |_| {
        let response = Response::new(Body::full(body.clone()));
        async move { response }
    });
    let mut unread_responses = unread(&session, 99).await;
    unread_responses.extend(unread(&session, 1).await);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(session.active_streams(), 0, "all bodies arrived completely");
    let next = session.request(get("/next"), Priority::HIGHEST).await;
    let mut next = next.expect("a head needs no window").into_body();
    let waits = tokio::time::timeout(Duration::from_secs(50), next.frame()).await;
    assert!(waits.is_err(), "{waits:?}");
    unread_responses.clear();
    assert_eq!(
        next.collect().await.expect("a whole body").to_bytes().len(),
        window
    );
}

#[tokio::test]
async fn without_flow_control_a_slow_reader_stops_the_connection() {
    let client = client::Builder::new(Version::V31)
        .flow_control(false)
        .session_window_bytes(65_536);
    let server = server::Builder::new(Version::V31).flow_control(false);
    let (session, _server_task) = connect_to_service_with(client, server, |_| async {
        Response::new(Body::full(pattern(3_000_000)))
    });
    let response = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect("a head");
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(bytes_of(response).await == pattern(3_000_000));
}

#[tokio::test]
async fn dropping_a_request_cancels_it_at_the_server() {
    let (dropped, drop_signal) = tokio::sync::oneshot::channel::<()>();
    let mut dropped = Some(dropped);
    let (session, _server_task) = connect_to_service(Version::V31, move |_| {
        let guard = dropped.take();
        async move {
            let _guard = guard; // gone when the service's future is
            std::future::pending::<()>().await;
            Response::new(Body::empty())
        }
    });
    let request = session.request(get("/"), Priority::HIGHEST);
    assert_eq!(session.active_streams(), 1);
    // The first poll of the driver must write the SYN_STREAM, else there is nothing to cancel.
    while session.stats().frames_sent.total() < 2 {
        tokio::task::yield_now().await;
    }
    drop(request);
    assert_eq!(session.active_streams(), 0);
    drop_signal
        .await
        .expect_err("no body is sent: the sender is dropped");
    assert_eq!(session.stats().resets_sent.total(), 1);
}

#[tokio::test]
async fn dropping_a_body_cancels_the_stream_and_returns_its_credit() {
    let (session, _server_task) = connect_to_service(Version::V31, |_| async {
        Response::new(Body::full(pattern(4_000_000)))
    });
    // Many times the session's window: without its credit back the session would starve.
    for _ in 0..20 {
        let response = session
            .request(get("/"), Priority::HIGHEST)
            .await
            .expect("a head");
        let mut body = response.into_body();
        body.frame().await.expect("a piece").expect("no error");
        drop(body);
    }
    assert_eq!(session.active_streams(), 0);
    let response = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect("a head");
    assert_eq!(bytes_of(response).await.len(), 4_000_000);
}

#[tokio::test]
async fn requests_past_the_limit_wait_and_go_by_priority() {
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let service_order = order.clone();
    let (release, released) = tokio::sync::watch::channel(false);
    let service = move |request: Request<Body>| {
        service_order
            .lock()
            .expect("no panic")
            .push(request.uri().path().to_owned());
        let mut released = released.clone();
        async move {
            released
                .wait_for(|go| *go)
                .await
                .expect("the test is running");
            Response::new(Body::full("ok"))
        }
    };
    let server = server::Builder::new(Version::V31).max_concurrent_streams(2);
    let client = client::Builder::new(Version::V31).assumed_peer_streams(2);
    let (session, _server_task) = connect_to_service_with(client, server, service);
    let paths = [
        ("/first", 7),
        ("/second", 7),
        ("/idle", 4),
        ("/late", 2),
        ("/style", 1),
        ("/later", 2),
    ];
    let requests: Vec<_> = paths
        .iter()
        .map(|(path, priority)| session.request(get(path), Priority::new(*priority)))
        .collect();
    assert_eq!(session.active_streams(), 6);
    while order.lock().expect("no panic").len() < 2 {
        tokio::task::yield_now().await;
    }
    release.send(true).expect("the service is running");
    for request in requests {
        assert_eq!(bytes_of(request.await.expect("a response")).await, "ok");
    }
    assert_eq!(
        *order.lock().expect("no panic"),
        ["/first", "/second", "/style", "/late", "/later", "/idle"]
    );
    assert_eq!(
        session.stats().resets_received.total(),
        0,
        "no stream was refused"
    );
}

#[tokio::test]
async fn a_waiting_request_that_is_dropped_is_never_sent() {
    let server = server::Builder::new(Version::V31).max_concurrent_streams(1);
    let client = client::Builder::new(Version::V31).assumed_peer_streams(1);
    let (session, _server_task) =
        connect_to_service_with(client, server, |request: Request<Body>| async move {
            assert_ne!(request.uri().path(), "/dropped");
            Response::new(Body::full("ok"))
        });
    let first = session.request(get("/1"), Priority::HIGHEST);
    let dropped = session.request(get("/dropped"), Priority::HIGHEST);
    let last = session.request(get("/2"), Priority::HIGHEST);
    drop(dropped);
    for request in [first, last] {
        assert_eq!(bytes_of(request.await.expect("a response")).await, "ok");
    }
    assert_eq!(session.stats().streams_opened, 2);
}

#[tokio::test]
async fn an_early_response_leaves_the_upload_usable() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            drop(request); // unread
            Response::new(Body::full("no need"))
        });
    for _ in 0..5 {
        let response = session
            .request(post("/", Body::full(pattern(2_000_000))), Priority::HIGHEST)
            .await;
        assert_eq!(bytes_of(response.expect("a response")).await, "no need");
    }
    let mut turns = 0;
    while session.active_streams() > 0 {
        tokio::task::yield_now().await;
        turns += 1;
        assert!(turns < 1_000_000, "an upload that is not read did not end");
    }
}

#[tokio::test]
async fn data_shorter_than_content_length_gets_400() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            let body = request.into_body().collect().await;
            assert!(body.is_err(), "content-length promised five bytes");
            Response::new(Body::empty())
        });
    for body in ["four", ""] {
        let mut request = post("/", Body::full(body));
        request
            .headers_mut()
            .insert("content-length", "5".parse().expect("valid"));
        let response = session
            .request(request, Priority::HIGHEST)
            .await
            .expect("a response");
        assert_eq!(response.status(), 400, "{body:?} came");
    }
}

#[tokio::test]
async fn a_response_of_another_length_is_delivered_and_flagged() {
    let (session, _server_task) = connect_to_service(Version::V31, |_| async {
        Response::builder()
            .header("content-length", "10")
            .body(Body::full("four"))
            .expect("valid")
    });
    let response = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect("a response");
    let mut body = response.into_body();
    let data = body
        .frame()
        .await
        .expect("a piece")
        .expect("no error")
        .into_data()
        .expect("data");
    assert_eq!(data, "four");
    assert!(body.frame().await.is_none());
    let mismatch = body.length_mismatch().expect("six bytes are missing");
    assert_eq!((mismatch.declared, mismatch.received), (10, 4));
}

#[tokio::test]
async fn headers_that_are_no_request_get_400() {
    let (near, far) = pipe();
    let runtime = runtime();
    let connection_of_server =
        server::Builder::new(Version::V31).serve(far, runtime.clone(), |_| async {
            panic!("the service must not receive this request");
            #[allow(unreachable_code, reason = "it gives the future its type")]
            Response::new(Body::empty())
        });
    tokio::spawn(connection_of_server);
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime);
    connection.spawn();
    let headers = [
        (":method", "GET"),
        (":path", "/"),
        (":version", "HTTP/1.1"),
        (":scheme", "http"),
    ];
    let mut stream = session
        .open(
            headers.into_iter().collect(),
            client::OpenOptions::default(),
        )
        .await
        .expect("a stream");
    let reply = stream.reply().await.expect("a reply");
    assert_eq!(reply.get(":status").expect("a status"), b"400 Bad Request");
    assert!(stream.receive().await.is_none());
}

#[tokio::test]
async fn a_refused_stream_may_be_tried_again() {
    let (near, far) = pipe();
    let runtime = runtime();
    let (mut accept, server_connection) =
        server::Builder::new(Version::V31).handshake(far, runtime.clone());
    server_connection.spawn();
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime);
    connection.spawn();
    let request = session.request(post("/", Body::full("x")), Priority::HIGHEST);
    let incoming = accept.next().await.expect("a stream");
    incoming.reject(RstStatus::REFUSED_STREAM);
    let error = request.await.expect_err("refused");
    assert!(error.is_retry_safe(), "{error}");
}

#[tokio::test]
async fn a_future_that_is_polled_late_has_its_response_waiting() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |_| async { Response::new(Body::full("ok")) });
    let mut request = session.request(get("/"), Priority::HIGHEST);
    while session.stats().frames_received.total() < 3 {
        tokio::task::yield_now().await;
    }
    let response = poll_fn(|cx| match std::pin::Pin::new(&mut request).poll(cx) {
        Poll::Ready(response) => Poll::Ready(response),
        Poll::Pending => panic!("SYN_REPLY has arrived"),
    });
    assert_eq!(bytes_of(response.await.expect("a response")).await, "ok");
    assert!(!matches!(session.error(), Some(Error::Io(_))));
}
