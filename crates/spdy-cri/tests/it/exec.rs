//! Exec and attach, client and server of this crate: every version, every end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use spdy::client::OpenOptions;
use spdy::upgrade::{self, Channel, Limits, UpgradeError};
use spdy::{HeaderBlock, client::Session};
use spdy_cri::client::{self, Options, Process};
use spdy_cri::{
    ClientError, Config, ExecRequest, ExitCode, RemoteCommand, RequestError, StreamOptions,
    StreamingServer, TerminalSize,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    self, FakeRuntime, PIPES, TERMINAL, attach, dial, exec, fake_runtime, pattern, post, runtime,
    until,
};

fn all_versions() -> Config {
    Config {
        remote_command: RemoteCommand::ALL.to_vec(),
        ..Config::default()
    }
}

fn only(version: RemoteCommand) -> Options {
    Options {
        remote_command: vec![version],
        ..Options::default()
    }
}

async fn start(
    server: &StreamingServer<FakeRuntime>,
    request: ExecRequest,
    options: Options,
) -> Result<Process, ClientError> {
    let stream_options = request.stream_options;
    let url = server.exec_url(request).expect("a URL");
    client::exec(
        dial(server),
        &post(&url),
        stream_options,
        options,
        runtime(),
    )
    .await
}

async fn text(input: Option<spdy_cri::Input>) -> String {
    let mut text = String::new();
    let mut input = input.expect("the stream was requested");
    input.read_to_string(&mut text).await.expect("an end");
    text
}

#[tokio::test]
async fn a_megabyte_crosses_cat_in_every_version() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let mut process = start(&server, exec(&["cat"], PIPES), only(version))
            .await
            .expect("a process");
        assert_eq!(process.version(), version);
        let input = pattern(1_000_000, 0);
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let feeding = input.clone();
        let feed = tokio::spawn(async move {
            stdin.write_all(&feeding).await.expect("written");
            stdin.shutdown().await.expect("an end");
            stdin
        });
        let mut output = Vec::new();
        let mut stdout = process.stdout.take().expect("the stream was requested");
        stdout.read_to_end(&mut output).await.expect("an end");
        assert!(output == input, "{version:?}: {} bytes", output.len());
        assert_eq!(text(process.stderr.take()).await, "");
        assert!(process.wait().await.expect("a status").is_success());
        drop(feed.await.expect("no panic"));
    }
}

#[tokio::test]
async fn exit_codes_are_json_from_version_4_on() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let mut process = start(&server, exec(&["fail", "7"], PIPES), only(version))
            .await
            .expect("a process");
        assert_eq!(text(process.stderr.take()).await, "failing as asked\n");
        match process.wait().await {
            Ok(code) => assert!(code == ExitCode(7) && version >= RemoteCommand::V4),
            Err(ClientError::Remote { message }) if version < RemoteCommand::V4 => {
                assert_eq!(message, "command terminated with non-zero exit code: 7");
            }
            other => panic!("{version:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_runtime_that_fails_is_quoted_in_every_version() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let process = start(&server, exec(&["dance"], PIPES), only(version))
            .await
            .expect("a process");
        let error = process.wait().await.expect_err("no such command");
        assert!(
            error.to_string().contains("no command \"dance\""),
            "{error}"
        );
    }
}

#[tokio::test]
async fn stdout_and_stderr_are_apart() {
    let server = fake_runtime(Config::default());
    let mut process = start(&server, exec(&["both"], PIPES), Options::default())
        .await
        .expect("a process");
    assert_eq!(
        process.version(),
        RemoteCommand::V4,
        "the kubelet's newest protocol over SPDY"
    );
    let (out, err) = tokio::join!(text(process.stdout.take()), text(process.stderr.take()));
    assert!(
        out.starts_with("out 0\n") && out.ends_with("out 9\n"),
        "{out}"
    );
    assert!(
        err.starts_with("err 0\n") && err.ends_with("err 9\n"),
        "{err}"
    );
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn terminal_sizes_are_sent_from_version_3_on() {
    let server = fake_runtime(all_versions());
    for version in RemoteCommand::ALL {
        let mut process = start(&server, exec(&["size", "2"], TERMINAL), only(version))
            .await
            .expect("a process");
        let Some(mut resizer) = process.resize.take() else {
            assert!(version < RemoteCommand::V3);
            assert!(
                process.wait().await.is_err(),
                "the command needs a terminal size"
            );
            continue;
        };
        for (width, height) in [(80, 24), (132, 43)] {
            let size = TerminalSize { width, height };
            resizer.resize(size).await.expect("sent");
        }
        assert_eq!(text(process.stdout.take()).await, "80x24\n132x43\n");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

#[tokio::test]
async fn attach_joins_and_reports_what_fails() {
    let server = fake_runtime(Config::default());
    for (container, works) in [("c1", true), ("c2", false)] {
        let mut request = attach();
        request.container = container.to_owned();
        let url = server.attach_url(request).expect("a URL");
        let io = dial(&server);
        let options = Options::default();
        let mut process = client::attach(io, &post(&url), PIPES, options, runtime())
            .await
            .expect("a process");
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let _ = stdin.write_all(b"hello").await;
        drop(stdin);
        let stdout = text(process.stdout.take()).await;
        let status = process.wait().await;
        if works {
            assert_eq!(
                (stdout.as_str(), status.expect("a status")),
                ("hello", ExitCode::SUCCESS)
            );
        } else {
            let error = status.expect_err("no container");
            assert!(error.to_string().contains("no container \"c2\""), "{error}");
        }
    }
}

#[tokio::test]
async fn a_token_is_good_once_and_for_its_verb_alone() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    let connect = |url: String| {
        let io = dial(&server);
        async move { client::exec(io, &post(&url), PIPES, Options::default(), runtime()).await }
    };
    connect(url.clone()).await.expect("the first time");
    let fresh = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    let wrong_verb = fresh.replace("/exec/", "/attach/");
    for url in [
        url,
        wrong_verb,
        fresh,
        "http://runtime:1234/exec/guess".into(),
        "http://runtime:1234/".into(),
    ] {
        match connect(url.clone()).await {
            Err(ClientError::Upgrade(UpgradeError::Refused { status, .. })) => {
                assert_eq!(status, 404, "{url}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
    assert_eq!(server.handler().started_count.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_expires() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    tokio::time::advance(Config::default().token_lifetime).await;
    let result = client::exec(
        dial(&server),
        &post(&url),
        PIPES,
        Options::default(),
        runtime(),
    )
    .await;
    assert!(
        matches!(
            result,
            Err(ClientError::Upgrade(UpgradeError::Refused { .. }))
        ),
        "{result:?}"
    );
}

#[tokio::test]
async fn requests_that_make_no_sense_or_are_too_many_get_no_url() {
    let server = fake_runtime(Config {
        max_tokens: 2,
        ..Config::default()
    });
    let none = StreamOptions::default();
    let both = StreamOptions {
        stderr: true,
        ..TERMINAL
    };
    assert_eq!(
        server.exec_url(exec(&["x"], none)),
        Err(RequestError::NoStreams)
    );
    assert_eq!(
        server.exec_url(exec(&["x"], both)),
        Err(RequestError::TerminalWithStderr)
    );
    assert_eq!(
        server.exec_url(exec(&[], PIPES)),
        Err(RequestError::NoCommand)
    );
    let mut nameless = exec(&["x"], PIPES);
    nameless.container.clear();
    assert_eq!(server.exec_url(nameless), Err(RequestError::MissingTarget));
    for _ in 0..2 {
        server.exec_url(exec(&["x"], PIPES)).expect("room");
    }
    assert_eq!(
        server.exec_url(exec(&["x"], PIPES)),
        Err(RequestError::TooMany { limit: 2 })
    );
}

#[tokio::test]
async fn a_client_without_a_common_version_gets_the_list() {
    let server = fake_runtime(Config::default());
    let result = start(&server, exec(&["cat"], PIPES), only(RemoteCommand::V5)).await;
    match result {
        Err(ClientError::Upgrade(UpgradeError::Refused {
            status, headers, ..
        })) => {
            assert_eq!(status, 403);
            let accepted = headers.get_all(upgrade::ACCEPTED_STREAM_PROTOCOL_VERSIONS);
            let accepted: Vec<_> = accepted.iter().collect();
            assert_eq!(
                accepted,
                [
                    "v4.channel.k8s.io",
                    "v3.channel.k8s.io",
                    "v2.channel.k8s.io",
                    "channel.k8s.io"
                ]
            );
        }
        other => panic!("{other:?}"),
    }
}

/// A client of raw streams.
async fn raw(
    server: &StreamingServer<FakeRuntime>,
    request: ExecRequest,
    version: RemoteCommand,
) -> Session {
    let url = server.exec_url(request).expect("a URL");
    let limits = Limits::default();
    let upgraded = upgrade::connect(
        dial(server),
        &post(&url),
        &[version.name()],
        limits,
        &runtime(),
    )
    .await
    .expect("a switch");
    let (session, connection) = upgrade::client_builder().handshake(upgraded.into_io(), runtime());
    connection.spawn();
    session
}

async fn open(session: &Session, kind: &'static str) -> Result<Channel, spdy::Error> {
    let headers = HeaderBlock::from_iter([("streamtype", kind)]);
    let mut channel = Channel::new(session.open(headers, OpenOptions::default()).await?);
    channel.reply().await?;
    Ok(channel)
}

#[tokio::test(start_paused = true)]
async fn missing_streams_are_reported_after_30_seconds() {
    for (missing, version) in [("stderr", RemoteCommand::V4), ("stdout", RemoteCommand::V1)] {
        let server = fake_runtime(all_versions());
        let session = raw(&server, exec(&["cat"], PIPES), version).await;
        let start_time = tokio::time::Instant::now();
        let mut error = open(&session, "error").await.expect("a stream");
        let mut other_streams = Vec::new();
        for kind in ["stdin", "stdout", "stderr"] {
            if kind != missing {
                other_streams.push(open(&session, kind).await.expect("a stream"));
            }
        }
        let mut message = String::new();
        error.read_to_string(&mut message).await.expect("an end");
        assert!(
            message.contains(&format!("no {missing} stream within 30s")),
            "{message}"
        );
        let elapsed = start_time.elapsed();
        assert!(
            (Duration::from_secs(30)..Duration::from_secs(31)).contains(&elapsed),
            "{elapsed:?}"
        );
        session.closed().await;
        assert_eq!(server.handler().started_count.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn streams_come_in_any_order_and_strange_ones_are_reset() {
    let server = fake_runtime(Config::default());
    let session = raw(&server, exec(&["both"], PIPES), RemoteCommand::V4).await;
    open(&session, "noise").await.expect_err("an unknown type");
    let mut stdout = open(&session, "stdout").await.expect("a stream");
    open(&session, "stdout").await.expect_err("a second one");
    let mut stderr = open(&session, "stderr").await.expect("a stream");
    let _stdin = open(&session, "stdin").await.expect("a stream");
    assert_eq!(
        server.handler().started_count.load(Ordering::SeqCst),
        0,
        "the error stream is missing"
    );
    let mut error = open(&session, "error").await.expect("a stream");
    let (mut out, mut err, mut status) = (String::new(), String::new(), String::new());
    stdout.read_to_string(&mut out).await.expect("an end");
    stderr.read_to_string(&mut err).await.expect("an end");
    error.read_to_string(&mut status).await.expect("an end");
    assert_eq!((out.len(), err.len()), (60, 60));
    assert_eq!(status, r#"{"metadata":{},"status":"Success"}"#);
    // Nothing of ours is left open when the server closes.
    drop((stdout, stderr, error, _stdin));
    session.closed().await;
    assert!(session.error().is_none(), "{:?}", session.error());
}

#[tokio::test]
async fn a_command_ends_when_its_client_is_gone() {
    let server = fake_runtime(Config::default());
    let (started_count, running_count) = (
        &server.handler().started_count,
        &server.handler().running_count,
    );
    let process = start(&server, exec(&["wait"], PIPES), Options::default())
        .await
        .expect("a process");
    until("the command runs", || {
        started_count.load(Ordering::SeqCst) == 1
    })
    .await;
    drop(process);
    until("the command was dropped", || {
        running_count.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_breaks_mid_way_ends_the_command() {
    let server = fake_runtime(Config::default());
    let url = server
        .exec_url(exec(&["bytes", "50000000"], PIPES))
        .expect("a URL");
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (mut to_server, mut from_server) = tokio::io::split(dial(&server));
    let (mut from_client, mut to_client) = tokio::io::split(far);
    // A proxy that falls silent after some bytes and then hangs up.
    let up = tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut from_server).await });
    let down = tokio::spawn(async move {
        let copy_result =
            tokio::io::copy(&mut (&mut to_server).take(300_000), &mut to_client).await;
        assert_eq!(copy_result.expect("bytes"), 300_000);
        (to_server, to_client)
    });
    let mut process = client::exec(near, &post(&url), PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    let mut output = Vec::new();
    let reading = tokio::spawn(async move {
        let end = stdout.read_to_end(&mut output).await;
        (end, output)
    });
    let ends = down.await.expect("no panic");
    up.abort();
    let _ = up.await;
    drop(ends);
    let (end, output) = reading.await.expect("no panic");
    assert!(end.is_err(), "an end without close is an error");
    assert_eq!(output, pattern(50_000_000, 0)[..output.len()]);
    assert!(process.wait().await.is_err());
    let running_count = &server.handler().running_count;
    until("the command was dropped", || {
        running_count.load(Ordering::SeqCst) == 0
    })
    .await;
}

/// The kubelet tears its connection down right behind the status, and a proxy between may lose what follows.
#[tokio::test]
async fn an_exit_code_counts_though_the_connection_breaks_right_behind_it() {
    const END: &[u8] = b"\"message\":\"7\"}]}}";
    for missing in [0, 1] {
        let server = fake_runtime(Config::default());
        let url = server.exec_url(exec(&["fail", "7"], PIPES)).expect("a URL");
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (mut to_server, mut from_server) = tokio::io::split(dial(&server));
        let (mut from_client, mut to_client) = tokio::io::split(far);
        let up =
            tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut from_server).await });
        let down = tokio::spawn(async move {
            let mut server_bytes = Vec::new();
            while !server_bytes.ends_with(&END[..END.len() - missing]) {
                let byte = to_server.read_u8().await.expect("the status arrives");
                server_bytes.push(byte);
                to_client
                    .write_u8(byte)
                    .await
                    .expect("the client receives the status");
            }
            (to_server, to_client)
        });
        let options = Options::default();
        let process = client::exec(near, &post(&url), PIPES, options, runtime()).await;
        let process = process.expect("a process");
        let ends = down.await.expect("no panic");
        up.abort();
        let _ = up.await;
        drop(ends);
        let status = process.wait().await;
        assert_eq!(status.ok(), (missing == 0).then_some(ExitCode(7)));
    }
}

#[tokio::test]
async fn a_command_that_drops_stdin_stops_its_sender_and_nothing_else() {
    let server = fake_runtime(Config::default());
    let mut process = start(&server, exec(&["deaf"], TERMINAL), Options::default())
        .await
        .expect("a process");
    // More than a session holds: were it not dropped, the size behind it would never be read.
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let error = stdin
        .write_all(&pattern(8_000_000, 0))
        .await
        .expect_err("no reader");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let mut resizer = process.resize.take().expect("a terminal");
    resizer
        .resize(TerminalSize {
            width: 1,
            height: 1,
        })
        .await
        .expect("sent");
    assert_eq!(text(process.stdout.take()).await, "I heard the bell\n");
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn a_command_that_ends_before_stdin_does_is_over() {
    let server = fake_runtime(Config::default());
    let mut process = start(
        &server,
        exec(&["early", "100000"], PIPES),
        Options::default(),
    )
    .await
    .expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let feed = tokio::spawn(async move { stdin.write_all(&pattern(20_000_000, 0)).await });
    let mut output = Vec::new();
    process
        .stdout
        .take()
        .expect("the stream was requested")
        .read_to_end(&mut output)
        .await
        .expect("an end");
    assert_eq!(output, pattern(100_000, 0));
    assert!(process.wait().await.expect("a status").is_success());
    assert!(
        feed.await.expect("no panic").is_err(),
        "writing fails after the command ended"
    );
}

#[tokio::test]
async fn a_slow_reader_gets_all_of_it_after_the_command_has_ended() {
    let server = fake_runtime(Config::default());
    let mut process = start(
        &server,
        exec(&["bytes", "3000000"], PIPES),
        Options::default(),
    )
    .await
    .expect("a process");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    let mut output = Vec::new();
    while stdout.read_buf(&mut output).await.expect("bytes") > 0 {
        tokio::task::yield_now().await;
    }
    assert!(output == pattern(3_000_000, 0), "{} bytes", output.len());
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn stop_ends_listener_sessions_and_commands() {
    let server = support::listening(Config::default()).await;
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let address = url["http://".len()..]
        .split('/')
        .next()
        .expect("a host")
        .to_owned();
    let io = tokio::net::TcpStream::connect(&address)
        .await
        .expect("a connection");
    let process = client::exec(io, &post(&url), PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    let (started_count, running_count) = (
        &server.handler().started_count,
        &server.handler().running_count,
    );
    until("the command runs", || {
        started_count.load(Ordering::SeqCst) == 1
    })
    .await;
    server.stop();
    process.wait().await.expect_err("cut");
    until("the command was dropped", || {
        running_count.load(Ordering::SeqCst) == 0
    })
    .await;
}

#[tokio::test]
async fn one_more_connection_than_there_may_be_waits_its_turn() {
    let server = support::listening(Config {
        max_connections: 1,
        ..Config::default()
    })
    .await;
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    let address = url["http://".len()..]
        .split('/')
        .next()
        .expect("a host")
        .to_owned();
    // It has the one place: its request was answered, and it may send another.
    let mut first = tokio::net::TcpStream::connect(&address)
        .await
        .expect("a connection");
    first
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .expect("written");
    first.read_exact(&mut [0; 12]).await.expect("a response");
    let second = tokio::net::TcpStream::connect(&address)
        .await
        .expect("a backlog");
    let request = post(&url);
    let second_exec = client::exec(second, &request, PIPES, Options::default(), runtime());
    let mut second_exec = std::pin::pin!(second_exec);
    for _ in 0..10_000 {
        assert!(
            futures_util::poll!(&mut second_exec).is_pending(),
            "no response yet"
        );
        tokio::task::yield_now().await;
    }
    drop(first);
    second_exec.await.expect("the request is handled");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_sends_no_head_is_closed_in_time() {
    let server = fake_runtime(Config::default());
    let mut io = dial(&server);
    io.write_all(b"POST /exec/x HTTP/1.1\r\n")
        .await
        .expect("written");
    let start_time = tokio::time::Instant::now();
    io.read_to_end(&mut Vec::new()).await.expect("an end");
    let elapsed = start_time.elapsed();
    assert!(
        (Duration::from_secs(29)..Duration::from_secs(32)).contains(&elapsed),
        "{elapsed:?}"
    );
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let server = fake_runtime(Config::default());
    let mut io = dial(&server);
    let head = format!(
        "POST /exec/x HTTP/1.1\r\na: {}\r\n\r\n",
        "y".repeat(Config::default().head_bytes)
    );
    let _ = io.write_all(head.as_bytes()).await;
    let mut response = String::new();
    let _ = io.read_to_string(&mut response).await;
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

/// The API server's proxy closes both sides once one is closed, and with that resets a client that has just
/// written: what it had yet to read was lost.
#[tokio::test(start_paused = true)]
async fn the_server_leaves_the_end_of_the_connection_to_its_client_for_ten_seconds() {
    for client_closes in [true, false] {
        let server = fake_runtime(Config::default());
        let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
        let (near, far) = tokio::io::duplex(64 * 1024);
        let server_task = tokio::spawn(async move { server.serve_connection(far).await });
        let offers = ["v4.channel.k8s.io"];
        let upgraded = upgrade::connect(near, &post(&url), &offers, Limits::default(), &runtime())
            .await
            .expect("a switch");
        // This side must end the connection, but does not, though its session is over.
        let close_last = upgrade::CloseLast::new(upgraded.into_io());
        let (session, connection) = upgrade::client_builder().handshake(close_last, runtime());
        let client_task = tokio::spawn(connection.run());
        let mut streams = Vec::new();
        for kind in ["error", "stdin", "stdout", "stderr"] {
            streams.push(open(&session, kind).await.expect("a stream"));
        }
        let mut status = String::new();
        streams[0]
            .read_to_string(&mut status)
            .await
            .expect("an end");
        session.closed().await;
        let start_time = tokio::time::Instant::now();
        if client_closes {
            client_task.abort();
        }
        server_task.await.expect("no panic");
        let elapsed = start_time.elapsed();
        if client_closes {
            assert!(elapsed < Duration::from_secs(2), "{elapsed:?}");
        } else {
            assert!(
                (Duration::from_secs(9)..Duration::from_secs(12)).contains(&elapsed),
                "{elapsed:?}"
            );
        }
    }
}
