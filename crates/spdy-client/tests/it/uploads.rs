//! The duration of an upload is not limited while it makes progress. All in virtual time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, Runtime, SharedRuntime};
use spdy_client::client::{Client, Config};
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};

use crate::support::World;

/// Tokio's time, which the tests stop: it jumps to the next timer when nothing else is to be done.
#[derive(Clone, Copy)]
struct PausedTime(tokio::time::Instant);

impl Runtime for PausedTime {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep_until(
            self.0 + (deadline - Instant::ZERO),
        ))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}

/// `pieces` of a body, each after `pause`.
fn paced_body(pieces: usize, pause: Duration) -> Body {
    let next_piece = move |sent_count| async move {
        if sent_count == pieces {
            return None;
        }
        tokio::time::sleep(pause).await;
        let piece = Ok::<_, std::io::Error>(Bytes::from(vec![7; 1000]));
        Some((piece, sent_count + 1))
    };
    Body::from_stream(futures_util::stream::unfold(0, next_piece))
}

/// Posts `body` to `handler` over `protocol`: what it answers, or why it does not, and after how long.
async fn post(
    protocol: Protocol,
    body: Body,
    handler: impl Handler + Clone,
) -> (Result<String, String>, Duration) {
    let runtime = SharedRuntime::new(PausedTime(tokio::time::Instant::now()));
    let world = World::default();
    let at_door = runtime.clone();
    world
        .name("a.test", &["10.0.0.1"])
        .accept_at("10.0.0.1:80", move |io| {
            let (runtime, handler) = (at_door.clone(), Arc::new(handler.clone()));
            tokio::spawn(async move {
                let mut options = ServerOptions::default();
                options.timeouts.min_rate = 0;
                let stop = Latch::new();
                let protocols = [protocol];
                let connection =
                    serve_connection(io, handler, &protocols, None, &options, &runtime, &stop);
                let _ = connection.await;
            });
        });
    let mut config = Config::default();
    config.protocols = vec![protocol];
    config.plain_protocol = protocol;
    config.retries = 0;
    let client = Client::new(runtime.clone(), Arc::new(world), config);
    let request = Request::post("http://a.test/").body(body);
    let exchange = client.send(request.expect("a valid request"), Priority::HIGHEST);
    let result = match exchange.await {
        Ok(response) => {
            let body = response.into_body().collect().await.expect("a whole body");
            Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    (result, runtime.now() - Instant::ZERO)
}

async fn counts(request: Request<Body>) -> Response<Body> {
    let body = request.into_body().collect().await;
    let bytes = body.map(|body| body.to_bytes().len()).unwrap_or_default();
    Response::new(Body::from(Bytes::from(bytes.to_string())))
}

async fn reads_slowly(request: Request<Body>) -> Response<Body> {
    let (mut body, mut bytes, mut rested) = (request.into_body(), 0, 0);
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
        // Less than a window at a time: a faster reader makes the window grow, and the client then sends everything long before.
        while rested < bytes / 40_000 {
            rested += 1;
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
    }
    Response::new(Body::from(Bytes::from(bytes.to_string())))
}

async fn reads_nothing(request: Request<Body>) -> Response<Body> {
    let _request = request;
    std::future::pending().await
}

async fn reads_and_never_responds(request: Request<Body>) -> Response<Body> {
    let _ = request.into_body().collect().await;
    std::future::pending().await
}

/// `head_timeout` counted from the request's beginning: an upload of more than a minute failed, however well it went.
#[tokio::test(start_paused = true)]
async fn an_upload_with_progress_may_exceed_the_head_timeout() {
    for protocol in Protocol::ALL {
        let (result, took) = post(protocol, paced_body(4, Duration::from_secs(50)), counts).await;
        assert_eq!(result, Ok("4000".to_owned()), "{protocol}");
        assert_eq!(took.as_secs(), 200, "{protocol}");
        if protocol == Protocol::Spdy(Version::V2) {
            continue; // has no windows: a server takes all of it at once, and rests over it later
        }
        let in_memory = Body::full(vec![7; 1_000_000]);
        let (result, took) = post(protocol, in_memory, reads_slowly).await;
        assert_eq!(result, Ok("1000000".to_owned()), "{protocol}");
        assert_eq!(took.as_secs(), 250, "{protocol}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_body_producer_fails_as_no_body() {
    for protocol in Protocol::ALL {
        let (result, took) = post(protocol, paced_body(3, Duration::from_secs(61)), counts).await;
        let expected = "no more data from the request body for http://a.test:80 within 60s";
        assert_eq!(result, Err(expected.to_owned()), "{protocol}");
        assert_eq!(took.as_secs(), 60, "{protocol}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_upload_fails_after_the_write_timeout() {
    for protocol in Protocol::ALL {
        let long = Body::full(vec![7; 10_000_000]);
        let (result, took) = post(protocol, long, reads_nothing).await;
        let error = result.expect_err("no response");
        let expected = match protocol {
            Protocol::Spdy(Version::V2) => "the peer accepted no bytes for 60s",
            Protocol::Spdy(_) => "the peer granted no window for its DATA for 60s",
            Protocol::Http1 | Protocol::Http2 | Protocol::Http3 => {
                "the peer accepted nothing for 60s"
            }
        };
        assert!(error.ends_with(expected), "{protocol}: {error}");
        assert_eq!(took.as_secs(), 60, "{protocol}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_head_timeout_starts_at_the_last_piece_of_the_upload() {
    for protocol in Protocol::ALL {
        let body = paced_body(3, Duration::from_secs(50));
        let (result, took) = post(protocol, body, reads_and_never_responds).await;
        let expected = "no response from http://a.test:80 within 60s";
        assert_eq!(result, Err(expected.to_owned()), "{protocol}");
        assert_eq!(took.as_secs(), 210, "{protocol}");
    }
}
