//! Measures what an idle session costs the server: thousands of them held open over loopback, plain and TLS.
//!
//! ```text
//! cargo run --release -p spdy-server --example many_sessions [SESSIONS]
//! ```
//!
//! The server is a second process of this program, so that its memory can be read from `/proc`. Each session makes one
//! request and waits; then each makes another, to show that it lives; then all are closed. Memory is what the kernel
//! reports as resident (VmRSS), after everything is quiet.

#![allow(clippy::print_stdout)] // it is a program: its results go there

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use futures_util::{StreamExt, TryStreamExt, stream};
use http::{Request, StatusCode};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy::{Priority, Version, client};
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa, certificates_from_pem};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, ServerTls, TlsOptions};
use spdy_server::directory::{Directory, DirectoryLimits};
use spdy_server::serve::{ServeConfig, ServerOptions, serve_connection};
use spdy_server::site::Site;

const SPOKEN: [Protocol; 1] = [Protocol::Spdy(Version::V31)];
/// Bytes of the requested body.
const BODY: usize = 1024;
/// Sessions that shake hands, or send a request, at the same time.
const AT_ONCE: usize = 64;
/// How long everything is let be before memory is read.
const QUIET: Duration = Duration::from_secs(2);
/// The argument that starts the child.
const AS_SERVER: &str = "as-server";

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    raise_file_limit();
    let tokio = tokio::runtime::Runtime::new()?;
    match words[..] {
        [AS_SERVER, tls] => tokio.block_on(serve(tls == "tls")),
        [] => tokio.block_on(measure(10_000)),
        [sessions] => tokio.block_on(measure(sessions.parse().context("expected a number")?)),
        _ => Err(anyhow!(
            "expected at most one argument: the number of sessions"
        )),
    }
}

/// Each session is a file on both sides.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        println!("cannot raise the limit on open files: {error}");
    }
}

/// The child process: prints where it listens and its certificate authority, and serves until its stdin ends.
async fn serve(tls: bool) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("index.html"), vec![b'x'; BODY])?;
    let directory = Directory::read(folder.path(), &DirectoryLimits::default())?;
    let site = Arc::new(Site::of_directory(directory));
    let ca = LocalCa::generate(KeyKind::EcdsaP256)?;
    let identity = ca.issue(&["localhost".to_owned()], &[])?;
    let mut limits = AdmissionLimits::default();
    limits.connections = 100_000;
    limits.per_address = 0;
    limits.rate = 0;
    let stop = Latch::new();
    let config = ServeConfig {
        protocols: SPOKEN.to_vec(),
        tls: match tls {
            true => Some(ServerTls::new(&identity, &SPOKEN, &TlsOptions::default())?),
            false => None,
        },
        options: {
            let mut server = ServerOptions::default();
            server.timeouts.idle_timeout = Duration::from_secs(3600);
            server
        },
        stop: stop.clone(),
        ..ServeConfig::default()
    };
    let mut options = ListenOptions::default();
    options.admission = Admission::new(limits, LimitHits::default());
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    println!("{}\n{}", listener.address(), ca.pem());
    std::io::stdout().flush()?;
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let running = tokio::spawn(listener.run(options, stop.clone(), move |io, _, _| {
        serve_connection(io, site.clone(), config.clone(), runtime.clone())
    }));
    // A thread, for tokio's own stdin could not be left.
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::read_to_string(std::io::stdin());
        let _ = end.send(());
    });
    let _ = ended.await;
    stop.set();
    running.await?;
    Ok(())
}

/// The server's process, and how to reach it.
struct Server {
    child: Child,
    /// Its standard output, which stays open so that the server can write to it.
    _stdout: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    tls: Option<ClientTls>,
}

impl Server {
    fn start(tls: bool) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([AS_SERVER, if tls { "tls" } else { "plain" }])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("its stdout is a pipe")?;
        let mut lines = BufReader::new(stdout).lines();
        let mut line = || {
            lines
                .next()
                .context("the server printed nothing")?
                .map_err(anyhow::Error::from)
        };
        let address = line()?.parse()?;
        let mut pem = String::new();
        while !pem.contains("-----END") {
            pem += &line()?;
            pem.push('\n');
        }
        let believed = certificates_from_pem(pem.as_bytes(), "the server's word")?;
        let tls = match tls {
            true => Some(ClientTls::new(
                &Trust::only(believed),
                &TlsOptions::default(),
            )?),
            false => None,
        };
        Ok(Self {
            child,
            _stdout: lines,
            address,
            tls,
        })
    }

    /// Its memory, KiB.
    async fn resident(&self) -> anyhow::Result<f64> {
        tokio::time::sleep(QUIET).await;
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.context("no VmRSS in /proc")?.parse()?)
    }

    async fn open(&self, runtime: &SharedRuntime) -> anyhow::Result<client::Session> {
        let socket = tokio::net::TcpStream::connect(self.address).await?;
        socket.set_nodelay(true)?;
        let io: BoxIo = match &self.tls {
            None => Box::new(socket),
            Some(tls) => {
                tls.with_alpn(&SPOKEN)
                    .connect(Box::new(socket), "localhost")
                    .await?
                    .0
            }
        };
        let (session, connection) =
            client::Builder::new(Version::V31).handshake(io, runtime.clone());
        connection.spawn();
        Ok(session)
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let ended = self.child.wait()?;
        ensure!(ended.success(), "the server ended with {ended}");
        Ok(())
    }
}

async fn send_request(session: &client::Session) -> anyhow::Result<()> {
    let request = Request::get("http://localhost/").body(Body::empty())?;
    let response = session.request(request, Priority::HIGHEST).await?;
    ensure!(response.status() == StatusCode::OK, "{}", response.status());
    let body = response.into_body().collect_up_to(BODY + 1).await;
    let body = body.map_err(|error| anyhow!(error))?;
    ensure!(body.len() == BODY, "{} bytes, expected {BODY}", body.len());
    Ok(())
}

async fn measure(sessions: usize) -> anyhow::Result<()> {
    println!(
        "{sessions} sessions of SPDY/3.1, one request of {BODY} bytes on each, then silence; KiB resident in the server"
    );
    println!("              empty    all open  a session   asked again  all closed   opened in");
    for tls in [false, true] {
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let server = Server::start(tls)?;
        let empty = server.resident().await?;
        let began = Instant::now();
        let opened: Vec<client::Session> = stream::iter(0..sessions)
            .map(|_| async {
                let session = server.open(&runtime).await?;
                send_request(&session).await?;
                anyhow::Ok(session)
            })
            .buffer_unordered(AT_ONCE)
            .try_collect()
            .await?;
        let took = began.elapsed();
        let open = server.resident().await?;
        let requests = stream::iter(&opened)
            .map(send_request)
            .buffer_unordered(AT_ONCE);
        requests.try_collect::<()>().await?;
        let again = server.resident().await?;
        for session in &opened {
            session.shutdown();
        }
        for session in &opened {
            session.closed().await;
        }
        drop(opened);
        let closed = server.resident().await?;
        server.stop()?;
        println!(
            "{:5} {empty:>12.0} {open:>11.0} {:>10.1} {again:>13.0} {closed:>11.0} {:>10.1}s",
            if tls { "TLS" } else { "plain" },
            (open - empty) / sessions as f64,
            took.as_secs_f64(),
        );
    }
    Ok(())
}
