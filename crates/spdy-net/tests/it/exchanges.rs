//! One exchange after another, and many at once, over every protocol and both transports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{join, join_all};
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_frame::priority::Priority;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::options::{ServerTimeouts, SpdyClientOptions, SpdyServerOptions};
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::tap::{Direction, SpdySeen, Tap, TapEvent};
use spdy_testkit::clock::Clock;

use crate::support::{
    self, ALL, MULTIPLEXED, connection, echo, get, pattern, post, read, secure_connection,
};

#[tokio::test]
async fn every_protocol_brings_the_same_bytes_plain_and_over_tls() {
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
async fn an_upload_comes_back_whole() {
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
async fn a_head_request_brings_a_length_and_no_body() {
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
async fn handlers_see_the_whole_url() {
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
async fn a_body_that_fails_on_the_server_is_an_error_and_no_end() {
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
        let options = ClientOptions {
            stream_window_bytes: 64 * 1024,
            session_window_bytes: Some(1024 * 1024),
            ..ClientOptions::default()
        };
        let io = support::serve(
            &[protocol],
            echo,
            None,
            ServerOptions::default(),
            Latch::new(),
        );
        let connection = Connection::start(io, protocol, 0, &options, &support::runtime())
            .await
            .unwrap();
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
        // Both answers are there at the same moment, and no window stands in the way of either.
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
        let options = ClientOptions {
            stream_window_bytes: 4 * 1024 * 1024,
            tap: Some(tap.clone()),
            ..ClientOptions::default()
        };
        let io = support::serve(
            &[protocol],
            handler,
            None,
            ServerOptions::default(),
            Latch::new(),
        );
        let connection = Connection::start(io, protocol, 0, &options, &support::runtime())
            .await
            .unwrap();
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
async fn a_server_that_is_stopped_ends_what_is_open_and_takes_nothing_new() {
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
async fn a_client_that_closes_ends_the_connection_in_order() {
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
async fn a_connection_without_requests_is_ended() {
    for protocol in ALL {
        let options = ServerOptions {
            timeouts: ServerTimeouts {
                idle_timeout: Duration::from_secs(5),
                ..ServerTimeouts::default()
            },
            ..ServerOptions::default()
        };
        let time = Clock::default();
        let io = support::serve_in(
            SharedRuntime::new(time.clone()),
            &[protocol],
            echo,
            None,
            options,
            Latch::new(),
        );
        let options = ClientOptions::default();
        let connection = Connection::start(io, protocol, 0, &options, &support::runtime())
            .await
            .unwrap();
        let mut closing = connection.closed();
        for _ in 0..3 {
            assert!(connection.ready().await, "{protocol}");
            time.push(Duration::from_secs(4));
            assert!(closing.as_mut().now_or_never().is_none(), "{protocol}");
            let response = connection.send(get("/1"), Priority::HIGHEST).await.unwrap();
            read(response).await.unwrap();
        }
        // The idle timeout may have started again a little after the last answer.
        while closing.as_mut().now_or_never().is_none() {
            time.push(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_body_of_another_length_than_declared_is_an_error_after_its_bytes() {
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

/// Repeats the client's `accept` as the content type.
async fn accepted(request: Request<Body>) -> Response<Body> {
    let accept = request
        .headers()
        .get("accept")
        .expect("the header is sent")
        .clone();
    let response = Response::builder().header("content-type", accept);
    response.body(Body::empty()).expect("valid")
}

#[tokio::test]
async fn partial_value_matches_need_the_option_of_that_side() {
    // The second begins like the first. An attacker that sees this in the length can guess the rest.
    let tokens = ["qJ7mZ2xW9vK4tR8y-1", "qJ7mZ2xW9vK4tR8y-2"];
    let respond = |request: Request<Body>| async move {
        let token = request
            .headers()
            .get("x-token")
            .expect("the header is sent")
            .clone();
        let response = Response::builder().header("x-token", token);
        response.body(Body::empty()).expect("valid")
    };
    for version in Version::ALL {
        let mut lengths = Vec::new();
        for secrets in [Secrets::none(), Secrets::default()] {
            let protocol = Protocol::Spdy(version);
            let server = ServerOptions {
                spdy: SpdyServerOptions {
                    secrets: secrets.clone(),
                    ..SpdyServerOptions::default()
                },
                ..ServerOptions::default()
            };
            let client = ClientOptions {
                spdy: SpdyClientOptions {
                    secrets,
                    ..SpdyClientOptions::default()
                },
                ..ClientOptions::default()
            };
            let io = support::serve(&[protocol], respond, None, server, Latch::new());
            let connection = Connection::start(io, protocol, 0, &client, &support::runtime())
                .await
                .unwrap();
            let mut last = [0, 0];
            let mut added = [0, 0];
            for token in tokens {
                let mut request = get("/");
                let value = http::HeaderValue::from_static(token);
                request.headers_mut().insert("x-token", value);
                connection.send(request, Priority::HIGHEST).await.unwrap();
                let bytes = connection.header_bytes();
                let now = [bytes.sent, bytes.received];
                added = [now[0] - last[0], now[1] - last[1]];
                last = now;
            }
            lengths.push(added);
        }
        for side in [0, 1] {
            let (partial_values, whole_values_only) = (lengths[0][side], lengths[1][side]);
            assert!(
                partial_values + 10 <= whole_values_only,
                "SPDY/{version}: {partial_values} bytes, and {whole_values_only}"
            );
        }
    }
}

#[tokio::test]
async fn values_beyond_the_compression_window_are_written_again() {
    // More than 2 KiB, and nothing of it twice.
    let token = (0..600).fold(String::new(), |token, number: u32| {
        format!("{token}{:05x}", number.wrapping_mul(2_654_435_761) >> 12)
    });
    for version in Version::ALL {
        let mut totals = Vec::new();
        for bits in [Some(15), None, Some(11)] {
            let protocol = Protocol::Spdy(version);
            let server = ServerOptions {
                spdy: SpdyServerOptions {
                    compression_window_bits: bits,
                    ..SpdyServerOptions::default()
                },
                ..ServerOptions::default()
            };
            let client = ClientOptions {
                spdy: SpdyClientOptions {
                    compression_window_bits: bits,
                    ..SpdyClientOptions::default()
                },
                ..ClientOptions::default()
            };
            let io = support::serve(&[protocol], accepted, None, server, Latch::new());
            let connection = Connection::start(io, protocol, 0, &client, &support::runtime())
                .await
                .unwrap();
            for _ in 0..2 {
                let mut request = get("/");
                let value = http::HeaderValue::from_str(&token).unwrap();
                request.headers_mut().insert("accept", value);
                connection.send(request, Priority::HIGHEST).await.unwrap();
            }
            let bytes = connection.header_bytes();
            totals.push([bytes.sent, bytes.received]);
        }
        for side in [0, 1] {
            let [large_window, default_window, small_window] =
                [0, 1, 2].map(|index: usize| totals[index][side]);
            assert!(
                large_window + 1000 < small_window,
                "SPDY/{version}: {large_window}, {small_window}"
            );
            assert!(
                default_window < large_window + 100,
                "SPDY/{version}: {large_window}, {default_window}"
            );
        }
    }
}

#[tokio::test]
async fn a_missing_request_body_times_out() {
    // Once such a request stayed open for ever, and its connection with it.
    for protocol in ALL {
        let options = ServerOptions {
            timeouts: ServerTimeouts {
                read_timeout: Duration::from_secs(7),
                idle_timeout: Duration::from_secs(3_600),
                ..ServerTimeouts::default()
            },
            ..ServerOptions::default()
        };
        let time = Clock::default();
        let io = support::serve_in(
            SharedRuntime::new(time.clone()),
            &[protocol],
            echo,
            None,
            options,
            Latch::new(),
        );
        let client = ClientOptions::default();
        let connection = Connection::start(io, protocol, 0, &client, &support::runtime())
            .await
            .unwrap();
        let first = futures_util::stream::iter([Ok::<_, spdy::BoxError>(http_body::Frame::data(
            pattern(10),
        ))]);
        let stuck = futures_util::StreamExt::chain(first, futures_util::stream::pending());
        let request = Request::post("http://localhost/")
            .body(Body::wrap(http_body_util::StreamBody::new(stuck)))
            .unwrap();
        let mut response = connection.send(request, Priority::HIGHEST);
        for _ in 0..3 {
            for _ in 0..100 {
                assert!(
                    (&mut response).now_or_never().is_none(),
                    "{protocol}: too early"
                );
                tokio::task::yield_now().await;
            }
            time.push(Duration::from_secs(2));
        }
        let response = loop {
            if let Some(response) = (&mut response).now_or_never() {
                break response.unwrap_or_else(|error| panic!("{protocol}: {error}"));
            }
            time.push(Duration::from_secs(1));
            tokio::task::yield_now().await;
        };
        assert_eq!(response.status(), 400, "{protocol}");
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_times_out() {
    for protocol in ALL {
        let options = ServerOptions {
            timeouts: ServerTimeouts {
                write_timeout: Duration::from_secs(7),
                idle_timeout: Duration::from_secs(3_600),
                ..ServerTimeouts::default()
            },
            ..ServerOptions::default()
        };
        let time = Clock::default();
        let (near, mut server_task) = support::serve_with_end(
            SharedRuntime::new(time.clone()),
            &[protocol],
            echo,
            None,
            options,
            Latch::new(),
        );
        let client = ClientOptions {
            stream_window_bytes: 64 * 1024,
            ..ClientOptions::default()
        };
        let connection = Connection::start(near, protocol, 0, &client, &support::runtime())
            .await
            .unwrap();
        // More than windows and pipes hold, and the client does not read it.
        let unread = connection
            .send(get("/20000000"), Priority::HIGHEST)
            .await
            .unwrap();
        for _ in 0..3 {
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            assert!(
                (&mut server_task).now_or_never().is_none(),
                "{protocol}: too early"
            );
            time.push(Duration::from_secs(2));
        }
        // The exchange is lost; of a multiplexed connection no more than that.
        let reading = async {
            for _ in 0..20 {
                time.push(Duration::from_secs(1));
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            }
            read(unread).await
        };
        assert!(reading.await.is_err(), "{protocol}: the whole body came");
    }
}

#[tokio::test]
async fn header_bytes_on_the_wire_are_those_of_the_protocol() {
    for protocol in ALL {
        let connection = connection(protocol, echo).await;
        let mut last = connection.header_bytes();
        let mut sizes = Vec::new();
        for _ in 0..2 {
            assert!(connection.ready().await);
            let request = Request::get("http://localhost/1000")
                .header("user-agent", "a program with a long name, as they were")
                .body(Body::empty());
            let response = connection
                .send(request.unwrap(), Priority::HIGHEST)
                .await
                .unwrap();
            read(response).await.unwrap();
            let now = connection.header_bytes();
            sizes.push((now.sent - last.sent, now.received - last.received));
            last = now;
        }
        let [(sent, received), (sent_again, received_again)] = sizes[..] else {
            unreachable!()
        };
        assert!(sent > 20 && received > 20, "{protocol}: {sizes:?}");
        if protocol == Protocol::Http1 {
            assert_eq!((sent, received), (sent_again, received_again));
        } else {
            assert!(
                sent_again < sent && received_again < received,
                "{protocol}: {sizes:?}"
            );
        }
    }
}

#[tokio::test]
async fn keepalive_pings_come_from_the_configured_side() {
    for server_pings in [true, false] {
        let (metrics, time) = (spdy::Metrics::new(), Clock::default());
        let keepalive = |is_enabled: bool| is_enabled.then_some(Duration::from_secs(30));
        let spdy = Protocol::Spdy(Version::V31);
        let options = ServerOptions {
            keepalive: keepalive(server_pings),
            spdy: SpdyServerOptions {
                metrics: Some(metrics.clone()),
                ..SpdyServerOptions::default()
            },
            ..ServerOptions::default()
        };
        let runtime = SharedRuntime::new(time.clone());
        let stop = Latch::new();
        let io = support::serve_in(runtime.clone(), &[spdy], echo, None, options, stop);
        let options = ClientOptions {
            keepalive: keepalive(!server_pings),
            spdy: SpdyClientOptions {
                metrics: Some(metrics.clone()),
                ..SpdyClientOptions::default()
            },
            ..ClientOptions::default()
        };
        let connection = Connection::start(io, spdy, 0, &options, &runtime).await;
        let connection = connection.unwrap();
        let response = connection.send(get("/10"), Priority::HIGHEST).await;
        read(response.unwrap()).await.unwrap();
        let echoes = || {
            let snapshot = metrics.snapshot();
            [snapshot.server, snapshot.client].map(|side| side.round_trips.count())
        };
        for seconds in [29, 2] {
            assert_eq!(echoes(), [0, 0]);
            time.push(Duration::from_secs(seconds));
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        let expected = if server_pings { [1, 0] } else { [0, 1] };
        assert_eq!(echoes(), expected);
        assert!(!connection.is_closing());
    }
}

/// A client with costs for each open stream may allow fewer than the server does.
#[tokio::test]
async fn http2_client_keeps_its_own_max_streams() {
    for (configured, limit) in [(None, 100), (Some(2), 2), (Some(1000), 100)] {
        let handler = |_: Request<Body>| async { Response::new(Body::empty()) };
        let server = ServerOptions::default();
        let io = support::serve(&[Protocol::Http2], handler, None, server, Latch::new());
        let options = ClientOptions {
            max_streams: configured,
            ..ClientOptions::default()
        };
        let runtime = support::runtime();
        let connection = Connection::start(io, Protocol::Http2, 0, &options, &runtime);
        let connection = connection.await.expect("the connection opens");
        let request = Request::get("http://site.test/").body(Body::empty());
        let response = connection.send(request.expect("a request"), Priority::HIGHEST);
        response.await.expect("a response");
        assert_eq!(connection.limit(), limit, "{configured:?}");
    }
}
