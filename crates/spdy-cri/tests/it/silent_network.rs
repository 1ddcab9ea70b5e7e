//! A network that silently drops all bytes to the other side, over SPDY: each side detects it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use spdy::HeaderBlock;
use spdy::client::OpenOptions;
use spdy::upgrade::{self, Channel, IDLE_TIMEOUT, Limits};
use spdy_cri::client::{self, Options};
use spdy_cri::{Config, StreamingServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{
    self, FakeRuntime, PIPES, echo_port, exec, fake_runtime, forward_to, nothing_runs, post,
    runtime,
};

const SECOND: Duration = Duration::from_secs(1);

/// A way to a server that can be cut without either end being closed.
struct CuttableLink {
    near: DuplexStream,
    /// Cuts it, by being dropped.
    uncut: oneshot::Sender<()>,
    /// The server's side of the connection.
    server_task: JoinHandle<()>,
}

fn cuttable_link(server: &StreamingServer<FakeRuntime>) -> CuttableLink {
    let (near, mut middle) = tokio::io::duplex(64 * 1024);
    let (mut beyond, far) = tokio::io::duplex(64 * 1024);
    let server = server.clone();
    let server_task = tokio::spawn(async move { server.serve_connection(far).await });
    let (uncut, cut) = oneshot::channel::<()>();
    tokio::spawn(async move {
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut middle, &mut beyond) => {}
            _ = cut => std::future::pending().await,
        }
    });
    CuttableLink {
        near,
        uncut,
        server_task,
    }
}

/// The first PING is sent after 5 s, and the timeout for its answer is a minute.
fn in_time(elapsed: Duration) {
    assert!(
        (60 * SECOND..130 * SECOND).contains(&elapsed),
        "{elapsed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_server_is_detected() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let CuttableLink { near, uncut, .. } = cuttable_link(&server);
    let process = client::exec(near, &post(&url), PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    let start_time = tokio::time::Instant::now();
    drop(uncut);
    let waiting = tokio::time::timeout(600 * SECOND, process.wait()).await;
    waiting.expect("an end").expect_err("the peer is gone");
    in_time(start_time.elapsed());
}

/// A road that holds megabytes, as the buffers of TCP do: stdin has left, and the PING lies behind it.
#[tokio::test(start_paused = true)]
async fn unread_stdin_does_not_end_a_paused_command() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["pause", "7200"], PIPES));
    let (near, far) = tokio::io::duplex(8 * 1024 * 1024);
    let task_server = server.clone();
    tokio::spawn(async move { task_server.serve_connection(far).await });
    let request = post(&url.expect("a URL"));
    let mut process = client::exec(near, &request, PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    let input = support::pattern(4_000_000, 0);
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    stdin.write_all(&input).await.expect("written");
    stdin.shutdown().await.expect("an end");
    let mut output = Vec::new();
    let reading = tokio::time::timeout(3 * 3600 * SECOND, stdout.read_to_end(&mut output));
    reading.await.expect("in time").expect("all of it");
    assert!(output == input, "{} bytes", output.len());
    assert!(process.wait().await.expect("a status").is_success());
}

/// `cat file | exec -i pod -- job`: a job of six hours that writes all the while and reads none of it.
#[tokio::test(start_paused = true)]
async fn a_command_that_writes_for_hours_may_leave_its_stdin_unread() {
    for ping_interval in [Options::default().ping_interval, None] {
        let server = fake_runtime(Config::default());
        let url = server.exec_url(exec(&["clock", "720"], PIPES));
        let (near, far) = tokio::io::duplex(64 * 1024);
        let task_server = server.clone();
        tokio::spawn(async move { task_server.serve_connection(far).await });
        let request = post(&url.expect("a URL"));
        let mut options = Options::default();
        options.ping_interval = ping_interval;
        let mut process = client::exec(near, &request, PIPES, options, runtime())
            .await
            .expect("a process");
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let feeding =
            tokio::spawn(async move { stdin.write_all(&support::pattern(10_000_000, 0)).await });
        let mut stdout = process.stdout.take().expect("the stream was requested");
        let mut output = Vec::new();
        let reading = tokio::time::timeout(7 * 3600 * SECOND, stdout.read_to_end(&mut output));
        reading.await.expect("in time").expect("all of it");
        assert_eq!(output.len(), 72_000, "{ping_interval:?}");
        assert!(process.wait().await.expect("a status").is_success());
        let write_result = feeding.await.expect("no panic");
        write_result.expect_err("the data exceeds the buffers");
    }
}

/// The same the other way round: a client that is typed into, before a pager that rests.
#[tokio::test(start_paused = true)]
async fn a_sending_client_may_leave_output_unread() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["spill", "12000000"], PIPES));
    let (near, far) = tokio::io::duplex(64 * 1024);
    let task_server = server.clone();
    tokio::spawn(async move { task_server.serve_connection(far).await });
    let request = post(&url.expect("a URL"));
    let mut process = client::exec(near, &request, PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    for _ in 0..600 {
        tokio::time::sleep(30 * SECOND).await;
        stdin.write_all(b"x").await.expect("the command reads");
    }
    stdin.shutdown().await.expect("an end");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    let mut output = Vec::new();
    let reading = tokio::time::timeout(600 * SECOND, stdout.read_to_end(&mut output));
    reading.await.expect("in time").expect("all of it");
    assert!(
        output == support::pattern(12_000_000, 0),
        "{} bytes",
        output.len()
    );
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test(start_paused = true)]
async fn a_lost_server_with_unread_stdin_times_out() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let CuttableLink { near, uncut, .. } = cuttable_link(&server);
    let mut process = client::exec(near, &post(&url), PIPES, Options::default(), runtime())
        .await
        .expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let feeding = tokio::spawn(async move {
        let write_result = stdin.write_all(&support::pattern(4_000_000, 0)).await;
        write_result.expect_err("the peer does not read all data")
    });
    let start_time = tokio::time::Instant::now();
    drop(uncut);
    let waiting = tokio::time::timeout(2 * IDLE_TIMEOUT, process.wait()).await;
    waiting.expect("an end").expect_err("the peer is gone");
    feeding.await.expect("no panic");
    let elapsed = start_time.elapsed();
    let deadline = IDLE_TIMEOUT + 70 * SECOND;
    assert!((IDLE_TIMEOUT..=deadline).contains(&elapsed), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_forwarded_port_ends_when_its_tunnel_server_is_lost() {
    let port = echo_port().await;
    let server = fake_runtime(Config::default());
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let get = Request::get(url).body(()).expect("a request");
    let CuttableLink { near, uncut, .. } = cuttable_link(&server);
    let forward = client::port_forward_in_websocket(near, &get, Options::default(), runtime())
        .await
        .expect("a session");
    let mut forwarded = forward.connect(port).await.expect("a connection");
    let start_time = tokio::time::Instant::now();
    drop(uncut);
    let mut byte = [0];
    let reading = tokio::time::timeout(600 * SECOND, forwarded.data.read(&mut byte)).await;
    reading.expect("an end").expect_err("the peer is gone");
    in_time(start_time.elapsed());
}

/// Without PINGs of the client, as `crictl` is: a shell stayed for ever after its client lost the network.
#[tokio::test(start_paused = true)]
async fn a_lost_client_ends_its_command_after_four_hours() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let CuttableLink {
        near,
        uncut,
        server_task,
    } = cuttable_link(&server);
    let offers = ["v4.channel.k8s.io"];
    let upgraded = upgrade::connect(near, &post(&url), &offers, Limits::default(), &runtime())
        .await
        .expect("a switch");
    let (session, connection) = upgrade::client_builder().handshake(upgraded.into_io(), runtime());
    connection.spawn();
    let mut streams = Vec::new();
    for kind in ["error", "stdin", "stdout", "stderr"] {
        let headers = HeaderBlock::from_iter([("streamtype", kind)]);
        let stream = session.open(headers, OpenOptions::default()).await;
        let mut channel = Channel::new(stream.expect("a stream"));
        channel.reply().await.expect("a response");
        streams.push(channel);
    }
    drop(uncut);
    tokio::time::sleep(IDLE_TIMEOUT - 10 * SECOND).await;
    let running_count = &server.handler().running_count;
    assert_eq!(running_count.load(Ordering::SeqCst), 1);
    let result = tokio::time::timeout(60 * SECOND, server_task).await;
    result.expect("an end").expect("no panic");
    nothing_runs(&server).await;
    drop((streams, session));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_command_continues_while_its_client_pings() {
    let server = fake_runtime(Config::default());
    let url = server.exec_url(exec(&["wait"], PIPES)).expect("a URL");
    let CuttableLink { near, uncut, .. } = cuttable_link(&server);
    let mut options = Options::default();
    options.ping_interval = Some(600 * SECOND);
    let process = client::exec(near, &post(&url), PIPES, options, runtime())
        .await
        .expect("a process");
    let waiting = tokio::time::timeout(3 * IDLE_TIMEOUT, process.wait()).await;
    waiting.expect_err("the process does not end");
    // `wait` was dropped, and its session with it.
    nothing_runs(&server).await;
    drop(uncut);
}
