//! Exec and attach over a plain WebSocket, client and server of this crate; and which transport a client
//! uses.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use spdy::upgrade::UpgradeError;
use spdy_cri::client::{self, Options, Transport};
use spdy_cri::{
    ChannelProtocol, ClientError, Config, ExitCode, RemoteCommand, StreamingServer, TerminalSize,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::process::{start_in_websocket, text};
use crate::support::{
    FakeRuntime, PIPES, TERMINAL, attach, dial, echo_port, exec, fake_runtime, forward_to,
    nothing_runs, one_call_begins, pattern, post, runtime,
};

fn only(protocol: ChannelProtocol) -> Options {
    let mut options = Options::default();
    options.channels = vec![protocol];
    options
}

#[tokio::test]
async fn a_megabyte_crosses_cat_in_every_sub_protocol() {
    let server = fake_runtime(Config::default());
    for protocol in ChannelProtocol::ALL {
        let mut process = start_in_websocket(&server, exec(&["cat"], PIPES), only(protocol))
            .await
            .expect("a process");
        assert_eq!(process.version(), protocol.version());
        let input = pattern(1_000_000, 0);
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let feeding = input.clone();
        let feed = tokio::spawn(async move {
            stdin.write_all(&feeding).await.expect("written");
            stdin.shutdown().await.expect("an end");
            stdin.write_all(b"more").await.expect_err("after the end");
        });
        let mut output = vec![0; input.len()];
        let mut stdout = process.stdout.take().expect("the stream was requested");
        stdout.read_exact(&mut output).await.expect("all of it");
        assert!(output == input, "{protocol:?}");
        feed.await.expect("no panic");
        if protocol.has_close() {
            assert_eq!(stdout.read(&mut output).await.expect("an end"), 0);
            assert_eq!(text(process.stderr.take()).await, "");
            assert!(process.wait().await.expect("a status").is_success());
        }
        // In the others nothing ends cat but its client.
    }
    nothing_runs(&server).await;
}

#[tokio::test]
async fn exit_codes_and_errors_are_sent_in_every_sub_protocol() {
    let server = fake_runtime(Config::default());
    for protocol in ChannelProtocol::ALL {
        let mut process = start_in_websocket(&server, exec(&["fail", "7"], PIPES), only(protocol))
            .await
            .expect("a process");
        assert_eq!(text(process.stderr.take()).await, "failing as asked\n");
        match process.wait().await {
            Ok(code) => assert!(code == ExitCode(7) && has_exit_codes(protocol)),
            Err(ClientError::Remote { message }) if !has_exit_codes(protocol) => {
                assert_eq!(message, "command terminated with non-zero exit code: 7");
            }
            other => panic!("{protocol:?}: {other:?}"),
        }
        let process = start_in_websocket(&server, exec(&["dance"], PIPES), only(protocol))
            .await
            .expect("a process");
        let error = process.wait().await.expect_err("no such command");
        assert!(
            error.to_string().contains("no command \"dance\""),
            "{error}"
        );
        let process = start_in_websocket(&server, exec(&["both"], PIPES), only(protocol))
            .await
            .expect("a process");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

fn has_exit_codes(protocol: ChannelProtocol) -> bool {
    protocol.version() >= RemoteCommand::V4
}

#[tokio::test]
async fn terminal_sizes_are_sent_in_every_sub_protocol() {
    let server = fake_runtime(Config::default());
    for protocol in ChannelProtocol::ALL {
        let mut process =
            start_in_websocket(&server, exec(&["size", "2"], TERMINAL), only(protocol))
                .await
                .expect("a process");
        let mut resizer = process.resize.take().expect("a terminal");
        for (width, height) in [(80, 24), (132, 43)] {
            let size = TerminalSize { width, height };
            resizer.resize(size).await.expect("sent");
        }
        assert_eq!(text(process.stdout.take()).await, "80x24\n132x43\n");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

#[tokio::test]
async fn a_websocket_uses_up_its_token_even_if_it_is_refused() {
    let mut no_version_5 = Config::default();
    no_version_5.channels = vec![ChannelProtocol::V4];
    for (config, first) in [(Config::default(), None), (no_version_5, Some(403))] {
        let server = fake_runtime(config);
        let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
        let connect = async || {
            let (io, request, options) = (dial(&server), post(&url), Options::default());
            let execution = client::exec_in_websocket(io, &request, PIPES, options, runtime());
            execution
                .await
                .err()
                .map(|error| refusal_status(error).as_u16())
        };
        assert_eq!(connect().await, first);
        assert_eq!(connect().await, Some(404));
    }
}

#[tokio::test]
async fn attach_joins_over_a_websocket() {
    let server = fake_runtime(Config::default());
    let url = server.attach_url(attach()).expect("a URL");
    let (io, options) = (dial(&server), Options::default());
    let mut process = client::attach_in_websocket(io, &post(&url), PIPES, options, runtime())
        .await
        .expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    stdin.write_all(b"hello").await.expect("written");
    drop(stdin);
    assert_eq!(text(process.stdout.take()).await, "hello");
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn a_command_that_ends_before_its_stdin_loses_no_output() {
    let server = fake_runtime(Config::default());
    let request = exec(&["early", "100000"], PIPES);
    let mut process = start_in_websocket(&server, request, Options::default())
        .await
        .expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let feed = tokio::spawn(async move { stdin.write_all(&pattern(20_000_000, 0)).await });
    let mut output = Vec::new();
    let mut stdout = process.stdout.take().expect("the stream was requested");
    stdout.read_to_end(&mut output).await.expect("an end");
    assert_eq!(output, pattern(100_000, 0));
    assert!(process.wait().await.expect("a status").is_success());
    let feed_result = feed.await.expect("no panic");
    assert!(
        feed_result.is_err(),
        "writing fails after the command ended"
    );
}

#[tokio::test]
async fn dropping_stdin_keeps_resize_events() {
    let server = fake_runtime(Config::default());
    let mut process = start_in_websocket(&server, exec(&["deaf"], TERMINAL), Options::default())
        .await
        .expect("a process");
    // More than a connection keeps: were it not passed over, the size behind it would never be read.
    let mut stdin = process.stdin.take().expect("the stream was requested");
    stdin
        .write_all(&pattern(8_000_000, 0))
        .await
        .expect("an empty message is ignored");
    let mut resizer = process.resize.take().expect("a terminal");
    let size = TerminalSize {
        width: 1,
        height: 1,
    };
    resizer.resize(size).await.expect("sent");
    assert_eq!(text(process.stdout.take()).await, "I heard the bell\n");
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn a_command_ends_when_its_client_disconnects() {
    let server = fake_runtime(Config::default());
    let process = start_in_websocket(&server, exec(&["wait"], PIPES), Options::default())
        .await
        .expect("a process");
    one_call_begins(&server).await;
    drop(process);
    nothing_runs(&server).await;
}

#[tokio::test]
async fn stop_closes_connections_with_an_error() {
    let server = fake_runtime(Config::default());
    let mut process = start_in_websocket(&server, exec(&["wait"], PIPES), Options::default())
        .await
        .expect("a process");
    one_call_begins(&server).await;
    server.stop();
    let mut stdout = process.stdout.take().expect("the stream was requested");
    let cut = stdout.read_to_end(&mut Vec::new()).await;
    assert!(cut.is_err(), "an end without close is an error");
    process.wait().await.expect_err("cut");
    nothing_runs(&server).await;
}

fn refusal_status(error: ClientError) -> StatusCode {
    match error {
        ClientError::Upgrade(UpgradeError::Refused { status, .. }) => status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn disabled_and_wrong_sub_protocols_are_refused() {
    let mut off = Config::default();
    off.channels = Vec::new();
    let cases = [
        (off, ChannelProtocol::V5, false),
        (Config::default(), ChannelProtocol::V5, true),
    ];
    for (config, protocol, works) in cases {
        let server = fake_runtime(config);
        let started = start_in_websocket(&server, exec(&["both"], PIPES), only(protocol)).await;
        assert_eq!(started.is_ok(), works, "{started:?}");
        if let Err(error) = started {
            assert_eq!(refusal_status(error), StatusCode::FORBIDDEN);
        }
    }
    // Port-forward has but version 4.
    for protocol in ChannelProtocol::ALL {
        let server = fake_runtime(Config::default());
        let url = server.port_forward_url(forward_to(&[80])).expect("a URL");
        let io = dial(&server);
        let started =
            client::exec_in_websocket(io, &post(&url), PIPES, only(protocol), runtime()).await;
        assert_eq!(started.is_ok(), protocol.forwards_ports(), "{protocol:?}");
    }
}

/// Only a lone `Upgrade: websocket` was seen.
#[tokio::test]
async fn upgrade_lists_may_span_several_lines() {
    let server = fake_runtime(Config::default());
    let lists: [&[&str]; 4] = [
        &["Connection: Upgrade", "Upgrade: websocket"],
        &["Connection: Upgrade", "Upgrade: WebSocket, x"],
        &["Connection: Upgrade", "Upgrade: x", "Upgrade: websocket"],
        &["Connection: x", "Connection: upgrade", "Upgrade: websocket"],
    ];
    for lines in lists {
        let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
        let path = url.parse::<http::Uri>().expect("a URI");
        let head = format!(
            "GET {} HTTP/1.1\r\nHost: h\r\n{}\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n",
            path.path(),
            lines.join("\r\n")
        );
        let mut io = dial(&server);
        io.write_all(head.as_bytes()).await.expect("written");
        let mut status = [0; 13];
        io.read_exact(&mut status).await.expect("a response");
        assert_eq!(&status, b"HTTP/1.1 101 ", "{lines:?}");
    }
}

/// What `server` answers to an Upgrade to `lines`, with sub-protocols for SPDY and for WebSocket.
async fn response_head(
    server: &StreamingServer<FakeRuntime>,
    lines: &str,
    spdy: &str,
    socket: &str,
) -> String {
    let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
    let path = url.parse::<http::Uri>().expect("a URI");
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n{lines}\r\n\
         X-Stream-Protocol-Version: {spdy}\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: {socket}\r\n\r\n",
        path.path(),
    );
    let mut io = dial(server);
    io.write_all(head.as_bytes()).await.expect("written");
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\n") {
        response.push(io.read_u8().await.expect("a response"));
    }
    String::from_utf8(response).expect("text").to_lowercase()
}

/// WebSocket was chosen at any place in the list.
#[tokio::test]
async fn the_first_upgrade_of_the_client_is_chosen() {
    let server = fake_runtime(Config::default());
    for (lines, expected) in [
        ("Upgrade: SPDY/3.1, websocket", "spdy/3.1"),
        (
            "Upgrade: x\r\nUpgrade: spdy/3.1\r\nUpgrade: websocket",
            "spdy/3.1",
        ),
        ("Upgrade: WebSocket, SPDY/3.1", "websocket"),
    ] {
        let (spdy, socket) = ("v4.channel.k8s.io", "v5.channel.k8s.io");
        let response = response_head(&server, lines, spdy, socket).await;
        assert!(response.starts_with("http/1.1 101 "), "{lines}: {response}");
        let upgrade = format!("\r\nupgrade: {expected}\r\n");
        assert!(response.contains(&upgrade), "{lines}: {response}");
    }
}

/// A client whose first name had no common sub-protocol was refused, with a good offer beside it.
#[tokio::test]
async fn the_second_upgrade_is_chosen_if_the_first_fails() {
    let server = fake_runtime(Config::default());
    let (supported, unsupported) = ("v4.channel.k8s.io", "v9.example");
    let (spdy_first, socket_first) = (
        "Upgrade: SPDY/3.1, websocket",
        "Upgrade: websocket, SPDY/3.1",
    );
    for (lines, spdy, socket, expected) in [
        (spdy_first, unsupported, supported, "websocket"),
        (socket_first, supported, unsupported, "spdy/3.1"),
    ] {
        let response = response_head(&server, lines, spdy, socket).await;
        assert!(response.starts_with("http/1.1 101 "), "{lines}: {response}");
        let upgrade = format!("\r\nupgrade: {expected}\r\n");
        assert!(response.contains(&upgrade), "{lines}: {response}");
    }
    // If neither can, or the second is not named, the client gets the error of the first alone.
    for (lines, spdy, socket, of_spdy) in [
        (spdy_first, unsupported, unsupported, true),
        (socket_first, unsupported, unsupported, false),
        ("Upgrade: SPDY/3.1", unsupported, supported, true),
        ("Upgrade: websocket", supported, unsupported, false),
    ] {
        let response = response_head(&server, lines, spdy, socket).await;
        assert!(response.starts_with("http/1.1 403 "), "{lines}: {response}");
        let lists_versions = response.contains("\r\nx-accepted-stream-protocol-versions: ");
        assert_eq!(lists_versions, of_spdy, "{lines}: {response}");
    }
}

/// The API server: its URL is good for as many requests as one likes, each with a token of its own.
fn front(server: &StreamingServer<FakeRuntime>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = server.clone();
    let service = hyper::service::service_fn(move |mut request: Request<_>| {
        let url = match request.uri().path() {
            "/exec" => server.exec_url(exec(&["fail", "7"], PIPES)),
            _ => server.port_forward_url(forward_to(&[])),
        };
        *request.uri_mut() = url.expect("a URL").parse().expect("a URI");
        let response = server.respond(request);
        async { Ok::<_, std::convert::Infallible>(response) }
    });
    let http = hyper::server::conn::http1::Builder::new();
    let connection = http
        .serve_connection(TokioIo::new(far), service)
        .with_upgrades();
    tokio::spawn(connection);
    near
}

#[tokio::test]
async fn a_client_falls_back_to_spdy_if_websocket_is_refused() {
    let mut off = Config::default();
    off.channels = Vec::new();
    off.tunnel = false;
    let mut no_fallback = Options::default();
    no_fallback.transports = vec![Transport::WebSocket];
    let cases = [
        (
            Config::default(),
            Options::default(),
            Some((RemoteCommand::V5, 1)),
        ),
        (
            off.clone(),
            Options::default(),
            Some((RemoteCommand::V4, 2)),
        ),
        (off, no_fallback, None),
    ];
    for (config, options, expected) in cases {
        let server = fake_runtime(config);
        let dials = AtomicUsize::new(0);
        let dial = async || {
            dials.fetch_add(1, Ordering::SeqCst);
            Ok(front(&server))
        };
        let exec = post("http://api/exec");
        let started =
            client::exec_with_fallback(dial, &exec, PIPES, options.clone(), runtime()).await;
        match (started, expected) {
            (Ok(process), Some((version, tries))) => {
                assert_eq!(process.version(), version);
                assert_eq!(dials.load(Ordering::SeqCst), tries);
                assert_eq!(process.wait().await.expect("a status"), ExitCode(7));
            }
            (Err(error), None) => assert_eq!(refusal_status(error), StatusCode::FORBIDDEN),
            other => panic!("{other:?}"),
        }
        let port = echo_port().await;
        let request = post("http://api/portforward");
        let forward = client::port_forward_with_fallback(dial, &request, options, runtime()).await;
        match (forward, expected) {
            (Ok(forward), Some(_)) => {
                let mut forwarded = forward.connect(port).await.expect("a connection");
                forwarded.data.write_all(b"x").await.expect("written");
                assert_eq!(forwarded.data.read_u8().await.expect("an echo"), b'x');
            }
            (Err(error), None) => assert_eq!(refusal_status(error), StatusCode::FORBIDDEN),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_client_does_not_fall_back_if_the_connection_fails() {
    let dials = AtomicUsize::new(0);
    let dial = async || {
        dials.fetch_add(1, Ordering::SeqCst);
        let (near, far) = tokio::io::duplex(64 * 1024);
        drop(far);
        Ok(near)
    };
    let request = post("http://api/exec");
    let options = Options::default();
    client::exec_with_fallback(dial, &request, PIPES, options, runtime())
        .await
        .expect_err("no listener");
    assert_eq!(dials.load(Ordering::SeqCst), 1);
}
