//! A runtime that runs nothing but knows a few commands, a server of it, and ways to reach it.

pub(crate) mod kubernetes;
pub(crate) mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use sha2::{Digest, Sha256};
use spdy::runtime::{BoxFuture, Runtime};
use spdy::{Instant, SharedRuntime};
use spdy_cri::{
    AttachRequest, Config, Connection, ExecRequest, ExitCode, Handler, HandlerError, Output,
    PortForwardRequest, StartError, StreamOptions, StreamingServer, Streams,
};
use spdy_testkit::closed_port::ClosedPort;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpListener, TcpStream};

/// Tokio's time, which a test may stop: then hours pass at once.
pub(crate) struct TestTime(tokio::time::Instant);

/// The runtime of a test.
pub(crate) fn runtime() -> SharedRuntime {
    SharedRuntime::new(TestTime(tokio::time::Instant::now()))
}

impl Runtime for TestTime {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep_until(
            self.0 + (deadline - Instant::ZERO),
        ))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}

/// A runtime with a few commands: `cat`, `fail N`, `both`, `size N` (that many sizes of the terminal),
/// `bytes N`, `wait` (until the client is gone), `pause N` (seconds, and then `cat`), `clock N` (a line each half minute for
/// so many, and reads nothing), `spill N` (as `bytes`, and reads meanwhile), `deaf` (drops stdin, answers later), `start NAME` (which does not
/// exist).
#[derive(Default)]
pub(crate) struct FakeRuntime {
    /// Calls that have begun and neither returned nor were dropped.
    pub(crate) running_count: Arc<AtomicUsize>,
    /// Calls that have begun.
    pub(crate) started_count: AtomicUsize,
}

/// Counts a call while it lives.
struct RunningGuard(Arc<AtomicUsize>);

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeRuntime {
    fn begin(&self) -> RunningGuard {
        self.started_count.fetch_add(1, Ordering::SeqCst);
        self.running_count.fetch_add(1, Ordering::SeqCst);
        RunningGuard(self.running_count.clone())
    }
}

fn number(command: &[String]) -> Result<usize, HandlerError> {
    Ok(command.get(1).ok_or("expected a number")?.parse()?)
}

async fn cat(streams: Streams) -> Result<(), HandlerError> {
    let mut stdin = streams.stdin.ok_or("no stdin")?;
    let mut stdout = streams.stdout.ok_or("no stdout")?;
    while let Some(bytes) = stdin.receive().await {
        stdout.send(bytes?).await?;
    }
    Ok(())
}

async fn write_text(output: &mut Option<Output>, text: String) -> Result<(), HandlerError> {
    let output = output.as_mut().ok_or("no such stream")?;
    Ok(output.send(text.into()).await?)
}

impl Handler for FakeRuntime {
    async fn exec(
        &self,
        request: ExecRequest,
        mut streams: Streams,
    ) -> Result<ExitCode, HandlerError> {
        let _guard = self.begin();
        let command = request.command;
        match command[0].as_str() {
            "cat" => cat(streams).await?,
            "fail" => {
                write_text(&mut streams.stderr, "failing as asked\n".to_owned()).await?;
                return Ok(ExitCode(number(&command)?.try_into()?));
            }
            "both" => {
                for line in 0..10 {
                    write_text(&mut streams.stdout, format!("out {line}\n")).await?;
                    write_text(&mut streams.stderr, format!("err {line}\n")).await?;
                }
            }
            "size" => {
                let mut resize = streams.resize.take().ok_or("no resize stream")?;
                for _ in 0..number(&command)? {
                    let size = resize.next().await.ok_or("no more sizes")?;
                    let text = format!("{}x{}\n", size.width, size.height);
                    write_text(&mut streams.stdout, text).await?;
                }
            }
            "bytes" => {
                let mut stdout = streams.stdout.take().ok_or("no stdout")?;
                stdout.write_all(&pattern(number(&command)?, 0)).await?;
            }
            "wait" => std::future::pending().await,
            "pause" => {
                tokio::time::sleep(Duration::from_secs(number(&command)? as u64)).await;
                cat(streams).await?;
            }
            "clock" => {
                for minute in 0..number(&command)? {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    write_text(&mut streams.stdout, format!("{minute:099}\n")).await?;
                }
            }
            "spill" => {
                let mut stdin = streams.stdin.take().ok_or("no stdin")?;
                let mut stdout = streams.stdout.take().ok_or("no stdout")?;
                let mut stderr = streams.stderr.take().ok_or("no stderr")?;
                let spilt = pattern(number(&command)?, 0);
                let writing = async {
                    stdout.write_all(&spilt).await?;
                    stdout.shutdown().await
                };
                let reading = tokio::io::copy(&mut stdin, &mut stderr);
                tokio::try_join!(writing, reading)?;
            }
            "deaf" => {
                drop(streams.stdin.take());
                let mut resize = streams.resize.take().ok_or("no resize stream")?;
                resize.next().await.ok_or("no size")?;
                write_text(&mut streams.stdout, "I heard the bell\n".to_owned()).await?;
            }
            "early" => {
                // Reads a little of stdin and ends, as `head -c` does.
                let mut stdin = streams.stdin.take().ok_or("no stdin")?;
                let mut start = vec![0; number(&command)?];
                stdin.read_exact(&mut start).await?;
                let mut stdout = streams.stdout.take().ok_or("no stdout")?;
                stdout.send(start.into()).await?;
            }
            "start" => {
                // A program that does not exist.
                let error = std::io::ErrorKind::NotFound.into();
                return Err(StartError::new(&command[1], error).into());
            }
            other => return Err(format!("no command {other:?}").into()),
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn attach(&self, request: AttachRequest, streams: Streams) -> Result<(), HandlerError> {
        let _guard = self.begin();
        if request.container != "c1" {
            return Err(format!("no container {:?}", request.container).into());
        }
        cat(streams).await
    }

    async fn port_forward(
        &self,
        _sandbox: String,
        port: u16,
        mut connection: Connection,
    ) -> Result<(), HandlerError> {
        let _guard = self.begin();
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
        tokio::io::copy_bidirectional(&mut connection, &mut socket).await?;
        Ok(())
    }
}

/// A server of the fake runtime, reached by pipes.
pub(crate) fn fake_runtime(config: Config) -> StreamingServer<FakeRuntime> {
    StreamingServer::new(
        FakeRuntime::default(),
        "http://runtime:1234",
        config,
        runtime(),
    )
    .expect("a base URL")
}

/// A connection to `server`.
pub(crate) fn dial(server: &StreamingServer<FakeRuntime>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server = server.clone();
    tokio::spawn(async move { server.serve_connection(far).await });
    near
}

/// The fake runtime on a port of this machine; ends with the test's runtime.
pub(crate) async fn listening(config: Config) -> StreamingServer<FakeRuntime> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let server =
        StreamingServer::new(FakeRuntime::default(), &base, config, runtime()).expect("a base URL");
    let task_server = server.clone();
    tokio::spawn(async move { task_server.serve(listener).await });
    server
}

/// A TCP connection to the host in `url`.
pub(crate) async fn connect(url: &str) -> TcpStream {
    let address = url["http://".len()..].split('/').next().expect("a host");
    let socket = TcpStream::connect(address).await.expect("a connection");
    socket.set_nodelay(true).expect("a socket");
    socket
}

/// A port that echoes what it receives.
pub(crate) async fn echo_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = socket.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    port
}

/// A port without a listener.
pub(crate) fn dead_port() -> u16 {
    ClosedPort::leak().port()
}

pub(crate) const PIPES: StreamOptions = StreamOptions {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

pub(crate) const TERMINAL: StreamOptions = StreamOptions {
    stdin: true,
    stdout: true,
    stderr: false,
    tty: true,
};

/// A port-forward to `ports`, or to any.
pub(crate) fn forward_to(ports: &[u16]) -> PortForwardRequest {
    PortForwardRequest {
        sandbox: "p1".to_owned(),
        ports: ports.to_vec(),
    }
}

pub(crate) fn exec(command: &[&str], stream_options: StreamOptions) -> ExecRequest {
    ExecRequest {
        container: "c1".to_owned(),
        command: command.iter().map(|&part| part.to_owned()).collect(),
        stream_options,
    }
}

pub(crate) fn attach() -> AttachRequest {
    AttachRequest {
        container: "c1".to_owned(),
        stream_options: PIPES,
    }
}

pub(crate) fn post(url: &str) -> Request<()> {
    Request::post(url).body(()).expect("a request")
}

/// Waits until `done` returns true, for at most 20 s of real time.
async fn until(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Duration::from_secs(20);
    let start_time = std::time::Instant::now();
    while !done() {
        assert!(start_time.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::task::yield_now().await;
    }
}

/// Waits until one call has begun.
pub(crate) async fn one_call_begins(server: &StreamingServer<FakeRuntime>) {
    let started_count = &server.handler().started_count;
    until("one call has begun", || {
        started_count.load(Ordering::SeqCst) == 1
    })
    .await;
}

/// Waits until every call has ended.
pub(crate) async fn nothing_runs(server: &StreamingServer<FakeRuntime>) {
    let running_count = &server.handler().running_count;
    until("every call has ended", || {
        running_count.load(Ordering::SeqCst) == 0
    })
    .await;
}

/// `length` bytes that differ from place to place, the same in every driver.
pub(crate) fn pattern(length: usize, seed: usize) -> Bytes {
    (0..length)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16) ^ seed) as u8)
        .collect()
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
