//! Calls of gRPC: streams in both directions, the status in trailers, and long silences. In virtual time.

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
            let sent = messages.send(Ok(Frame::data(text.into()))).await;
            sent.expect("the body is read");
            assert_eq!(message(&between, &mut echo).await, text, "{protocol}");
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
        let sent = messages.send(Ok(Frame::data("m".into()))).await;
        sent.expect("the body is read");
    }
    let (end, took) = between.wait(silent.frame()).await;
    assert!(end.expect("a frame").is_err());
    let expected = Duration::from_secs(98)..Duration::from_secs(103);
    assert!(expected.contains(&took), "{took:?}");
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
