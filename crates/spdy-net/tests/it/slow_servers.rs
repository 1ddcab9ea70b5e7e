//! Servers that are slow on purpose, and streams that wait for each other: which of them time out. Tests advance the time.

use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_testkit::clock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, WriteHalf};
use tokio::task::JoinHandle;

use crate::support::{self, PIPE};

const SECOND: Duration = Duration::from_secs(1);

/// Lets both ends do what they can do now.
async fn settle() {
    for _ in 0..300 {
        tokio::task::yield_now().await;
    }
}

/// Why an exchange ended.
type ExchangeTask = JoinHandle<String>;

/// Why an exchange ended, if it did.
fn error_of(exchange: &mut ExchangeTask) -> Option<String> {
    let result = exchange.is_finished().then(|| exchange.now_or_never());
    result.flatten().map(|error| error.expect("no panic"))
}

fn upload(connection: &Connection) -> ExchangeTask {
    let request = Request::post("http://localhost/").body(Body::full(vec![b'x'; 4 << 20]));
    let response = connection.send(request.expect("valid"), Priority::new(3));
    tokio::spawn(async move { response.await.expect_err("no response arrives").to_string() })
}

/// A client's connection, in `time`, to a server that the test plays.
async fn connect(protocol: Protocol, time: &Clock) -> (Connection, DuplexStream) {
    let (near, far) = tokio::io::duplex(PIPE);
    let runtime = SharedRuntime::new(time.clone());
    let options = ClientOptions::default();
    let connection = Connection::start(Box::new(near), protocol, 0, &options, &runtime).await;
    (connection.expect("a connection"), far)
}

/// An HTTP/2 server that reads everything, and sends no WINDOW_UPDATE: windows have their initial size, bytes.
struct Server(WriteHalf<DuplexStream>);

impl Server {
    async fn start(io: DuplexStream, stream_window: u32) -> Self {
        let (mut read_half, write) = tokio::io::split(io);
        tokio::spawn(async move {
            let _ = tokio::io::copy(&mut read_half, &mut tokio::io::sink()).await;
        });
        let mut server = Self(write);
        let settings = [
            &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4][..],
            &stream_window.to_be_bytes(),
        ];
        server.send(&settings.concat()).await;
        server
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("it listens");
    }

    /// WINDOW_UPDATE; stream 0 is the connection.
    async fn grant(&mut self, stream: u32, bytes: u32) {
        let head = [0, 0, 4, 8, 0];
        let frame = [&head[..], &stream.to_be_bytes(), &bytes.to_be_bytes()];
        self.send(&frame.concat()).await;
    }
}

/// It held its connection for as long as it liked: any byte would do.
#[tokio::test]
async fn an_upload_below_the_min_rate_times_out() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        // In a minute of waiting 14,400 bytes are required: 2400 in each of six pieces.
        for (piece, is_enough) in [(2400, true), (2399, false)] {
            let time = Clock::default();
            let (connection, mut io) = connect(protocol, &time).await;
            let mut upload_task = upload(&connection);
            let mut server = None;
            if protocol == Protocol::Http2 {
                let mut peer = Server::start(io, 65_535).await;
                peer.grant(0, 1 << 30).await;
                (io, server) = (tokio::io::duplex(1).0, Some(peer));
            }
            let mut error = None;
            settle().await; // what there is of room is used
            for _ in 0..12 {
                error = error.or_else(|| error_of(&mut upload_task));
                settle().await;
                if error.is_some() {
                    break;
                }
                time.push(10 * SECOND - SECOND / 1000);
                settle().await;
                match &mut server {
                    Some(server) => server.grant(1, piece).await,
                    None => {
                        let mut received = vec![0; piece as usize];
                        // It may be closed by now.
                        let _ = io.read_exact(&mut received).await;
                    }
                }
                settle().await;
            }
            let expected = "the peer accepted 14394 bytes in 60s of waiting, expected 14400";
            match error {
                None => assert!(is_enough, "{protocol}"),
                Some(error) => assert!(
                    !is_enough && error.ends_with(expected),
                    "{protocol}: {error}"
                ),
            }
        }
    }
}

#[tokio::test]
async fn a_stream_without_window_times_out_alone() {
    let time = Clock::default();
    let (connection, io) = connect(Protocol::Http2, &time).await;
    let mut server = Server::start(io, 65_535).await;
    server.grant(0, 1 << 30).await;
    let (mut read_upload, mut unread_upload) = (upload(&connection), upload(&connection));
    let mut given_up_after = None;
    settle().await; // what there is of windows is used
    for second in 0..=90 {
        assert_eq!(error_of(&mut read_upload), None, "after {second} s");
        if let Some(error) = given_up_after
            .is_none()
            .then(|| error_of(&mut unread_upload))
            .flatten()
        {
            assert!(
                error.ends_with("the peer accepted nothing for 60s"),
                "{error}"
            );
            given_up_after = Some(second);
        }
        settle().await;
        time.push(SECOND);
        server.grant(1, 1000).await;
        settle().await;
    }
    assert_eq!(given_up_after, Some(60));
}

/// Each had too little by itself, and was given up although all of the link was used.
#[tokio::test]
async fn streams_sharing_a_link_time_out_only_without_progress() {
    let time = Clock::default();
    let (connection, io) = connect(Protocol::Http2, &time).await;
    let mut server = Server::start(io, 1 << 30).await;
    let mut uploads: Vec<_> = (0..50).map(|_| upload(&connection)).collect();
    let mut ended_ones = |second: u32| {
        let errors = uploads.iter_mut().filter_map(error_of);
        let errors: Vec<String> = errors.collect();
        let stalled = |error: &String| error.starts_with("h2: the peer accepted ");
        assert!(errors.iter().all(stalled), "after {second} s: {errors:?}");
        errors.len()
    };
    for second in 0..200 {
        assert_eq!(ended_ones(second), 0, "after {second} s");
        settle().await;
        time.push(SECOND);
        server.grant(0, 5000).await; // 100 bytes of each
        settle().await;
    }
    // What the connection took in the last three seconds is too little by itself.
    for second in 200..257 {
        assert_eq!(ended_ones(second), 0, "after {second} s");
        time.push(SECOND);
        settle().await;
    }
    time.push(4 * SECOND);
    settle().await;
    assert_eq!(ended_ones(261), 50);
}

/// The same of answers over a slow link, which their client reads as it can.
#[tokio::test]
async fn responses_sharing_a_slow_link_do_not_time_out() {
    let (time, hits) = (Clock::default(), LimitHits::default());
    let mut options = ServerOptions::default();
    options.hits = hits.clone();
    let handler = |_: Request<Body>| async { Response::new(Body::full(vec![b'x'; 300_000])) };
    let runtime = SharedRuntime::new(time.clone());
    let http2 = &[Protocol::Http2];
    let server = support::serve_in(runtime, http2, handler, None, options, Latch::new());
    let (near, link) = tokio::io::duplex(PIPE);
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut from_client, mut to_client) = tokio::io::split(link);
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    });
    let (client, runtime) = (ClientOptions::default(), support::runtime());
    let connection = Connection::start(Box::new(near), Protocol::Http2, 0, &client, &runtime);
    let connection = connection.await.expect("a connection");
    let mut bodies = Vec::new();
    for _ in 0..50 {
        let request = Request::get("http://localhost/").header("priority", "i");
        let request = request.body(Body::empty()).expect("valid");
        let response = connection.send(request, Priority::new(3));
        bodies.push(tokio::spawn(async move {
            let body = response.await.expect("a response").into_body();
            body.collect().await.map(|body| body.to_bytes().len())
        }));
    }
    let mut piece = vec![0; 5000]; // a second: 100 bytes of each
    for _ in 0..200 {
        settle().await;
        let len = from_server.read(&mut piece).await.expect("it is open");
        to_client
            .write_all(&piece[..len])
            .await
            .expect("it is open");
        settle().await;
        time.push(SECOND);
    }
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    for body in bodies {
        let len = body.await.expect("no panic").expect("a whole body");
        assert_eq!(len, 300_000);
    }
    for limit in [ConnectionLimit::WriteTimeout, ConnectionLimit::MinWriteRate] {
        assert_eq!(hits.of(limit), 0, "{limit:?}");
    }
}

/// h2 held it back until the last byte of its frame, and a page's first packets waited for that.
#[tokio::test]
async fn a_partial_data_frame_is_readable_but_is_no_complete_body() {
    let (connection, io) = connect(Protocol::Http2, &Clock::default()).await;
    let mut server = Server::start(io, 65_535).await;
    let request = Request::get("http://localhost/").body(Body::empty());
    let response = connection.send(request.expect("valid"), Priority::new(3));
    settle().await;
    let headers = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88]; // :status: 200
    server.send(&headers).await;
    let data = [0, 0x1f, 0x40, 0, 1, 0, 0, 0, 1]; // 8000 bytes, END_STREAM
    server.send(&[&data[..], &[b'a'; 1400]].concat()).await;
    let mut body = response.await.expect("a response").into_body();
    for piece in [[b'a'; 1400], [b'b'; 1400]] {
        let frame = body.frame().await.expect("more").expect("no error");
        assert_eq!(frame.into_data().expect("data"), piece[..]);
        server.send(&[b'b'; 1400]).await;
    }
    server.0.shutdown().await.expect("it is open");
    let end = loop {
        match body.frame().await {
            Some(Ok(_)) => {}
            end => break end,
        }
    };
    assert!(
        end.is_some_and(|end| end.is_err()),
        "the body was incomplete"
    );
}

/// Each frame that was under way for an exchange that is forgotten is taken for the server's fault, and of those it has some hundreds.
#[tokio::test]
async fn late_frames_of_cancelled_streams_do_not_close_the_connection() {
    const CANCELLED: u32 = 90;
    let (connection, io) = connect(Protocol::Http2, &Clock::default()).await;
    let mut server = Server::start(io, 65_535).await;
    let mut responses = Vec::new();
    for id in (0..=CANCELLED).map(|count| 2 * count + 1) {
        let request = Request::get("http://localhost/").body(Body::empty());
        let response = connection.send(request.expect("valid"), Priority::new(3));
        settle().await;
        let headers = [&[0, 0, 1, 1, 4][..], &id.to_be_bytes(), &[0x88]]; // :status: 200
        server.send(&headers.concat()).await;
        responses.push(response.await.expect("a response"));
    }
    let mut live = responses.remove(0).into_body();
    drop(responses);
    settle().await;
    for id in (1..=CANCELLED).map(|count| 2 * count + 1) {
        for _ in 0..3 {
            let head = [&[0, 0x40, 0, 0, 0][..], &id.to_be_bytes()].concat(); // 16 KiB
            server.send(&head).await;
            for _ in 0..16 {
                server.send(&[b'x'; 1024]).await;
                tokio::task::yield_now().await;
            }
        }
    }
    server
        .send(&[0, 0, 3, 0, 1, 0, 0, 0, 1, b'a', b'b', b'c'])
        .await;
    let frame = live.frame().await.expect("more").expect("no error");
    assert_eq!(frame.into_data().expect("data"), "abc");
}
