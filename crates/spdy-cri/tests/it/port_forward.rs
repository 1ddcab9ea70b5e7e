//! Port-forward, client and server of this crate, over the upgrade and through WebSocket.

use std::time::Duration;

use http::Request;
use spdy::client::{OpenOptions, Session};
use spdy::upgrade::{self, Channel, Limits, UpgradeError};
use spdy::{HeaderBlock, RstStatus};
use spdy_cri::client::{self, Options, PortForward};
use spdy_cri::{ClientError, Config, PortForwardRequest, StreamingServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    FakeRuntime, dead_port, dial, echo_port, fake_runtime, forward_to, nothing_runs, pattern, post,
    runtime,
};

async fn forward(server: &StreamingServer<FakeRuntime>, tunnel: bool) -> PortForward {
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let (io, options) = (dial(server), Options::default());
    if tunnel {
        let get = Request::get(url).body(()).expect("a request");
        client::port_forward_in_websocket(io, &get, options, runtime()).await
    } else {
        client::port_forward(io, &post(&url), options, runtime()).await
    }
    .expect("a way")
}

#[tokio::test]
async fn three_concurrent_connections_are_echoed() {
    let port = echo_port().await;
    for tunnel in [false, true] {
        let server = fake_runtime(Config::default());
        let forward = forward(&server, tunnel).await;
        let echo = |seed| {
            let forward = &forward;
            async move {
                let mut forwarded = forward.connect(port).await.expect("a connection");
                let payload = pattern(1_000_000, seed);
                let mut echo = Vec::new();
                let (mut from, mut to) = tokio::io::split(&mut forwarded.data);
                let write = async {
                    to.write_all(&payload).await.expect("written");
                    to.shutdown().await.expect("an end");
                };
                let (_, read_result) = tokio::join!(write, from.read_to_end(&mut echo));
                read_result.expect("an end");
                assert!(echo == payload, "{} bytes of {}", echo.len(), payload.len());
                forwarded.wait().await.expect("no error");
            }
        };
        tokio::join!(echo(0), echo(1), echo(2));
        nothing_runs(&server).await;
    }
}

#[tokio::test]
async fn a_dead_port_is_reported_and_other_ports_work() {
    let (dead, alive) = (dead_port(), echo_port().await);
    let server = fake_runtime(Config::default());
    let forward = forward(&server, false).await;
    let mut works = forward.connect(alive).await.expect("a connection");
    let mut fails = forward.connect(dead).await.expect("streams");
    let mut data = Vec::new();
    fails.data.read_to_end(&mut data).await.expect("an end");
    let error = fails.wait().await.expect_err("no listener on the port");
    let text = error.to_string();
    let start = format!("error forwarding port {dead} to pod p1: Connection refused");
    assert!(text.starts_with(&start), "{text}");
    works.data.write_all(b"still here").await.expect("written");
    works.data.shutdown().await.expect("an end");
    works.data.read_to_end(&mut data).await.expect("an end");
    assert_eq!(data, b"still here");
}

#[tokio::test]
async fn unlisted_ports_are_refused() {
    let (listed, unlisted) = (echo_port().await, echo_port().await);
    let server = fake_runtime(Config::default());
    let request = PortForwardRequest {
        ports: vec![listed],
        ..forward_to(&[])
    };
    let url = server.port_forward_url(request).expect("a URL");
    let forward = client::port_forward(dial(&server), &post(&url), Options::default(), runtime())
        .await
        .expect("a way");
    let error = forward
        .connect(unlisted)
        .await
        .expect("streams")
        .wait()
        .await;
    assert!(
        matches!(error, Err(ClientError::Remote { .. })),
        "{error:?}"
    );
    let works = forward.connect(listed).await.expect("streams");
    drop(works);
}

/// A client of raw streams.
async fn raw(server: &StreamingServer<FakeRuntime>) -> Session {
    raw_with(server, upgrade::client_builder()).await
}

async fn raw_with(
    server: &StreamingServer<FakeRuntime>,
    builder: spdy::client::Builder,
) -> Session {
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let offers = ["portforward.k8s.io"];
    let upgraded = upgrade::connect(
        dial(server),
        &post(&url),
        &offers,
        Limits::default(),
        &runtime(),
    )
    .await
    .expect("a switch");
    let (session, connection) = builder.handshake(upgraded.into_io(), runtime());
    connection.spawn();
    session
}

async fn open(session: &Session, headers: &[(&'static str, &str)]) -> Result<Channel, spdy::Error> {
    let mut block = HeaderBlock::new();
    for (name, value) in headers {
        block.push(*name, *value);
    }
    let mut channel = Channel::new(session.open(block, OpenOptions::default()).await?);
    channel.reply().await?;
    Ok(channel)
}

#[tokio::test]
async fn stream_pairs_may_interleave_and_begin_with_data() {
    let port = echo_port().await.to_string();
    let server = fake_runtime(Config::default());
    let session = raw(&server).await;
    let label = |kind, id| {
        [
            ("streamtype", kind),
            ("port", port.as_str()),
            ("requestid", id),
        ]
    };
    let mut streams = Vec::new();
    for (kind, id) in [("data", "b"), ("error", "a"), ("error", "b"), ("data", "a")] {
        streams.push(open(&session, &label(kind, id)).await.expect("a stream"));
    }
    for (at, text) in [(0, "of b"), (3, "of a")] {
        let data = &mut streams[at];
        data.write_all(text.as_bytes()).await.expect("written");
        data.shutdown().await.expect("an end");
        let mut echo = String::new();
        data.read_to_string(&mut echo).await.expect("an end");
        assert_eq!(echo, text);
    }
}

#[tokio::test]
async fn without_request_ids_streams_are_paired_by_stream_id() {
    let port = echo_port().await.to_string();
    let server = fake_runtime(Config::default());
    let session = raw(&server).await;
    for _ in 0..2 {
        let error = [("streamtype", "error"), ("port", port.as_str())];
        let _error = open(&session, &error).await.expect("a stream");
        let data = [("streamtype", "data"), ("port", port.as_str())];
        let mut data = open(&session, &data).await.expect("a stream");
        data.write_all(b"old").await.expect("written");
        data.shutdown().await.expect("an end");
        let mut echo = String::new();
        data.read_to_string(&mut echo).await.expect("an end");
        assert_eq!(echo, "old");
    }
}

#[tokio::test]
async fn invalid_streams_are_cancelled() {
    let server = fake_runtime(Config::default());
    let session = raw(&server).await;
    let long = "x".repeat(65);
    let cases: &[&[(&'static str, &str)]] = &[
        &[("streamtype", "data")],
        &[("port", "80")],
        &[("streamtype", "data"), ("port", "0")],
        &[("streamtype", "data"), ("port", "65536")],
        &[("streamtype", "data"), ("port", "http")],
        &[("streamtype", "stdin"), ("port", "80")],
        &[("streamtype", "data"), ("port", "80"), ("requestid", &long)],
    ];
    for case in cases {
        let error = open(&session, case)
            .await
            .expect_err("an unknown stream type");
        assert_eq!(error.reset_status(), Some(RstStatus::CANCEL), "{case:?}");
    }
    let fits = "x".repeat(64);
    let label = [
        ("streamtype", "error"),
        ("port", "80"),
        ("requestid", fits.as_str()),
    ];
    let _error = open(&session, &label).await.expect("a stream");
    let error = open(&session, &label).await.expect_err("a second one");
    assert_eq!(error.reset_status(), Some(RstStatus::CANCEL));
    let other_port = [
        ("streamtype", "data"),
        ("port", "81"),
        ("requestid", fits.as_str()),
    ];
    let error = open(&session, &other_port).await.expect_err("another port");
    assert_eq!(error.reset_status(), Some(RstStatus::CANCEL));
}

#[tokio::test]
async fn one_unpaired_stream_over_the_limit_is_refused() {
    let mut config = Config::default();
    config.max_half_pairs = 2;
    let server = fake_runtime(config);
    let session = raw(&server).await;
    let mut waiting = Vec::new();
    for id in ["0", "1"] {
        let label = [("streamtype", "error"), ("port", "80"), ("requestid", id)];
        waiting.push(open(&session, &label).await.expect("room"));
    }
    let label = [("streamtype", "error"), ("port", "80"), ("requestid", "2")];
    let error = open(&session, &label).await.expect_err("no room");
    assert_eq!(error.reset_status(), Some(RstStatus::REFUSED_STREAM));
}

#[tokio::test(start_paused = true)]
async fn an_unpaired_stream_is_reset_after_30_seconds_with_an_error() {
    let server = fake_runtime(Config::default());
    let session = raw(&server).await;
    let start_time = tokio::time::Instant::now();
    let label = [("streamtype", "error"), ("port", "80"), ("requestid", "5")];
    let mut error = open(&session, &label).await.expect("a stream");
    let mut message = String::new();
    error.read_to_string(&mut message).await.expect("an end");
    assert_eq!(message, "no data stream for request 5 within 30s");
    let elapsed = start_time.elapsed();
    assert!(
        (Duration::from_secs(30)..Duration::from_secs(31)).contains(&elapsed),
        "{elapsed:?}"
    );
    let label = [("streamtype", "error"), ("port", "80"), ("requestid", "5")];
    open(&session, &label).await.expect("the session goes on");
}

#[tokio::test]
async fn forwarded_connections_end_with_their_client() {
    let port = echo_port().await;
    for tunnel in [false, true] {
        let server = fake_runtime(Config::default());
        let forward = forward(&server, tunnel).await;
        let mut forwarded = forward.connect(port).await.expect("a connection");
        forwarded.data.write_all(b"x").await.expect("written");
        let mut byte = [0];
        forwarded.data.read_exact(&mut byte).await.expect("an echo");
        drop((forwarded, forward));
        nothing_runs(&server).await;
    }
}

#[tokio::test]
async fn a_tunnel_is_refused_if_disabled_or_for_another_protocol() {
    let mut off = Config::default();
    off.tunnel = false;
    let server = fake_runtime(off);
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let get = Request::get(url).body(()).expect("a request");
    let options = Options::default();
    let result = client::port_forward_in_websocket(dial(&server), &get, options, runtime()).await;
    match result {
        Err(ClientError::Upgrade(UpgradeError::Refused { status, .. })) => assert_eq!(status, 403),
        other => panic!("{other:?}"),
    }
    let server = fake_runtime(Config::default());
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let get = Request::get(url).body(()).expect("a request");
    let limits = Limits::default();
    let result = spdy_cri::tunnel::Tunnel::connect(
        dial(&server),
        &get,
        "v4.channel.k8s.io",
        limits,
        &runtime(),
    )
    .await;
    match result {
        Err(ClientError::Upgrade(UpgradeError::Refused { status, .. })) => assert_eq!(status, 403),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn one_stream_over_the_session_limit_is_refused() {
    let mut config = Config::default();
    config.max_half_pairs = usize::MAX;
    let server = fake_runtime(config);
    // Our clients keep to the same limit of their own accord; this one does not.
    let mut builder = upgrade::client_builder();
    builder.config_mut().assumed_peer_streams = upgrade::MAX_STREAMS + 1;
    let session = raw_with(&server, builder).await;
    let mut streams = Vec::new();
    for id in 0..upgrade::MAX_STREAMS {
        let id = id.to_string();
        let label = [("streamtype", "error"), ("port", "80"), ("requestid", &*id)];
        streams.push(open(&session, &label).await.expect("room"));
    }
    let label = [
        ("streamtype", "error"),
        ("port", "80"),
        ("requestid", "more"),
    ];
    let error = open(&session, &label).await.expect_err("no room");
    assert_eq!(error.reset_status(), Some(RstStatus::REFUSED_STREAM));
    drop(streams.pop());
    open(&session, &label).await.expect("room again");
}

#[tokio::test]
async fn a_too_long_message_ends_a_tunnel() {
    use spdy_cri::tunnel::{MAX_MESSAGE_BYTES, Tunnel};
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::Role;
    for (length, fits) in [(MAX_MESSAGE_BYTES, true), (MAX_MESSAGE_BYTES + 1, false)] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let mut peer = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let mut tunnel = Tunnel::server(far).await;
        let sending = tokio::spawn(async move {
            let message = Message::Binary(vec![7; length].into());
            let send_result = futures_util::SinkExt::send(&mut peer, message).await;
            let close = futures_util::SinkExt::close(&mut peer).await;
            send_result.and(close)
        });
        let mut output = Vec::new();
        let read_result = tunnel.read_to_end(&mut output).await;
        assert_eq!(read_result.is_ok(), fits, "{read_result:?}");
        assert_eq!(output.len() == length, fits);
        drop(tunnel);
        let _ = sending.await.expect("no panic");
    }
}

#[tokio::test]
async fn text_and_a_close_with_an_error_code_fail_a_tunnel() {
    use spdy_cri::tunnel::Tunnel;
    use tokio_tungstenite::WebSocketStream;
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
    use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
    let close = |code| {
        Message::Close(Some(CloseFrame {
            code,
            reason: "".into(),
        }))
    };
    for (message, ends) in [
        (Message::text("hello"), false),
        (close(CloseCode::Error), false),
        (close(CloseCode::Normal), true),
        (Message::Close(None), true),
    ] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let mut peer = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        let mut tunnel = Tunnel::server(far).await;
        let case = format!("{message:?}");
        futures_util::SinkExt::send(&mut peer, message)
            .await
            .expect("sent");
        let read_result = tunnel.read_to_end(&mut Vec::new()).await;
        assert_eq!(read_result.is_ok(), ends, "{case}: {read_result:?}");
    }
}
