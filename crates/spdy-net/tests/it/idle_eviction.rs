//! Idle connections are evicted when others need their slots.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net::admission::{Admission, AdmissionLimits, Conduct};
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

use spdy_testkit::clock::Clock;

use crate::support::{self, ALL, get};

const SECOND: Duration = Duration::from_secs(1);

/// `/slow` is never answered, `/trickle` has a head and no body ever, all else is.
async fn respond(request: Request<Body>) -> Response<Body> {
    match request.uri().path() {
        "/slow" => std::future::pending().await,
        "/trickle" => {
            let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
            Response::new(Body::from_stream(never))
        }
        _ => Response::new(Body::full("here")),
    }
}

/// A connection from the `host`-th address of this machine.
async fn connect(host: u8, to: SocketAddr, protocol: Protocol) -> Connection {
    let socket = TcpSocket::new_v4().expect("a socket");
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
    socket.bind(from).expect("an address of this machine");
    let stream = socket.connect(to).await.expect("a port");
    let options = ClientOptions::default();
    Connection::start(Box::new(stream), protocol, 0, &options, &support::runtime())
        .await
        .expect("a connection")
}

async fn gets_response(connection: &Connection) -> bool {
    let result = connection.send(get("/"), Priority::HIGHEST).await;
    match result {
        Ok(response) => support::read(response).await.is_ok() && connection.ready().await,
        Err(_) => false,
    }
}

/// Four addresses could fill all places with connections that do nothing, and keep everybody else out for as long
/// as an idle connection lives.
#[tokio::test]
async fn full_server_evicts_idle_but_not_busy_connections() {
    for protocol in ALL {
        let mut limits = AdmissionLimits::default();
        limits.connections = 4;
        let hits = LimitHits::default();
        let mut options = ListenOptions::default();
        options.admission = Admission::new(limits, hits.clone());
        options.drain_timeout = Duration::ZERO;
        let bind_address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let listener = Listener::bind(bind_address).expect("a free port");
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.address().port()));
        let (stop, runtime) = (Latch::new(), support::runtime());
        let stop_latch = stop.clone();
        let listening = tokio::spawn(listener.run(options, stop.clone(), move |io, _, slot| {
            let (runtime, stop) = (runtime.clone(), stop_latch.clone());
            let mut options = ServerOptions::default();
            options.slot = slot;
            async move {
                let (handler, protocols) = (Arc::new(respond), [protocol]);
                let connection =
                    serve_connection(io, handler, &protocols, None, &options, &runtime, &stop);
                let _ = connection.await;
                Conduct::Fair
            }
        }));
        let other_client = connect(1, to, protocol).await;
        assert!(gets_response(&other_client).await, "{protocol}");
        let [waiting, reading, idle] = [
            connect(2, to, protocol).await,
            connect(2, to, protocol).await,
            connect(2, to, protocol).await,
        ];
        assert!(gets_response(&waiting).await && gets_response(&idle).await);
        let mut slow_response = waiting.send(get("/slow"), Priority::HIGHEST);
        assert!((&mut slow_response).now_or_never().is_none());
        let trickle = reading.send(get("/trickle"), Priority::HIGHEST).await;
        let trickle = trickle.expect("its head");
        assert!(
            gets_response(&idle).await,
            "{protocol}: there is a slot for each connection"
        );
        assert_eq!(hits.of(ConnectionLimit::IdleEviction), 0);

        let newcomer = connect(3, to, protocol).await;
        assert!(
            gets_response(&newcomer).await,
            "{protocol}: one connection too many"
        );
        idle.closed().await;
        assert_eq!(hits.of(ConnectionLimit::IdleEviction), 1, "{protocol}");
        for busy in [&other_client, &waiting, &reading] {
            assert!(!busy.is_closing(), "{protocol}");
        }
        assert!((&mut slow_response).now_or_never().is_none(), "{protocol}");
        drop((slow_response, trickle));
        stop.set();
        listening.await.expect("no panic");
    }
}

/// Until every task has done what it could.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Regression: output that h2 had accepted but not written was lost when the connection became idle.
#[tokio::test]
async fn an_http2_response_completes_before_an_idle_connection_ends() {
    for stopped in [false, true] {
        let mut options = ServerOptions::default();
        options.timeouts.idle_timeout = SECOND;
        let (time, stop) = (Clock::default(), Latch::new());
        let runtime = SharedRuntime::new(time.clone());
        let (near, far) = tokio::io::duplex(8 * 1024);
        let stop_latch = stop.clone();
        let server_task = tokio::spawn(async move {
            let (handler, far) = (Arc::new(support::echo), Box::new(far));
            let http2 = &[Protocol::Http2];
            let connection =
                serve_connection(far, handler, http2, None, &options, &runtime, &stop_latch);
            connection.await.map_err(|error| error.to_string())
        });
        let (mut sender, mut connection) = h2::client::handshake(near).await.expect("a connection");
        let request = Request::get("http://localhost/30000").body(());
        let request = request.expect("a request");
        let (response, _) = sender.send_request(request, true).expect("it is open");
        // The request is sent, and from then on nothing is read.
        assert!((&mut connection).now_or_never().is_none());
        settle().await;
        if stopped {
            stop.set();
        } else {
            time.push(2 * SECOND);
        }
        settle().await;
        let reading = tokio::spawn(connection);
        let mut body = response.await.expect("its head").into_body();
        let mut received = Vec::new();
        while let Some(data) = body.data().await {
            let data = data.expect("the whole body");
            let _ = body.flow_control().release_capacity(data.len());
            received.extend_from_slice(&data);
        }
        assert_eq!(received.len(), 30_000, "stopped: {stopped}");
        assert_eq!(received, support::pattern(30_000));
        server_task.await.expect("no panic").expect("a normal end");
        drop(sender);
        let _ = reading.await.expect("no panic");
    }
}

/// Its windows are wide open, and it reads nothing: what h2 could not write stands still, and nothing else passes for progress.
#[tokio::test]
async fn an_http2_client_that_does_not_read_times_out() {
    for body in [90_000, 1_000_000] {
        let hits = LimitHits::default();
        let mut options = ServerOptions::default();
        options.hits = hits.clone();
        options.timeouts.idle_timeout = 3600 * SECOND;
        options.timeouts.write_timeout = 7 * SECOND;
        let time = Clock::default();
        let runtime = SharedRuntime::new(time.clone());
        let http2 = &[Protocol::Http2];
        let handler =
            move |_: Request<Body>| async move { Response::new(Body::full(vec![7; body])) };
        let (near, mut server_task) =
            support::serve_with_end(runtime, http2, handler, None, options, Latch::new());
        let (client, mut write_half) = tokio::io::split(near);
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff];
        let window = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0];
        let get = [0, 0, 6, 1, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, b'a'];
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let bytes = [&preface[..], &settings, &window, &get].concat();
        write_half.write_all(&bytes).await.expect("it is open");
        let mut seconds = 0;
        while (&mut server_task).now_or_never().is_none() {
            assert!(seconds < 10, "{body}: the connection is still open");
            settle().await;
            // It sends bytes, but receives none.
            let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
            let _ = write_half.write_all(&ping).now_or_never();
            settle().await;
            time.push(SECOND);
            seconds += 1;
        }
        assert!(seconds >= 7, "{body}: {seconds} s");
        assert_eq!(hits.of(ConnectionLimit::WriteTimeout), 1, "{body}");
        drop(client);
    }
}

/// h2's graceful end waits for the reply to a PING: a client that never sent one held its slot for ever.
#[tokio::test]
async fn an_idle_http2_client_without_pongs_is_ended_too() {
    without_pong(7 * SECOND, 2 * SECOND, None, 9).await;
}

#[tokio::test]
async fn a_stopped_http2_server_bounds_its_wait_for_a_pong() {
    without_pong(60 * SECOND, 3 * SECOND, Some(2), 5).await;
}

/// A client that sends only its preface, and a server that is stopped at `stop_at`: it ends after `end`
/// seconds.
async fn without_pong(idle: Duration, write: Duration, stop_at: Option<u32>, end: u32) {
    let mut options = ServerOptions::default();
    options.timeouts.idle_timeout = idle;
    options.timeouts.write_timeout = write;
    let stop = Latch::new();
    let time = Clock::default();
    let runtime = SharedRuntime::new(time.clone());
    let http2 = &[Protocol::Http2];
    let (mut io, mut server_task) =
        support::serve_with_end(runtime, http2, respond, None, options, stop.clone());
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings].concat();
    io.write_all(&preface).await.expect("it is open");
    for seconds in 0..=end {
        if stop_at == Some(seconds) {
            stop.set();
        }
        settle().await;
        let has_ended = (&mut server_task).now_or_never().is_some();
        assert_eq!(has_ended, seconds == end, "after {seconds} s");
        time.push(SECOND);
    }
    let mut received = Vec::new();
    io.read_to_end(&mut received).await.expect("an end");
    let goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert!(received.ends_with(&goaway), "{received:02x?}");
}
