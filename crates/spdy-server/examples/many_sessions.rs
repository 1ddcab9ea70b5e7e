//! Measures what an idle session costs the server: thousands of them held open over loopback, plain and TLS.
//!
//! ```text
//! cargo run --release -p spdy-server --example many_sessions [SESSIONS]
//!
//!  parent ──┬── server process  <── sessions ──  client process
//!           ├── server process  <── sessions ──  client process      as many pairs as the limit of open files needs
//!           └── ...
//! ```
//!
//! Each session makes one request and waits; then each makes another at once, to show that it lives; then all are closed. Memory is
//! what the kernel reports as resident (VmRSS) for all server processes together, after everything is quiet. A process has one file
//! for each of its sessions, so one pair is enough where the hard limit of open files is above the number of sessions.

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
use tokio::net::TcpSocket;

const SPOKEN: [Protocol; 1] = [Protocol::Spdy(Version::V31)];
/// Bytes of the requested body.
const BODY: usize = 1024;
/// Sessions of a client process that shake hands, or send a request, at the same time.
const AT_ONCE: usize = 64;
/// Time without activity before memory is read.
const QUIET: Duration = Duration::from_secs(2);
/// Open files of a process besides those of its sessions.
const OTHER_FILES: u64 = 200;
/// Sessions from one address of the client: it has about 28,000 ports.
const SESSIONS_PER_ADDRESS: usize = 20_000;
/// The arguments that start the children.
const AS_SERVER: &str = "as-server";
const AS_CLIENT: &str = "as-client";

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let files = raise_file_limit();
    let number = |word: &str| word.parse::<usize>().context("expected a number");
    match words[..] {
        [AS_SERVER, tls] => tokio::runtime::Runtime::new()?.block_on(serve(tls == "tls")),
        [AS_CLIENT, tls, sessions, address] => {
            let client = act_as_client(tls == "tls", number(sessions)?, address.parse()?);
            tokio::runtime::Runtime::new()?.block_on(client)
        }
        [] => measure(10_000, files),
        [sessions] => measure(number(sessions)?, files),
        _ => Err(anyhow!(
            "expected at most one argument: the number of sessions"
        )),
    }
}

/// Each session is a file on both sides. Returns how many files a process may have.
fn raise_file_limit() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        println!("cannot raise the limit on open files: {error}");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The server process: prints where it listens and its certificate authority, and serves until its stdin ends.
async fn serve(tls: bool) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("index.html"), vec![b'x'; BODY])?;
    let directory = Directory::read(folder.path(), &DirectoryLimits::default())?;
    let site = Arc::new(Site::of_directory(directory));
    let ca = LocalCa::generate(KeyKind::EcdsaP256)?;
    let identity = ca.issue(&["localhost".to_owned()], &[])?;
    let mut limits = AdmissionLimits::default();
    limits.connections = 1_000_000;
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
    while next_command().await.is_some() {}
    stop.set();
    running.await?;
    Ok(())
}

/// The next line of stdin. It is read in a thread, for tokio's own stdin could not be left.
async fn next_command() -> Option<String> {
    let read = || std::io::stdin().lines().next()?.ok();
    tokio::task::spawn_blocking(read).await.ok().flatten()
}

/// The client process: does what stdin says, and prints a line when it is done.
///
/// ```text
/// stdin    PEM of the certificate authority | open | ask | close
/// stdout                                      done   done  done
/// ```
async fn act_as_client(tls: bool, sessions: usize, server: SocketAddr) -> anyhow::Result<()> {
    let mut pem = String::new();
    while !pem.contains("-----END") {
        pem += &next_command().await.context("no certificate on stdin")?;
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
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let mut opened: Vec<client::Session> = Vec::new();
    while let Some(command) = next_command().await {
        match &command[..] {
            "open" => {
                opened = stream::iter(0..sessions)
                    .map(async |number| {
                        let session = open(number, server, tls.as_ref(), &runtime).await?;
                        send_request(&session).await?;
                        anyhow::Ok(session)
                    })
                    .buffer_unordered(AT_ONCE)
                    .try_collect()
                    .await?;
            }
            "ask" => {
                let requests = stream::iter(&opened)
                    .map(send_request)
                    .buffer_unordered(AT_ONCE);
                requests.try_collect::<()>().await?;
            }
            "close" => {
                opened.iter().for_each(client::Session::shutdown);
                for session in opened.drain(..) {
                    session.closed().await;
                }
            }
            other => anyhow::bail!("unknown command {other}"),
        }
        println!("done");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// Opens a session from the loopback address of its number.
async fn open(
    number: usize,
    server: SocketAddr,
    tls: Option<&ClientTls>,
    runtime: &SharedRuntime,
) -> anyhow::Result<client::Session> {
    let socket = TcpSocket::new_v4()?;
    // The first address is the default. It is not bound: the kernel needs long to find a free port then, when thousands are in use.
    let addresses_before = (number / SESSIONS_PER_ADDRESS) as u32;
    if addresses_before > 0 {
        let source = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + addresses_before);
        socket.bind(SocketAddr::from((source, 0)))?;
    }
    let socket = socket.connect(server).await?;
    socket.set_nodelay(true)?;
    let io: BoxIo = match tls {
        None => Box::new(socket),
        Some(tls) => {
            tls.with_alpn(&SPOKEN)
                .connect(Box::new(socket), "localhost")
                .await?
                .0
        }
    };
    let (session, connection) = client::Builder::new(Version::V31).handshake(io, runtime.clone());
    connection.spawn();
    Ok(session)
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

/// A process of this program, which ends when its stdin does.
struct Process {
    child: Child,
    /// Its standard output, which stays open so that it can write to it.
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("its stdout is a pipe")?;
        Ok(Self {
            child,
            stdout: BufReader::new(stdout).lines(),
        })
    }

    fn line(&mut self) -> anyhow::Result<String> {
        let line = self.stdout.next().context("a process printed nothing")?;
        Ok(line?)
    }

    fn command(&mut self, command: &str) -> anyhow::Result<()> {
        let stdin = self.child.stdin.as_mut().context("its stdin is a pipe")?;
        Ok(writeln!(stdin, "{command}")?)
    }

    /// Its resident memory, KiB.
    fn resident(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        Ok(number.context("no VmRSS in /proc")?.parse()?)
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.child.stdin.take());
        let ended = self.child.wait()?;
        ensure!(ended.success(), "a process ended with {ended}");
        Ok(())
    }
}

/// Servers and their clients, in this order.
struct Pairs {
    servers: Vec<Process>,
    clients: Vec<Process>,
}

impl Pairs {
    /// Starts as many pairs as `sessions` need, if a process may have `files`.
    fn start(sessions: usize, files: u64, tls: bool) -> anyhow::Result<Self> {
        let room = usize::try_from(files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
        let count = sessions.div_ceil(room.max(1)).max(1);
        let tls = if tls { "tls" } else { "plain" };
        let (mut servers, mut clients) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut server = Process::start(&[AS_SERVER, tls])?;
            let address = server.line()?;
            let share = sessions * (number + 1) / count - sessions * number / count;
            let mut client = Process::start(&[AS_CLIENT, tls, &share.to_string(), &address])?;
            loop {
                let pem = server.line()?;
                client.command(&pem)?;
                if pem.contains("-----END") {
                    break;
                }
            }
            servers.push(server);
            clients.push(client);
        }
        Ok(Self { servers, clients })
    }

    /// Has all clients do something; returns how long it took.
    fn run(&mut self, command: &str) -> anyhow::Result<Duration> {
        let began = Instant::now();
        for client in &mut self.clients {
            client.command(command)?;
        }
        for client in &mut self.clients {
            ensure!(client.line()? == "done");
        }
        Ok(began.elapsed())
    }

    /// Resident memory of the servers after a while, KiB.
    fn resident(&self) -> anyhow::Result<f64> {
        std::thread::sleep(QUIET);
        self.servers.iter().map(Process::resident).sum()
    }
}

fn measure(sessions: usize, files: u64) -> anyhow::Result<()> {
    println!(
        "{sessions} sessions of SPDY/3.1, one request of {BODY} bytes on each, then silence; KiB resident in the server"
    );
    println!(
        "         servers       empty    all open  a session   opened in   asked again  a session    asked in  all closed"
    );
    for tls in [false, true] {
        let mut pairs = Pairs::start(sessions, files, tls)?;
        let empty = pairs.resident()?;
        let opened_in = pairs.run("open")?;
        let open = pairs.resident()?;
        let asked_in = pairs.run("ask")?;
        let again = pairs.resident()?;
        pairs.run("close")?;
        let closed = pairs.resident()?;
        let each = |resident: f64| (resident - empty) / sessions as f64;
        println!(
            "{:8} {:7} {empty:>11.0} {open:>11.0} {:>10.1} {:>10.1}s {again:>13.0} {:>10.1} {:>10.1}s {closed:>11.0}",
            if tls { "TLS" } else { "plain" },
            pairs.servers.len(),
            each(open),
            opened_in.as_secs_f64(),
            each(again),
            asked_in.as_secs_f64(),
        );
        for process in pairs.clients.into_iter().chain(pairs.servers) {
            process.stop()?;
        }
    }
    Ok(())
}
