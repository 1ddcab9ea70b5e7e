//! One exchange after another, and many at once, over every protocol and both transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use http::{Request, Response};
use spdy::body::Body;
use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::tap::{Direction, SpdySeen, Tap, TapEvent};

use crate::support::{
    self, ALL, MULTIPLEXED, connection, connection_with, echo, get, pattern, post, read,
    secure_connection,
};

#[tokio::test]
async fn every_protocol_delivers_the_same_bytes_plain_and_over_tls() {
    for protocol in ALL {
        for secure in [false, true] {
            let connection = match secure {
                false => connection(protocol, echo).await,
                true => secure_connection(protocol, echo).await,
            };
            for len in [0, 1, 128, 10_000, 1_000_000] {
                assert!(connection.ready().await, "{protocol} {secure}");
                let response = connection
                    .send(get(&format!("/{len}")), Priority::new(2))
                    .await;
                let response = response.unwrap_or_else(|error| panic!("{protocol} {len}: {error}"));
                let header_text =
                    |name: &str| response.headers()[name].to_str().unwrap().to_owned();
                assert_eq!(response.status(), 200, "{protocol}");
                assert_eq!(header_text("x-protocol"), protocol.alpn());
                assert_eq!(header_text("x-secure"), secure.to_string());
                let body = read(response)
                    .await
                    .unwrap_or_else(|error| panic!("{protocol} {len}: {error}"));
                assert!(
                    body == pattern(len),
                    "{protocol} {secure} {len}: other bytes"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_upload_is_echoed_completely() {
    for protocol in ALL {
        let connection = connection(protocol, echo).await;
        for len in [1, 65_536, 300_000] {
            assert!(connection.ready().await);
            let response = connection
                .send(post("/", pattern(len)), Priority::HIGHEST)
                .await;
            let response = response.unwrap_or_else(|error| panic!("{protocol} {len}: {error}"));
            let body = read(response)
                .await
                .unwrap_or_else(|error| panic!("{protocol} {len}: {error}"));
            assert!(body == pattern(len), "{protocol} {len}");
        }
    }
}

#[tokio::test]
async fn a_response_to_head_has_a_length_and_no_body() {
    for protocol in ALL {
        let connection = connection(protocol, echo).await;
        for _ in 0..2 {
            assert!(connection.ready().await, "{protocol}");
            let request = Request::head("http://localhost/5")
                .body(Body::empty())
                .unwrap();
            let response = connection.send(request, Priority::HIGHEST).await.unwrap();
            assert_eq!(response.headers()["content-length"], "5", "{protocol}");
            assert_eq!(read(response).await.unwrap().len(), 0, "{protocol}");
        }
    }
}

#[tokio::test]
async fn a_hundred_exchanges_share_one_connection() {
    for protocol in MULTIPLEXED {
        let connection = connection(protocol, echo).await;
        let all = (0..100).map(|at| {
            let connection = connection.clone();
            async move {
                let len = at * 1_000;
                let request = get(&format!("/{len}"));
                let response = connection.send(request, Priority::new(at as u8 % 8)).await;
                let response = response.unwrap_or_else(|error| panic!("{protocol} {at}: {error}"));
                let body = read(response)
                    .await
                    .unwrap_or_else(|error| panic!("{protocol} {at}: {error}"));
                assert!(body == pattern(len), "{protocol} {at}");
            }
        });
        join_all(all).await;
    }
}

#[tokio::test]
async fn the_priority_of_a_request_reaches_the_server() {
    for (protocol, level) in [
        (MULTIPLEXED[0], 5),
        (MULTIPLEXED[1], 7),
        (MULTIPLEXED[2], 2),
        (Protocol::Http2, 6),
    ] {
        let connection = connection(protocol, echo).await;
        let response = connection
            .send(get("/1"), Priority::new(level))
            .await
            .unwrap();
        assert_eq!(
            response.headers()["x-priority"],
            level.to_string().as_str(),
            "{protocol}"
        );
    }
}

#[tokio::test]
async fn handlers_get_the_complete_url() {
    for protocol in ALL {
        let connection = connection(protocol, echo).await;
        let request = Request::get("http://localhost:8080/1?q=1%20")
            .body(Body::empty())
            .unwrap();
        let response = connection.send(request, Priority::HIGHEST).await.unwrap();
        assert_eq!(
            response.headers()["x-uri"],
            "http://localhost:8080/1?q=1%20",
            "{protocol}"
        );
    }
}

#[tokio::test]
async fn a_body_that_fails_on_the_server_is_an_error_for_the_client() {
    async fn cut(_: Request<Body>) -> Response<Body> {
        let pieces = [Ok(pattern(1_000)), Err("the disk broke")];
        Response::new(Body::from_stream(futures_util::stream::iter(pieces)))
    }
    for protocol in ALL {
        let connection = connection(protocol, cut).await;
        let response = connection.send(get("/"), Priority::HIGHEST).await;
        let outcome = match response {
            Ok(response) => read(response)
                .await
                .map(|body| body.len())
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()), // the head can be lost with it
        };
        assert!(outcome.is_err(), "{protocol}: {outcome:?}");
    }
}

#[tokio::test]
async fn an_unread_body_does_not_block_other_exchanges() {
    for protocol in MULTIPLEXED {
        let mut options = ClientOptions::default();
        options.stream_window_bytes = 64 * 1024;
        options.session_window_bytes = Some(1024 * 1024);
        let connection = connection_with(protocol, echo, ServerOptions::default(), &options).await;
        // SPDY/2 has no windows: there the bytes simply pile up, within the pipe and the session.
        let unread = connection
            .send(get("/300000"), Priority::HIGHEST)
            .await
            .unwrap();
        let other_response = connection
            .send(get("/200000"), Priority::LOWEST)
            .await
            .unwrap();
        assert_eq!(
            read(other_response).await.unwrap().len(),
            200_000,
            "{protocol}"
        );
        assert_eq!(read(unread).await.unwrap().len(), 300_000, "{protocol}");
    }
}

/// Bytes of DATA that came for other streams before the end of stream 3.
#[derive(Default)]
struct BeforeTheEndOf3 {
    other_bytes: AtomicUsize,
    has_ended: AtomicBool,
}

impl Tap for BeforeTheEndOf3 {
    fn seen(&self, _: u64, _: Instant, direction: Direction, event: &TapEvent<'_>) {
        let (stream, len, end) = match event {
            TapEvent::Http2Frame(frame) if frame.kind == 0 => {
                (frame.stream_id, frame.len_bytes, frame.flags & 1 == 1)
            }
            TapEvent::Spdy(SpdySeen {
                frame: Frame::Data(data),
                ..
            }) => (data.stream_id.value(), data.payload.len(), data.fin),
            _ => return,
        };
        assert_eq!(direction, Direction::Received);
        if stream == 3 {
            self.has_ended.fetch_or(end, Ordering::Relaxed);
        } else if !self.has_ended.load(Ordering::Relaxed) {
            self.other_bytes.fetch_add(len, Ordering::Relaxed);
        }
    }
}

#[tokio::test]
async fn urgent_responses_overtake_earlier_requests() {
    const EACH: usize = 2_000_000;
    for protocol in MULTIPLEXED {
        // Both responses are ready at the same time, and no window blocks either.
        let go = Latch::new();
        let both_wait = go.clone();
        let handler = move |_| {
            let go = both_wait.clone();
            async move {
                go.wait().await;
                Response::new(Body::full(pattern(EACH)))
            }
        };
        let tap = Arc::new(BeforeTheEndOf3::default());
        let mut options = ClientOptions::default();
        options.stream_window_bytes = 4 * 1024 * 1024;
        options.tap = Some(tap.clone());
        let server = ServerOptions::default();
        let connection = connection_with(protocol, handler, server, &options).await;
        let mut slow = connection.send(get("/slow"), Priority::LOWEST);
        let mut urgent = connection.send(get("/urgent"), Priority::HIGHEST);
        for _ in 0..100 {
            assert!((&mut slow).now_or_never().is_none() && (&mut urgent).now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        go.set();
        let (slow, urgent) = join(slow, urgent).await;
        let (slow, urgent) = join(read(slow.unwrap()), read(urgent.unwrap())).await;
        assert_eq!(
            (slow.unwrap().len(), urgent.unwrap().len()),
            (EACH, EACH),
            "{protocol}"
        );
        // In fair shares it would be two million; a small share keeps the slow from starving.
        let other_bytes = tap.other_bytes.load(Ordering::Relaxed);
        assert!(
            other_bytes < EACH / 4,
            "{protocol}: {other_bytes} bytes came before the urgent ones"
        );
        assert!(
            tap.has_ended.load(Ordering::Relaxed),
            "{protocol}: the tap saw no end"
        );
    }
}

#[tokio::test]
async fn a_stopped_server_completes_its_open_exchange_and_closes() {
    for protocol in ALL {
        let stop = Latch::new();
        let io = support::serve(
            &[protocol],
            echo,
            None,
            ServerOptions::default(),
            stop.clone(),
        );
        let options = ClientOptions::default();
        let connection = Connection::start(io, protocol, 0, &options, &support::runtime())
            .await
            .unwrap();
        let response = connection
            .send(get("/1000000"), Priority::HIGHEST)
            .await
            .unwrap();
        stop.set();
        assert_eq!(read(response).await.unwrap().len(), 1_000_000, "{protocol}");
        connection.closed().await;
        assert!(connection.is_closing(), "{protocol}");
    }
}

#[tokio::test]
async fn a_closing_client_completes_its_exchange() {
    for protocol in ALL {
        let connection = connection(protocol, echo).await;
        let response = connection
            .send(get("/100000"), Priority::HIGHEST)
            .await
            .unwrap();
        connection.close();
        assert_eq!(read(response).await.unwrap().len(), 100_000, "{protocol}");
        connection.closed().await;
    }
}

#[tokio::test]
async fn a_wrong_content_length_is_an_error_after_the_bytes() {
    // Over SPDY it passed for whole: only FIN was looked at.
    use http_body_util::BodyExt;
    async fn lies(request: Request<Body>) -> Response<Body> {
        let declared = request.uri().path().trim_start_matches('/').to_owned();
        let body = futures_util::stream::iter([Ok::<_, std::io::Error>(pattern(10))]);
        Response::builder()
            .header("content-length", declared)
            .body(Body::from_stream(body))
            .unwrap()
    }
    for protocol in MULTIPLEXED {
        if protocol == Protocol::Http2 {
            continue; // h2 looks at what is sent as well
        }
        let connection = connection(protocol, lies).await;
        for (declared, is_complete) in [("/10", true), ("/11", false), ("/9", false)] {
            let response = connection
                .send(get(declared), Priority::HIGHEST)
                .await
                .unwrap();
            let (mut body, mut received_len, mut error) = (response.into_body(), 0, None);
            while !http_body::Body::is_end_stream(&body) {
                match body.frame().await {
                    Some(Ok(frame)) => {
                        received_len += frame.into_data().map_or(0, |data| data.len());
                    }
                    Some(Err(failure)) => error = Some(failure.to_string()),
                    None => break,
                }
            }
            let expected = format!(
                "content-length is {}, but 10 bytes were received",
                &declared[1..]
            );
            assert_eq!(received_len, 10, "{protocol} {declared}");
            assert_eq!(
                error,
                (!is_complete).then_some(expected),
                "{protocol} {declared}"
            );
        }
    }
}

/// A client with costs for each open stream may allow fewer than the server does.
#[tokio::test]
async fn http2_client_keeps_its_own_max_streams() {
    for (configured, limit) in [(None, 100), (Some(2), 2), (Some(1000), 100)] {
        let handler = |_: Request<Body>| async { Response::new(Body::empty()) };
        let server = ServerOptions::default();
        let mut client = ClientOptions::default();
        client.max_streams = configured;
        let connection = connection_with(Protocol::Http2, handler, server, &client).await;
        let request = Request::get("http://site.test/").body(Body::empty());
        let response = connection.send(request.expect("a request"), Priority::HIGHEST);
        response.await.expect("a response");
        assert_eq!(connection.limit(), limit, "{configured:?}");
    }
}
