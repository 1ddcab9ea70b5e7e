//! The session of an exec: how it begins, how it ends when either side stops or the connection breaks, and its limits.

use std::sync::atomic::Ordering;
use std::time::Duration;

use spdy::HeaderBlock;
use spdy::client::{OpenOptions, Session};
use spdy::upgrade::{self, Channel, Limits};
use spdy_cri::client::{self, Options};
use spdy_cri::{Config, ExecRequest, ExitCode, RemoteCommand, StreamingServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::process::{all_versions, start};
use crate::support::{
    self, FakeRuntime, PIPES, dial, exec, fake_runtime, nothing_runs, one_call_begins, pattern,
    post, runtime,
};

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
async fn streams_open_in_any_order_and_unknown_ones_are_reset() {
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
async fn a_command_ends_when_its_client_disconnects() {
    let server = fake_runtime(Config::default());
    let process = start(&server, exec(&["wait"], PIPES), Options::default())
        .await
        .expect("a process");
    one_call_begins(&server).await;
    drop(process);
    nothing_runs(&server).await;
}

#[tokio::test]
async fn a_broken_connection_ends_the_command() {
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
    nothing_runs(&server).await;
}

/// The kubelet tears its connection down right behind the status, and a proxy between may lose what follows.
#[tokio::test]
async fn an_exit_code_is_valid_if_the_connection_breaks_after_it() {
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
async fn stop_ends_listener_sessions_and_commands() {
    let server = support::listening(Config::default()).await;
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let io = support::connect(&url).await;
    let process = client::exec(io, &post(&url), PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    one_call_begins(&server).await;
    server.stop();
    process.wait().await.expect_err("cut");
    nothing_runs(&server).await;
}

#[tokio::test]
async fn one_connection_over_the_limit_waits() {
    let mut config = Config::default();
    config.max_connections = 1;
    let server = support::listening(config).await;
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    // It has the one place: its request was answered, and it may send another.
    let mut first = support::connect(&url).await;
    first
        .write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .expect("written");
    first.read_exact(&mut [0; 12]).await.expect("a response");
    let second = support::connect(&url).await;
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
async fn a_connection_without_a_head_times_out() {
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
async fn the_server_waits_ten_seconds_for_its_client_to_close() {
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
