//! Requests and responses over a connection in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use spdy::{Body, Priority, Version, client, server};

use crate::support::{bytes_of, connect_to_service, connect_to_service_with, get, pattern, post};

#[tokio::test]
async fn a_hundred_requests_at_once_all_get_responses() {
    for version in Version::ALL {
        let (session, server_task) =
            connect_to_service(version, |request: Request<Body>| async move {
                Response::new(Body::from(request.uri().path().to_owned().into_bytes()))
            });
        let requests = (0..100).map(|number| {
            let session = session.clone();
            tokio::spawn(async move {
                let path = format!("/{number}");
                let response = session
                    .request(get(&path), Priority::new(number % 8))
                    .await
                    .expect("a response");
                assert_eq!(response.status(), StatusCode::OK);
                assert_eq!(bytes_of(response).await, path.as_bytes());
            })
        });
        for request in requests.collect::<Vec<_>>() {
            request.await.expect("answered");
        }
        assert_eq!(session.active_streams(), 0, "{version}");
        assert_eq!(session.stats().streams_opened, 100);
        drop(session);
        server_task
            .await
            .expect("no panic")
            .expect("an orderly end");
    }
}

#[tokio::test]
async fn twenty_megabytes_are_complete_both_ways() {
    const LENGTH: usize = 20 * 1024 * 1024;
    for version in Version::ALL {
        let (session, _server_task) =
            connect_to_service(version, |request: Request<Body>| async move {
                Response::new(request.into_body())
            });
        let payload = pattern(LENGTH);
        let response = session
            .request(
                post("/echo", Body::full(payload.clone())),
                Priority::HIGHEST,
            )
            .await;
        let back = bytes_of(response.expect("a response")).await;
        assert!(
            back == payload,
            "{version}: {} of {LENGTH} bytes came back, or others",
            back.len()
        );
    }
}

#[tokio::test]
async fn the_service_sees_the_request_as_sent() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            assert_eq!(request.method(), Method::POST);
            assert_eq!(request.uri(), "http://example.org/a?b=c");
            assert_eq!(request.headers()["content-length"], "5");
            assert_eq!(request.headers()["x-two"], "one");
            assert!(!request.headers().contains_key("connection"));
            assert_eq!(
                request
                    .extensions()
                    .get::<server::Pusher>()
                    .map(server::Pusher::priority),
                Some(Priority::new(3))
            );
            assert_eq!(
                request
                    .into_body()
                    .collect()
                    .await
                    .expect("a body")
                    .to_bytes(),
                "hello"
            );
            let response = Response::builder()
                .status(201)
                .header("set-cookie", "a=1")
                .header("set-cookie", "b=2");
            response.body(Body::full("done")).expect("valid")
        });
    let mut request = post("/a?b=c", Body::full("hello"));
    request
        .headers_mut()
        .insert("x-two", "one".parse().expect("valid"));
    request
        .headers_mut()
        .insert("connection", "x-gone".parse().expect("valid"));
    request
        .headers_mut()
        .insert("x-gone", "1".parse().expect("valid"));
    let response = session
        .request(request, Priority::new(3))
        .await
        .expect("a response");
    assert_eq!(response.status(), StatusCode::CREATED);
    assert_eq!(response.headers()["content-length"], "4");
    assert_eq!(
        response
            .headers()
            .get_all("set-cookie")
            .iter()
            .collect::<Vec<_>>(),
        ["a=1", "b=2"]
    );
    assert_eq!(bytes_of(response).await, "done");
}

#[tokio::test]
async fn a_head_and_a_not_modified_have_no_body() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            let status = if request.method() == Method::HEAD {
                200
            } else {
                304
            };
            let response = Response::builder()
                .status(status)
                .header("content-length", "1000");
            response.body(Body::full(pattern(1000))).expect("valid")
        });
    let head = Request::head("http://example.org/")
        .body(Body::empty())
        .expect("valid");
    for request in [head, get("/")] {
        let response = session
            .request(request, Priority::HIGHEST)
            .await
            .expect("a response");
        assert_eq!(response.headers()["content-length"], "1000");
        assert_eq!(bytes_of(response).await, "");
    }
}

/// Notes which frames carry FIN.
#[derive(Default)]
struct Fins(std::sync::Mutex<Vec<&'static str>>);

impl spdy::Observe for Fins {
    fn seen(&self, observed: &spdy::ObservedFrame<'_>) {
        let name = match observed.frame {
            spdy::Frame::SynStream(frame) if frame.fin => "SYN_STREAM",
            spdy::Frame::SynReply(frame) if frame.fin => "SYN_REPLY",
            spdy::Frame::Headers(frame) if frame.fin => "HEADERS",
            spdy::Frame::Data(frame) if frame.fin && frame.payload.is_empty() => "empty DATA",
            spdy::Frame::Data(frame) if frame.fin => "DATA",
            _ => return,
        };
        self.0.lock().expect("no panic").push(name);
    }
}

#[tokio::test]
async fn every_message_ends_with_the_frame_that_all_peers_understand() {
    let observer = Arc::new(Fins::default());
    let client = client::Builder::new(Version::V31).observer(observer.clone());
    let (session, _server_task) = connect_to_service_with(
        client,
        server::Builder::new(Version::V31),
        |request: Request<Body>| async { Response::new(request.into_body()) },
    );
    let fins = || std::mem::take(&mut *observer.0.lock().expect("no panic"));
    for (request, expected) in [
        (get("/"), ["SYN_STREAM", "SYN_REPLY"]),
        (post("/", Body::empty()), ["empty DATA", "SYN_REPLY"]),
        (post("/", Body::full("data")), ["DATA", "DATA"]),
    ] {
        let response = session
            .request(request, Priority::HIGHEST)
            .await
            .expect("a response");
        bytes_of(response).await;
        assert_eq!(fins(), expected);
    }
}

#[tokio::test]
async fn a_streamed_body_arrives_piece_by_piece() {
    let (session, _server_task) = connect_to_service(Version::V31, |_| async {
        let pieces =
            (0..1000).map(|number| Ok::<_, std::convert::Infallible>(format!("{number},").into()));
        Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
    });
    let response = session
        .request(get("/"), Priority::HIGHEST)
        .await
        .expect("a response");
    assert!(!response.headers().contains_key("content-length"));
    let expected: String = (0..1000).map(|number| format!("{number},")).collect();
    assert_eq!(bytes_of(response).await, expected);
}

#[tokio::test]
async fn a_body_is_received_in_pieces_that_are_not_empty_without_its_trailers() {
    let pieces = ["one", "", "two"].map(|piece| Ok(Frame::data(Bytes::from(piece))));
    let trailers = Ok::<_, std::convert::Infallible>(Frame::trailers(HeaderMap::new()));
    let frames = futures_util::stream::iter(pieces.into_iter().chain([trailers]));
    let mut body = Body::wrap(http_body_util::StreamBody::new(frames));
    for expected in ["one", "two"] {
        let piece = body.receive().await.expect("there is a piece");
        assert_eq!(piece.expect("the body does not fail"), expected);
    }
    assert!(body.receive().await.is_none());
}

#[test]
fn builders_print_their_options() {
    struct Observer;
    impl spdy::Observe for Observer {
        fn seen(&self, _: &spdy::ObservedFrame<'_>) {}
    }
    let client = client::Builder::default().observer(Arc::new(Observer));
    let server = server::Builder::default().max_concurrent_streams(7);
    let (client, server) = (format!("{client:?}"), format!("{server:?}"));
    assert!(client.contains("observer: Some(Observe)"), "{client}");
    assert!(server.contains("max_concurrent_streams: 7"), "{server}");
}

#[tokio::test]
async fn text_and_bytes_become_bodies_in_memory() {
    let bodies = [
        Body::from("text"),
        Body::from("text".to_owned()),
        Body::from(&b"text"[..]),
        Body::from(b"text".to_vec()),
        Body::from(Bytes::from_static(b"text")),
    ];
    for body in bodies {
        assert_eq!(body.size_hint().exact(), Some(4));
        assert_eq!(body.collect_up_to(4).await.expect("four bytes"), "text");
    }
}

#[tokio::test]
async fn a_body_that_fails_resets_its_stream_and_no_other() {
    let (fail, failure) = tokio::sync::oneshot::channel::<()>();
    let mut failure = Some(failure);
    let (session, _server_task) =
        connect_to_service(Version::V31, move |request: Request<Body>| {
            let failure = if request.uri().path() == "/bad" {
                failure.take()
            } else {
                None
            };
            async move {
                let Some(failure) = failure else {
                    return Response::new(Body::full("good"));
                };
                let first_piece =
                    futures_util::stream::once(async { Ok(Bytes::from_static(b"some")) });
                let then = futures_util::stream::once(async move {
                    failure.await.ok();
                    Err("the disk is gone")
                });
                Response::new(Body::from_stream(first_piece.chain(then)))
            }
        });
    let response = session
        .request(get("/bad"), Priority::HIGHEST)
        .await
        .expect("a head");
    let mut body = response.into_body();
    assert_eq!(
        body.frame()
            .await
            .expect("a piece")
            .expect("no error")
            .into_data()
            .expect("data"),
        "some"
    );
    fail.send(()).expect("the body waits");
    let error = body.frame().await.expect("an error").expect_err("no end");
    let error = error.downcast::<spdy::Error>().expect("our error");
    assert_eq!(error.reset_status(), Some(spdy::RstStatus::INTERNAL_ERROR));
    assert!(!error.is_retry_safe() && error.is_retry_safe_if_idempotent());
    let response = session
        .request(get("/good"), Priority::HIGHEST)
        .await
        .expect("a response");
    assert_eq!(bytes_of(response).await, "good");
}

#[tokio::test]
async fn a_service_that_panics_resets_its_stream_and_no_other() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            assert_ne!(
                request.uri().path(),
                "/bad",
                "the failure that the test triggers"
            );
            Response::new(Body::full("good"))
        });
    let error = session
        .request(get("/bad"), Priority::HIGHEST)
        .await
        .expect_err("no response");
    assert_eq!(error.reset_status(), Some(spdy::RstStatus::INTERNAL_ERROR));
    let response = session
        .request(get("/good"), Priority::HIGHEST)
        .await
        .expect("a response");
    assert_eq!(bytes_of(response).await, "good");
}

#[tokio::test]
async fn trailers_are_sent_if_enabled() {
    for on in [true, false] {
        let service = |_| async {
            let frames = [
                Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(b"body"))),
                Ok(Frame::trailers(
                    std::iter::once(("x-sum".parse().expect("valid"), "7".parse().expect("valid")))
                        .collect(),
                )),
            ];
            Response::new(Body::wrap(http_body_util::StreamBody::new(
                futures_util::stream::iter(frames),
            )))
        };
        let server = server::Builder::new(Version::V31).send_trailers(on);
        let (session, _server_task) =
            connect_to_service_with(client::Builder::new(Version::V31), server, service);
        let response = session
            .request(get("/"), Priority::HIGHEST)
            .await
            .expect("a response");
        let body = response.into_body().collect().await.expect("a body");
        let sum = body
            .trailers()
            .and_then(|trailers| trailers.get("x-sum"))
            .cloned();
        assert_eq!(sum.is_some(), on);
        assert_eq!(body.to_bytes(), "body");
    }
}

/// A request that waits for a slot has no number yet, and its trailers were handed to stream 0.
#[tokio::test]
async fn trailers_of_a_request_that_waits_are_sent_when_it_is_open() {
    let service = |request: Request<Body>| async move {
        let body = request.into_body().collect().await.expect("a body");
        let sum = body.trailers().map(|trailers| trailers["x-sum"].clone());
        Response::new(Body::full(format!("{sum:?}")))
    };
    let client = client::Builder::new(Version::V31)
        .send_trailers(true)
        .assumed_peer_streams(0);
    let (session, _server_task) =
        connect_to_service_with(client, server::Builder::new(Version::V31), service);
    let trailers: HeaderMap =
        std::iter::once(("x-sum".parse().expect("valid"), "7".parse().expect("valid"))).collect();
    let frames = [Ok::<_, std::convert::Infallible>(Frame::<Bytes>::trailers(
        trailers,
    ))];
    let body = http_body_util::StreamBody::new(futures_util::stream::iter(frames));
    let exchange = session.request(post("/", Body::wrap(body)), Priority::HIGHEST);
    let response = exchange.await.expect("a response");
    assert_eq!(bytes_of(response).await, "Some(\"7\")");
}

#[tokio::test]
async fn a_request_without_a_host_is_refused_before_it_is_sent() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |_| async { Response::new(Body::empty()) });
    let request = Request::get("/path").body(Body::empty()).expect("valid");
    let error = session
        .request(request, Priority::HIGHEST)
        .await
        .expect_err("no host");
    assert!(matches!(error, spdy::Error::Request(_)), "{error}");
    assert_eq!(session.stats().streams_opened, 0);
}
