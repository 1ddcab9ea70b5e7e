//! Clients that are slow on purpose: a byte now and then, in a head, in a body, and in what they take.
//! Time is pushed by hand.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::frame::{Data, Frame, Ping};
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_net::admission::{Admission, AdmissionLimits, Conduct};
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use spdy_testkit::clock::Clock;

use crate::support::{self, ALL, MULTIPLEXED};

const SECOND: Duration = Duration::from_secs(1);

/// Lets the server do what it can do now.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Responds with whether the request's body was complete.
async fn report_completeness(request: Request<Body>) -> Response<Body> {
    let is_complete = request.into_body().collect().await.is_ok();
    Response::new(Body::full(format!("{is_complete}")))
}

fn without_idle_timeout(hits: &LimitHits) -> ServerOptions {
    let mut options = ServerOptions::default();
    options.hits = hits.clone();
    options.timeouts.idle_timeout = 3600 * SECOND;
    options
}

#[tokio::test]
async fn head_timeout_counts_from_the_first_byte_only() {
    for (last, is_served) in [(29, true), (30, false)] {
        let hits = LimitHits::default();
        let time = Clock::default();
        let runtime = SharedRuntime::new(time.clone());
        let options = without_idle_timeout(&hits);
        let http1 = &[Protocol::Http1];
        let mut io = support::serve_in(
            runtime,
            http1,
            report_completeness,
            None,
            options,
            Latch::new(),
        );
        // A first request in time, so that the connection is one that idles.
        let head = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        for _ in 0..2 {
            io.write_all(head).await.expect("it is open");
            settle().await;
            let mut piece = [0; 1024];
            assert!(io.read(&mut piece).await.expect("it is open") > 0);
            time.push(100 * SECOND); // nothing is sent, and nothing is wrong
            settle().await;
        }
        for nth in 0..last {
            io.write_all(&head[nth..=nth]).await.expect("it is open");
            settle().await;
            time.push(SECOND);
            settle().await;
        }
        let rest = io.write_all(&head[last..]).await;
        settle().await;
        let mut piece = [0; 1024];
        let len = io.read(&mut piece).await.unwrap_or(0);
        let has_response = rest.is_ok() && piece[..len].starts_with(b"HTTP/1.1 200");
        assert_eq!(
            has_response,
            is_served,
            "{:?}",
            String::from_utf8_lossy(&piece)
        );
        assert_eq!(hits.of(ConnectionLimit::HeadTimeout) == 0, is_served);
    }
}

/// What came of it behind the answer was taken for a head.
#[tokio::test]
async fn an_upload_continues_after_an_early_response() {
    const PIECE: &[u8] = &[b'x'; 3000];
    // What is sent behind it, for how long the connection waits for more, and whether that is the time of a head.
    for (next, seconds, is_head) in [("G", 30, true), ("", 3600, false)] {
        let hits = LimitHits::default();
        let time = Clock::default();
        let runtime = SharedRuntime::new(time.clone());
        let (count, mut body_lengths) = tokio::sync::mpsc::unbounded_channel();
        let early = move |request: Request<Body>| {
            let count = count.clone();
            async move {
                tokio::spawn(async move {
                    let body = request.into_body().collect().await;
                    count.send(body.map(|body| body.to_bytes().len()).ok())
                });
                Response::new(Body::full("early"))
            }
        };
        let (http1, options) = (&[Protocol::Http1], without_idle_timeout(&hits));
        let mut io = support::serve_in(runtime, http1, early, None, options, Latch::new());
        let mut piece = [0; 1024];
        for _ in 0..2 {
            let head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 30000\r\n\r\n";
            io.write_all(head).await.expect("it is open");
            settle().await;
            let len = io.read(&mut piece).await.expect("it is open");
            assert!(piece[..len].ends_with(b"early"));
            for _ in 0..10 {
                time.push(10 * SECOND);
                settle().await;
                io.write_all(PIECE).await.expect("it is open");
                settle().await;
            }
            assert_eq!(body_lengths.recv().await, Some(Some(30_000)));
        }
        io.write_all(next.as_bytes()).await.expect("it is open");
        settle().await;
        time.push((seconds - 1) * SECOND);
        settle().await;
        assert!(io.read(&mut piece).now_or_never().is_none(), "{next:?}");
        assert_eq!(hits.of(ConnectionLimit::HeadTimeout), 0);
        time.push(SECOND);
        settle().await;
        let end = io.read(&mut piece).now_or_never();
        assert!(matches!(end, Some(Ok(0) | Err(_))), "{next:?}");
        assert_eq!(hits.of(ConnectionLimit::HeadTimeout) == 1, is_head);
    }
}

#[tokio::test]
async fn a_body_below_the_min_rate_times_out() {
    for protocol in ALL {
        // In a minute of waiting 14,400 bytes are required: 2400 in each of six pieces.
        for (piece, is_complete) in [(2400, true), (2399, false)] {
            let hits = LimitHits::default();
            let time = Clock::default();
            let runtime = SharedRuntime::new(time.clone());
            let io = support::serve_in(
                runtime,
                &[protocol],
                report_completeness,
                None,
                without_idle_timeout(&hits),
                Latch::new(),
            );
            let client = ClientOptions::default();
            let connection = Connection::start(io, protocol, 0, &client, &support::runtime())
                .await
                .expect("a connection");
            let (send, body) = channel_body();
            let request = Request::post("http://localhost/").body(body);
            let mut response = connection.send(request.expect("valid"), Priority::HIGHEST);
            let mut early = None;
            for _ in 0..12 {
                early = early.or_else(|| (&mut response).now_or_never());
                settle().await;
                if early.is_some() {
                    break;
                }
                time.push(10 * SECOND - SECOND / 1000);
                settle().await;
                send.send(Bytes::from(vec![b'x'; piece])).ok();
            }
            assert_eq!(early.is_none(), is_complete, "{protocol}");
            drop(send);
            settle().await;
            assert_eq!(
                hits.of(ConnectionLimit::MinReadRate) == 0,
                is_complete,
                "{protocol}"
            );
            assert_eq!(hits.of(ConnectionLimit::ReadTimeout), 0, "{protocol}");
        }
    }
}

/// A body whose pieces come from a channel.
fn channel_body() -> (tokio::sync::mpsc::UnboundedSender<Bytes>, Body) {
    let (send, pieces) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let pieces = futures_util::stream::unfold(pieces, async |mut pieces| {
        let piece = pieces.recv().await?;
        Some((Ok::<_, std::io::Error>(piece), pieces))
    });
    (send, Body::from_stream(pieces))
}

/// Uploads that their handlers left lying filled the window of the session, and another one beside them, which could
/// send nothing then, was given up for it.
#[tokio::test]
async fn backpressure_of_other_streams_does_not_count_as_stall() {
    for protocol in MULTIPLEXED {
        // How long it sends nothing after it could send again.
        for (silent_seconds, is_complete) in [(59, true), (60, false)] {
            let hits = LimitHits::default();
            let time = Clock::default();
            let runtime = SharedRuntime::new(time.clone());
            let go_on = Latch::new();
            let wait = go_on.clone();
            let handler = move |request: Request<Body>| {
                let wait = wait.wait();
                async move {
                    if request.uri().path() == "/held" {
                        wait.await;
                    }
                    report_completeness(request).await
                }
            };
            let options = without_idle_timeout(&hits);
            let io = support::serve_in(runtime, &[protocol], handler, None, options, Latch::new());
            let client = ClientOptions::default();
            let connection = Connection::start(io, protocol, 0, &client, &support::runtime())
                .await
                .expect("a connection");
            let (send, body) = channel_body();
            let request = Request::post("http://localhost/slow").body(body);
            let mut slow_response = connection.send(request.expect("valid"), Priority::HIGHEST);
            send.send(Bytes::from_static(b"x")).expect("it is read");
            assert!((&mut slow_response).now_or_never().is_none());
            settle().await;
            let mut held_responses: Vec<_> = (0..20)
                .map(|_| support::post("/held", vec![b'x'; 64 * 1024]))
                .map(|request| connection.send(request, Priority::LOWEST))
                .collect();
            held_responses
                .iter_mut()
                .for_each(|response| assert!(response.now_or_never().is_none()));
            settle().await;
            // It cannot be sent before the others are read; where it could, its time would run.
            if matches!(protocol, Protocol::Spdy(Version::V31 | Version::V2)) {
                for _ in 0..10 {
                    time.push(20 * SECOND);
                    settle().await;
                }
            }
            go_on.set();
            for response in held_responses {
                let body = support::read(response.await.expect("a response")).await;
                assert_eq!(body.expect("its body"), "true", "{protocol}");
            }
            settle().await;
            time.push(silent_seconds * SECOND);
            settle().await;
            send.send(Bytes::from(vec![b'x'; 20_000])).ok();
            drop(send);
            let body = support::read(slow_response.await.expect("a response")).await;
            assert_eq!(
                body.expect("its body"),
                format!("{is_complete}"),
                "{protocol}"
            );
            let given_up =
                hits.of(ConnectionLimit::ReadTimeout) + hits.of(ConnectionLimit::MinReadRate);
            assert_eq!(given_up, u64::from(!is_complete), "{protocol}");
        }
    }
}

#[tokio::test]
async fn an_address_with_flooding_sessions_is_rejected() {
    let mut limits = AdmissionLimits::default();
    limits.abuses = 3;
    let hits = LimitHits::default();
    let admission = Admission::new(limits, hits.clone());
    let bind_address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let listener = Listener::bind(bind_address).expect("loopback has a free port");
    let address = listener.address();
    let (stop, runtime) = (Latch::new(), support::runtime());
    let mut options = ListenOptions::default();
    options.admission = admission;
    options.drain_timeout = SECOND;
    let stop_latch = stop.clone();
    let listening = tokio::spawn(listener.run(options, stop.clone(), move |io, _, _| {
        let (runtime, stop) = (runtime.clone(), stop_latch.clone());
        async move {
            let spdy = &[Protocol::Spdy(Version::V31)];
            let options = ServerOptions::default();
            let handler = Arc::new(report_completeness);
            let connection = serve_connection(io, handler, spdy, None, &options, &runtime, &stop);
            match connection.await {
                Err(error) if error.is_abuse() => Conduct::Abusive,
                _ => Conduct::Fair,
            }
        }
    }));
    let mut flood = bytes::BytesMut::new();
    Frame::Ping(Ping { id: 1 }).encode(Version::V31, &mut flood);
    for nth in 1..=1100 {
        let stray = Data {
            stream_id: StreamId::new(2 * nth + 1),
            payload: Bytes::from_static(b"x"),
            fin: false,
        };
        Frame::Data(stray).encode(Version::V31, &mut flood);
    }
    for nth in 0..4 {
        let mut io = tokio::net::TcpStream::connect(address)
            .await
            .expect("a port");
        // It may be closed in the middle of this.
        let _ = io.write_all(&flood).await;
        let mut received = Vec::new();
        let _ = io.read_to_end(&mut received).await;
        assert_eq!(received.is_empty(), nth == 3, "connection {nth}");
    }
    assert_eq!(hits.of(ConnectionLimit::AbusesPerAddress), 1);
    stop.set();
    listening.await.expect("no panic");
}

/// Regression: each listener used a slot while it waited for its next client, and none was left for the last of them.
#[tokio::test]
async fn idle_listeners_hold_no_connection_slot() {
    let mut limits = AdmissionLimits::default();
    limits.connections = 1;
    let hits = LimitHits::default();
    let admission = Admission::new(limits, hits.clone());
    let stop = Latch::new();
    let mut listeners = tokio::task::JoinSet::new();
    let mut addresses = Vec::new();
    for _ in 0..2 {
        let bind_address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
        let listener = Listener::bind(bind_address).expect("loopback has a free port");
        addresses.push(listener.address());
        let mut options = ListenOptions::default();
        options.admission = admission.clone();
        options.drain_timeout = SECOND;
        listeners.spawn(
            listener.run(options, stop.clone(), |mut io, _, _| async move {
                let _ = io.write_all(b"here").await; // and closes
            }),
        );
    }
    for address in addresses {
        let mut io = tokio::net::TcpStream::connect(address)
            .await
            .expect("a port");
        let mut received = Vec::new();
        io.read_to_end(&mut received).await.expect("an end");
        assert_eq!(received, b"here");
    }
    stop.set();
    listeners.join_all().await;
}

#[tokio::test]
async fn a_slow_reader_outlives_the_idle_timeout() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let time = Clock::default();
        let runtime = SharedRuntime::new(time.clone());
        let mut options = ServerOptions::default();
        options.timeouts.idle_timeout = 5 * SECOND;
        let body = Bytes::from(vec![b'x'; 16 << 20]);
        let long = move |_: Request<Body>| {
            let body = body.clone();
            async move { Response::new(Body::full(body)) }
        };
        let io = support::serve_in(runtime, &[protocol], long, None, options, Latch::new());
        let client = ClientOptions::default();
        let connection = Connection::start(io, protocol, 0, &client, &support::runtime())
            .await
            .expect("a connection");
        let request = support::get("/");
        let response = connection.send(request, Priority::HIGHEST).await;
        let mut body = response.expect("a response").into_body();
        let mut received_len = 0;
        while let Some(frame) = body.frame().await {
            let frame =
                frame.unwrap_or_else(|error| panic!("{protocol}, after {received_len}: {error}"));
            received_len += frame.into_data().map_or(0, |data| data.len());
            time.push(SECOND);
            settle().await;
        }
        assert_eq!(received_len, 16 << 20, "{protocol}");
    }
}
