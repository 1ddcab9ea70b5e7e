//! Clients of HTTP/3 that take nothing, or send nothing, in time that is pushed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};
use spdy_net_core::options::{ClientOptions, ServerOptions};
use spdy_testkit::clock::Clock;
use tokio::net::UdpSocket;

use crate::support::echo;
use crate::support::http3::{LOOPBACK, TestServer, code, headers};

/// Real datagrams take real time over loopback, and only the server's clock is pushed.
const PAUSE: Duration = Duration::from_millis(10);

/// The second of the server's clock in which `happens` completes, if it does within `max_seconds`.
async fn second_of<F: Future>(
    time: &Clock,
    max_seconds: u64,
    happens: F,
) -> Option<(u64, F::Output)> {
    let mut happens = Box::pin(happens);
    for second in 0..=max_seconds {
        if let Ok(what) = tokio::time::timeout(PAUSE, &mut happens).await {
            return Some((second, what));
        }
        time.push(Duration::from_secs(1));
    }
    None
}

/// A client that sends keep-alives, and whose streams have windows of `stream_window_bytes`.
fn awake(stream_window_bytes: u32) -> quinn::TransportConfig {
    let mut transport = quinn::TransportConfig::default();
    transport
        .stream_receive_window(stream_window_bytes.into())
        .keep_alive_interval(Some(2 * PAUSE))
        .max_idle_timeout(None);
    transport
}

#[tokio::test]
async fn without_window_head_and_trailers_time_out() {
    let trailing = |_| async {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", http::HeaderValue::from_static("1"));
        let frame = http_body::Frame::trailers(trailers);
        let frames = futures_util::stream::iter([Ok::<_, std::io::Error>(frame)]);
        Response::new(Body::wrap(http_body_util::StreamBody::new(frames)))
    };
    // Two bytes of head before the block of ":status 200"; and trailers behind it.
    for window in [0, 4, 5] {
        let (time, hits) = (Clock::default(), LimitHits::default());
        let mut options = ServerOptions::default();
        options.hits = hits.clone();
        let world = TestServer::serve_in(SharedRuntime::new(time.clone()), trailing, options);
        let raw = world.raw_by(world.address, awake(window)).await;
        let (mut send, mut recv) = raw.open_bi().await.unwrap();
        send.write_all(&headers(b"")).await.unwrap();
        send.finish().unwrap();
        let reset = second_of(&time, 90, recv.received_reset()).await;
        let (second, reset) =
            reset.unwrap_or_else(|| panic!("the request was not given up, window {window}"));
        let reset = reset.unwrap().map(quinn::VarInt::into_inner);
        assert_eq!(reset, Some(code::REQUEST_CANCELLED), "window {window}");
        assert!(
            (60..70).contains(&second),
            "window {window}: after {second} s"
        );
        let limit = match window {
            0 => ConnectionLimit::WriteTimeout,
            _ => ConnectionLimit::MinWriteRate,
        };
        assert_eq!(hits.of(limit), 1, "window {window}");
    }
}

/// It was waited for for ever.
#[tokio::test]
async fn an_unread_upload_fails_after_the_write_timeout() {
    let world = TestServer::serve(
        async |request: Request<Body>| {
            let _request = request;
            std::future::pending().await
        },
        ServerOptions::default(),
    );
    let time = Clock::default();
    let runtime = SharedRuntime::new(time.clone());
    let options = ClientOptions::default();
    let connection = world.connect_in(runtime, world.address, options).await;
    let request = Request::post("https://localhost/").body(Body::full(vec![7; 10_000_000]));
    let exchange = connection.send(request.unwrap(), Priority::HIGHEST);
    let (second, result) = second_of(&time, 200, exchange).await.expect("not given up");
    assert!(second >= 60, "after {second} s"); // and later by as long as it took something
    let error = result.expect_err("no response arrived").to_string();
    assert_eq!(error, "h3: the peer accepted nothing for 60s");
}

/// Carries datagrams between one client and `server`, those to the client only while `is_muted` is not set.
async fn relay(server: SocketAddr, is_muted: Arc<AtomicBool>) -> SocketAddr {
    let (near, far) = (
        UdpSocket::bind(LOOPBACK).await.unwrap(),
        UdpSocket::bind(LOOPBACK).await.unwrap(),
    );
    far.connect(server).await.unwrap();
    let address = near.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut up, mut down) = ([0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = near.recv_from(&mut up) => {
                    client = Some(from);
                    let _ = far.send(&up[..len]).await;
                }
                Ok(len) = far.recv(&mut down) => {
                    if let Some(client) = client && !is_muted.load(Ordering::Relaxed) {
                        let _ = near.send_to(&down[..len], client).await;
                    }
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn an_unreachable_client_times_out_and_is_no_abuse() {
    let (time, hits) = (Clock::default(), LimitHits::default());
    let mut options = ServerOptions::default();
    options.hits = hits.clone();
    let is_muted = Arc::new(AtomicBool::default());
    let mute = is_muted.clone();
    let handler = move |_| {
        mute.store(true, Ordering::Relaxed);
        async { Response::new(Body::full(vec![0; 1000])) }
    };
    let mut world = TestServer::serve_in(SharedRuntime::new(time.clone()), handler, options);
    let address = relay(world.address, is_muted).await;
    let raw = world.raw_by(address, awake(64 * 1024)).await;
    let (mut send, _recv) = raw.open_bi().await.unwrap();
    send.write_all(&headers(b"")).await.unwrap();
    send.finish().unwrap();
    let end = second_of(&time, 90, world.end()).await;
    let (second, end) = end.expect("the client released its exchange");
    assert!((60..70).contains(&second), "after {second} s");
    assert!(!end.unwrap_err().is_abuse());
    // What QUIC took in its stead came to something, and not to enough.
    assert_eq!(hits.of(ConnectionLimit::MinWriteRate), 1);
}

#[tokio::test]
async fn streams_without_a_head_do_not_keep_the_connection() {
    let time = Clock::default();
    let mut world = TestServer::serve_in(
        SharedRuntime::new(time.clone()),
        echo,
        ServerOptions::default(),
    );
    let raw = world.raw_by(world.address, awake(64 * 1024)).await;
    let opening = raw.clone();
    let opener = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut send, recv)) = opening.open_bi().await {
            let _ = send.write_all(&headers(b"")[..1]).await;
            open.push((send, recv));
            tokio::time::sleep(15 * PAUSE).await; // before the head's time is over, by the server's clock
        }
    });
    let end = second_of(&time, 240, world.end()).await;
    let (second, end) = end.expect("the client sent no request in that time");
    assert!((180..=215).contains(&second), "after {second} s");
    assert!(end.is_ok(), "{end:?}");
    opener.await.unwrap();
}
