//! Calls of gRPC: streams in both directions, the status in trailers, and long silences. In virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use spdy::body::{Body, BoxError};
use spdy_frame::priority::Priority;
use spdy_net::body_read_timeout::BodyReadTimeout;
use spdy_net::connection::Connection;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use tokio::sync::mpsc;

use crate::support::stage::{HOME, SPDY};
use crate::support::wire::Between;

const GRPC: &str = "---[[site.paths]]\npath = '/chat.Chat/'\ngrpc = true\n";

type Frames = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

/// A body, and what it will consist of.
fn stream() -> (Frames, Body) {
    let (frames, mut received) = mpsc::channel(4);
    let frames_read = futures_util::stream::poll_fn(move |cx| received.poll_recv(cx));
    (frames, Body::wrap(StreamBody::new(frames_read)))
}

/// A message of gRPC with `text`.
fn framed(text: &str) -> Bytes {
    let len = u32::try_from(text.len()).expect("a short text");
    [&[0][..], &len.to_be_bytes(), text.as_bytes()]
        .concat()
        .into()
}

fn trailers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let fields = fields.iter();
    fields
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

fn call(method: &str, body: Body) -> Request<Body> {
    Request::post(format!("{HOME}/chat.Chat/{method}"))
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers")
        .header("grpc-timeout", "1H")
        .body(body)
        .expect("a request")
}

/// A service that sends every message back, and the trailers of the request as trailers.
async fn service(request: Request<Body>) -> Response<Body> {
    let (head, mut body) = request.into_parts();
    if let Some(read_timeout) = head.extensions.get::<BodyReadTimeout>() {
        read_timeout.lift();
    }
    let response = Response::builder().header("content-type", "application/grpc+proto");
    let has_te = head.headers.get("te").is_some_and(|te| te == "trailers");
    let status = match head.uri.path() {
        "/chat.Chat/Echo" if has_te && head.headers["grpc-timeout"] == "1H" => None,
        "/chat.Chat/Echo" => Some("13"),
        _ => Some("12"),
    };
    if let Some(status) = status {
        let response = response.header("grpc-status", status);
        return response.body(Body::empty()).expect("a response");
    }
    let (frames, echo) = stream();
    if head.headers.contains_key("x-silent") {
        tokio::spawn(async move {
            while let Some(Ok(_)) = body.frame().await {}
            frames.closed().await;
        });
        return response.body(echo).expect("a response");
    }
    tokio::spawn(async move {
        while let Some(frame) = body.frame().await {
            let frame = frame?;
            let frame = match frame.into_trailers() {
                Ok(mut trailers) => {
                    trailers.insert("grpc-status", HeaderValue::from_static("0"));
                    trailers.insert("set-cookie", HeaderValue::from_static("a=b"));
                    Frame::trailers(trailers)
                }
                Err(data) => data,
            };
            frames.send(Ok(frame)).await?;
        }
        Ok::<(), BoxError>(())
    });
    response.body(echo).expect("a response")
}

fn between(more: &str) -> Between {
    let mut between = Between::start(&format!("{more}{GRPC}"));
    between.serve_origin_by(Protocol::Http2, service);
    between
}

async fn send(between: &Between, client: &Connection, request: Request<Body>) -> Response<Body> {
    let response = between
        .wait(client.send(request, Priority::HIGHEST))
        .await
        .0;
    response.expect("a response")
}

/// The next message of `body`.
async fn message(between: &Between, body: &mut Body) -> Bytes {
    let frame = between.wait(body.frame()).await.0.expect("a frame");
    let frame = frame.expect("the stream continues");
    frame.into_data().expect("a message")
}

#[tokio::test]
async fn a_call_streams_both_ways_and_ends_with_its_trailers() {
    for protocol in [Protocol::Http2, SPDY] {
        let between = between("");
        let client = between.connection(protocol).await;
        let (messages, body) = stream();
        // The response begins before the client has sent a message.
        let response = send(&between, &client, call("Echo", body)).await;
        assert_eq!(response.status(), StatusCode::OK, "{protocol}");
        let headers = response.headers();
        assert_eq!(headers["content-type"], "application/grpc+proto");
        assert!(!headers.contains_key("grpc-status"), "{headers:?}");
        assert_eq!(headers["cache-status"], "spdy; fwd=bypass", "{protocol}");
        let mut echo = response.into_body();
        for text in ["one", "two"] {
            let sent = messages.send(Ok(Frame::data(framed(text)))).await;
            sent.expect("the body is read");
            assert_eq!(
                message(&between, &mut echo).await,
                framed(text),
                "{protocol}"
            );
            // Longer than the other timeouts of clients and origins.
            between.clock.advance(Duration::from_secs(200)).await;
        }
        let last = trailers(&[("x-sum", "6"), ("x-real-ip", "192.0.2.9")]);
        // SPDY has no trailers in requests of this client.
        let expected = match protocol {
            Protocol::Http2 => {
                let sent = messages.send(Ok(Frame::trailers(last))).await;
                sent.expect("the body is read");
                Some(trailers(&[("x-sum", "6"), ("grpc-status", "0")]))
            }
            _ => None,
        };
        drop(messages);
        let rest = between.wait(echo.collect()).await.0;
        let rest = rest.expect("the stream is complete");
        assert_eq!(rest.trailers(), expected.as_ref(), "{protocol}");
        assert!(rest.to_bytes().is_empty());
    }
}

#[tokio::test]
async fn a_response_of_trailers_alone_ends_with_its_head() {
    let between = between("");
    let client = between.connection(Protocol::Http2).await;
    let response = send(&between, &client, call("Unknown", Body::from("m"))).await;
    assert_eq!(response.headers()["grpc-status"], "12");
    assert!(http_body::Body::is_end_stream(response.body()));
}

#[tokio::test]
async fn a_call_ends_after_silence_in_both_directions() {
    let between = between("[upstream]\ngrpc_idle_timeout_s = 100\n");
    let client = between.connection(Protocol::Http2).await;
    let (messages, body) = stream();
    let mut request = call("Echo", body);
    request
        .headers_mut()
        .insert("x-silent", HeaderValue::from_static("1"));
    let response = send(&between, &client, request).await;
    let mut silent = response.into_body();
    for _ in 0..3 {
        between.clock.advance(Duration::from_secs(80)).await;
        let sent = messages.send(Ok(Frame::data(framed("m")))).await;
        sent.expect("the body is read");
    }
    let (end, took) = between.wait(silent.frame()).await;
    assert!(end.expect("a frame").is_err());
    let expected = Duration::from_secs(98)..Duration::from_secs(103);
    assert!(expected.contains(&took), "{took:?}");
}

/// A byte now and then is no message: it does not hold a call.
#[tokio::test]
async fn a_call_without_a_complete_message_ends() {
    for responds in [true, false] {
        let mut between = Between::start(&format!("[upstream]\ngrpc_idle_timeout_s = 100\n{GRPC}"));
        between.serve_origin_by(Protocol::Http2, move |request: Request<Body>| async move {
            match responds {
                true => service(request).await,
                false => std::future::pending().await,
            }
        });
        let client = between.connection(Protocol::Http2).await;
        let (bytes, body) = stream();
        let clock = between.clock.clone();
        let mut request = call("Echo", body);
        let silent = HeaderValue::from_static("1");
        request.headers_mut().insert("x-silent", silent);
        let response = tokio::spawn(client.send(request, Priority::HIGHEST));
        let mut ended_after = None;
        tokio::pin!(response);
        let mut body = None;
        for second in 0..400 {
            if second % 20 == 0 {
                // After the end there is no reader.
                let _ = bytes.try_send(Ok(Frame::data(Bytes::from_static(&[0]))));
            }
            clock.advance(Duration::from_secs(1)).await;
            let is_over = match &mut body {
                None => match futures_util::FutureExt::now_or_never(&mut response) {
                    None => false,
                    Some(response) => {
                        let response = response.expect("no panic").expect("a response");
                        let is_over = response.status() == StatusCode::GATEWAY_TIMEOUT;
                        body = Some(response.into_body());
                        is_over
                    }
                },
                Some(body) => {
                    let frame = futures_util::FutureExt::now_or_never(body.frame());
                    frame.is_some_and(|frame| frame.is_none_or(|frame| frame.is_err()))
                }
            };
            if is_over {
                ended_after = Some(second);
                break;
            }
        }
        // Five bytes are the prefix of a message; they state that it is empty.
        let ended_after = ended_after.expect("the call ends");
        assert!((95..250).contains(&ended_after), "{ended_after} {responds}");
    }
}

#[tokio::test]
async fn a_client_has_a_limit_of_open_calls_and_others_are_not_affected() {
    let between = between("[upstream]\ngrpc_calls_per_client = 2\n");
    let client = between.connection_from(1, Protocol::Http2).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let (messages, body) = stream();
        let response = send(&between, &client, call("Echo", body)).await;
        assert!(!response.headers().contains_key("grpc-status"));
        open.push((messages, response));
    }
    let refused = send(&between, &client, call("Echo", Body::full(framed("m")))).await;
    assert_eq!(refused.status(), StatusCode::OK);
    assert_eq!(refused.headers()["content-type"], "application/grpc");
    // RESOURCE_EXHAUSTED
    assert_eq!(refused.headers()["grpc-status"], "8");
    let other = between.connection_from(2, Protocol::Http2).await;
    let response = send(&between, &other, call("Echo", Body::full(framed("m")))).await;
    assert!(!response.headers().contains_key("grpc-status"));
    let (messages, response) = open.pop().expect("a call");
    drop(messages);
    let end = between.wait(response.into_body().collect()).await.0;
    end.expect("the stream is complete");
    let response = send(&between, &client, call("Echo", Body::full(framed("m")))).await;
    assert!(!response.headers().contains_key("grpc-status"));
}

/// An origin may allow few streams on a connection: others get another one.
#[tokio::test]
async fn calls_that_fill_a_connection_do_not_block_others() {
    let mut between = Between::start(GRPC);
    let mut options = ServerOptions::default();
    options.max_streams = 3;
    between.serve_origin_with(Protocol::Http2, options, service);
    let mut open = Vec::new();
    for from in 1..=8 {
        let client = between.connection_from(from, Protocol::Http2).await;
        let (messages, body) = stream();
        let response = client.send(call("Echo", body), Priority::HIGHEST);
        let (response, took) = between.wait(response).await;
        let response = response.expect("a response");
        assert_eq!(response.status(), StatusCode::OK, "{from}");
        assert!(took < Duration::from_secs(5), "{from} {took:?}");
        open.push((messages, response, client));
    }
}

/// Each is reset at the origin, which may then close the connection.
#[tokio::test]
async fn a_client_that_cancels_calls_is_limited() {
    let between = between("");
    let client = between.connection(Protocol::Http2).await;
    let open = (0..60).map(|_| {
        let (messages, body) = stream();
        let sent = client.send(call("Echo", body), Priority::HIGHEST);
        async move { (sent.await, messages) }
    });
    let open = between.wait(futures_util::future::join_all(open)).await.0;
    for (response, _) in &open {
        let response = response.as_ref().expect("a response");
        assert!(!response.headers().contains_key("grpc-status"));
    }
    drop(open);
    for (seconds, expected) in [(0, true), (10, false)] {
        between.clock.advance(Duration::from_secs(seconds)).await;
        let response = client.send(call("Echo", Body::full(framed("m"))), Priority::HIGHEST);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let response = between.wait(response).await.0.expect("a response");
        let is_refused = response.headers().contains_key("grpc-status");
        assert_eq!(is_refused, expected, "{seconds}");
        let body = response.into_body().collect();
        between.wait(body).await.0.expect("the stream is complete");
    }
}

/// Otherwise each stream that a client opens and resets is opened and reset at the origin.
#[tokio::test]
async fn a_call_begins_at_the_origin_with_its_first_message() {
    let mut between = Between::start(GRPC);
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    between.serve_origin_by(Protocol::Http2, move |request: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        service(request)
    });
    let client = between.connection(Protocol::Http2).await;
    for _ in 0..20 {
        let (_messages, body) = stream();
        let sent = tokio::spawn(client.send(call("Echo", body), Priority::HIGHEST));
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        sent.abort();
        let _ = sent.await;
    }
    between.clock.advance(Duration::from_secs(5)).await;
    assert_eq!(begun.load(Ordering::Relaxed), 0);
    let (messages, body) = stream();
    let sent = messages.send(Ok(Frame::data(framed("m")))).await;
    sent.expect("the body is read");
    let response = send(&between, &client, call("Echo", body)).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(begun.load(Ordering::Relaxed), 1);
}

/// An origin of calls speaks no HTTP/1.1, and other requests do not go to it over HTTP/2.
#[tokio::test]
async fn only_calls_go_over_http2() {
    let mut between = Between::start(GRPC);
    between.serve_origin_by(Protocol::Http1, async |request: Request<Body>| {
        Response::new(Body::from(format!("{:?}", request.version())))
    });
    let client = between.connection(Protocol::Http2).await;
    let request = Request::get(format!("{HOME}/chat.Chat/Echo"));
    let request = request.body(Body::empty()).expect("a request");
    let response = send(&between, &client, request).await;
    let text = between
        .wait(response.into_body().collect_up_to(100))
        .await
        .0;
    assert_eq!(text.expect("a body"), "HTTP/1.1");
    let response = send(&between, &client, call("Echo", Body::from("m"))).await;
    assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
}

/// A client can make calls fail: by silence, or at an origin that speaks no HTTP/2.
#[tokio::test]
async fn calls_that_fail_do_not_stop_other_requests_or_calls() {
    let keys = "[upstream]\nfailures = 1\nrest_s = 1000\ngrpc_idle_timeout_s = 20\n";
    let mut between = Between::start(&format!("{keys}{GRPC}"));
    between.serve_origin_by(Protocol::Http1, async |_: Request<Body>| {
        Response::new(Body::from("page"))
    });
    let client = between.connection(Protocol::Http2).await;
    for _ in 0..3 {
        let response = send(&between, &client, call("Echo", Body::full(framed("m")))).await;
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        let request = Request::get(format!("{HOME}/chat.Chat/Echo"));
        let request = request.body(Body::empty()).expect("a request");
        assert_eq!(
            send(&between, &client, request).await.status(),
            StatusCode::OK
        );
    }
    let mut between = Between::start(&format!("{keys}{GRPC}"));
    between.serve_origin_by(Protocol::Http2, |request: Request<Body>| async move {
        if request.uri().path() == "/chat.Chat/Silent" {
            std::future::pending::<()>().await;
        }
        service(request).await
    });
    let client = between.connection(Protocol::Http2).await;
    for _ in 0..3 {
        let response = send(&between, &client, call("Silent", Body::full(framed("m")))).await;
        assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
        let response = send(&between, &client, call("Echo", Body::full(framed("m")))).await;
        assert_eq!(response.status(), StatusCode::OK);
    }
}

/// Without `grpc`, such a request is one like any other: a slow client does not hold a connection.
#[tokio::test]
async fn a_path_without_grpc_waits_for_the_first_messages() {
    let mut between = Between::start("");
    between.serve_origin(service);
    let client = between.connection(Protocol::Http2).await;
    let (messages, body) = stream();
    let response = client.send(call("Echo", body), Priority::HIGHEST);
    let (response, took) = between.wait(response).await;
    let response = response.expect("a response");
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(took >= Duration::from_secs(60), "{took:?}");
    drop(messages);
}
