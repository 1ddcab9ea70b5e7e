//! Requests by the thousand, among resets, cut connections and readers that stand still: no byte lost or
//! wrong, and nothing left over. `it/robustness/chaos.rs` tests whether cancelled streams leave credit behind; here
//! every byte is checked, on both sides, and connections break.
//!
//! ```text
//!   client: asks, uploads, reads on, pauses, leaves       server: checks the upload, answers, breaks off
//!                     |  rough: late now and then, cut after some bytes  |
//!                     `--------------- loopback, or a wire --------------'
//! ```
//!
//! A request may fail only if something that was done to it explains it. The whole of it, 100,000 requests
//! over sockets, is `cargo test --release -p spdy --test soak -- --ignored --nocapture`; `SOAK_SEED` and
//! `SOAK_REQUESTS` choose another. In debug some thousand run, in sockets and in virtual time.
//!
//! A test program of its own, because it reads the memory use of its process, and because `make bench` runs it alone.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::runtime::BoxFuture;
use spdy::{
    Body, Error, Metrics, Priority, SharedRuntime, TokioRuntime, Version, client, forward_io,
    server,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use virtual_world::{VirtualTime, World, wire};

#[path = "it/support/virtual_world.rs"]
mod virtual_world;

/// A linear congruential generator (Knuth's constants), so that a seed determines the whole run.
#[derive(Clone, Copy)]
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn fork(&mut self) -> Self {
        Self(self.below(u64::from(u32::MAX)))
    }

    /// Most bodies are small, some do not fit a window.
    fn length(&mut self) -> u64 {
        match self.below(20) {
            0..12 => self.below(2_000),
            12..19 => self.below(30_000),
            _ => self.below(200_000),
        }
    }
}

/// The byte at a place of a body.
fn byte(seed: u64, at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)).wrapping_add(seed) as u8
}

fn piece(seed: u64, at: u64, length: u64) -> Bytes {
    (at..at + length).map(|at| byte(seed, at)).collect()
}

/// Where a body is not what it should be.
fn first_wrong(seed: u64, at: u64, data: &[u8]) -> Option<u64> {
    (at..)
        .zip(data)
        .find(|(at, actual)| **actual != byte(seed, *at))
        .map(|(at, _)| at)
}

/// A body in pieces that come late, and break off at the given place.
fn body(
    runtime: &SharedRuntime,
    mut random: TestRandom,
    seed: u64,
    length: u64,
    breaks: bool,
) -> Body {
    if !breaks && random.one_in(2) {
        return Body::full(piece(seed, 0, length));
    }
    let ends = if breaks {
        random.below(length + 1)
    } else {
        length
    };
    let runtime = runtime.clone();
    Body::from_stream(futures_util::stream::unfold(0, move |at| {
        let next = (1 + random.below(20_000)).min(ends.saturating_sub(at));
        let is_late = random.one_in(8);
        let runtime = runtime.clone();
        async move {
            if is_late {
                pause(&runtime, 3).await;
            }
            match at {
                u64::MAX => None,
                _ if at < ends => Some((Ok(piece(seed, at, next)), at + next)),
                _ if breaks => Some((Err(io::Error::other("broken off")), u64::MAX)),
                _ => None,
            }
        }
    }))
}

async fn pause(runtime: &SharedRuntime, millis: u64) {
    let until = runtime.now() + Duration::from_millis(millis);
    runtime.sleep_until(until).await;
}

/// A transport that is late now and then, and is cut after some bytes.
struct Rough<T> {
    io: T,
    runtime: SharedRuntime,
    random: TestRandom,
    /// Bytes until it is cut, both ways together.
    bytes_until_cut: u64,
    /// Set when it was, for both ends.
    cut: Arc<AtomicBool>,
    delay: Option<BoxFuture<()>>,
}

impl<T> Rough<T> {
    fn poll_rough(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.bytes_until_cut == 0 {
            self.cut.store(true, Ordering::Relaxed);
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if let Some(delay) = &mut self.delay {
            ready!(delay.as_mut().poll(cx));
            self.delay = None;
        } else if self.random.one_in(200) {
            let until = self.runtime.now() + Duration::from_millis(self.random.below(20));
            self.delay = Some(self.runtime.sleep_until(until));
            return self.poll_rough(cx);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rough<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_rough(cx))?;
        let limit = usize::try_from(self.bytes_until_cut).unwrap_or(usize::MAX);
        let mut part = into.take(limit);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut part))?;
        let len = part.filled().len();
        // `part` was the unfilled rest of `into`, initialised as far as it is filled
        let data = part.filled().to_vec();
        into.put_slice(&data);
        self.bytes_until_cut -= len as u64;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rough<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_rough(cx))?;
        let limit = usize::try_from(self.bytes_until_cut)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let len = ready!(Pin::new(&mut self.io).poll_write(cx, &bytes[..limit]))?;
        self.bytes_until_cut -= len as u64;
        Poll::Ready(Ok(len))
    }

    forward_io!(poll_flush, poll_shutdown => self.io);
}

/// What became of the requests.
#[derive(Default)]
struct Tally {
    started: AtomicU64,
    completed: AtomicU64,
    cancelled: AtomicU64,
    broken: AtomicU64,
    cut: AtomicU64,
    closing: AtomicU64,
    sessions: AtomicU64,
    /// Bytes that were looked at and right.
    correct_bytes: AtomicU64,
    /// What nothing explains.
    faults: Mutex<Vec<String>>,
}

impl Tally {
    fn fault(&self, what: String) {
        self.faults
            .lock()
            .expect("no code panics while holding this lock")
            .push(what);
    }

    fn count(counter: &AtomicU64) -> u64 {
        counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} requests on {} sessions: {} complete, {} cancelled by the client, {} broken off, {} cut, {} not started; {} bytes correct",
            of(&self.started),
            of(&self.sessions),
            of(&self.completed),
            of(&self.cancelled),
            of(&self.broken),
            of(&self.cut),
            of(&self.closing),
            of(&self.correct_bytes),
        )
    }
}

/// A request as its URL describes it: both sides know what should come.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    up: u64,
    down: u64,
    client_breaks: bool,
    server_breaks: bool,
    /// The server does not read the upload.
    ignores: bool,
    /// The answer begins before the upload has ended.
    responds_early: bool,
    /// The byte of the answer at which the client leaves.
    leaves: Option<u64>,
}

impl Plan {
    fn new(random: &mut TestRandom) -> Self {
        let down = random.length();
        Self {
            seed: random.below(1 << 20),
            up: if random.one_in(2) { 0 } else { random.length() },
            down,
            client_breaks: random.one_in(25),
            server_breaks: random.one_in(25),
            ignores: random.one_in(10),
            responds_early: random.one_in(2),
            leaves: random.one_in(8).then(|| random.below(down + 1)),
        }
    }

    fn url(&self) -> String {
        let bits = [self.server_breaks, self.ignores, self.responds_early].map(u8::from);
        let [breaks, ignores, responds_early] = bits;
        let (seed, up, down) = (self.seed, self.up, self.down);
        format!("http://a.example/{seed}/{up}/{down}/{breaks}/{ignores}/{responds_early}")
    }

    fn read(path: &str) -> Option<Self> {
        let parts: Vec<u64> = path
            .split('/')
            .skip(1)
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        let [seed, up, down, breaks, ignores, responds_early] = parts[..] else {
            return None;
        };
        Some(Self {
            seed,
            up,
            down,
            client_breaks: false,
            server_breaks: breaks == 1,
            ignores: ignores == 1,
            responds_early: responds_early == 1,
            leaves: None,
        })
    }

    /// The answer is of other bytes than the question.
    fn response_seed(&self) -> u64 {
        self.seed + 77
    }
}

/// Reads a body to its end, or to where it is left; every byte is looked at.
async fn read(
    mut body: Body,
    seed: u64,
    leaves: Option<u64>,
    runtime: &SharedRuntime,
    random: &mut TestRandom,
    tally: &Tally,
) -> Result<(u64, bool), Option<Error>> {
    let mut at = 0;
    loop {
        if leaves.is_some_and(|leaves| at >= leaves) {
            return Ok((at, false));
        }
        if random.one_in(40) {
            pause(runtime, random.below(30)).await; // a reader that stands still
        }
        match body.frame().await {
            None => return Ok((at, true)),
            Some(Err(error)) => return Err(error.downcast::<Error>().ok().map(|error| *error)),
            Some(Ok(frame)) => {
                let data = frame.into_data().unwrap_or_default();
                if let Some(position) = first_wrong(seed, at, &data) {
                    tally.fault(format!("byte {position} of a body is wrong"));
                }
                at += data.len() as u64;
                tally
                    .correct_bytes
                    .fetch_add(data.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

async fn respond(
    request: Request<Body>,
    runtime: SharedRuntime,
    mut random: TestRandom,
    tally: Arc<Tally>,
) -> Response<Body> {
    let Some(plan) = Plan::read(request.uri().path()) else {
        tally.fault(format!("no plan: {}", request.uri()));
        return Response::new(Body::empty());
    };
    let response_body = body(
        &runtime,
        random.fork(),
        plan.response_seed(),
        plan.down,
        plan.server_breaks,
    );
    let upload = request.into_body();
    if plan.ignores {
        return Response::new(response_body);
    }
    let (reading, mut of_reading) = (runtime.clone(), random.fork());
    let check = async move {
        let result = read(upload, plan.seed, None, &reading, &mut of_reading, &tally).await;
        // One that ends by FIN is whole; one that breaks is the client's affair.
        if let Ok((length, _)) = result
            && length != plan.up
        {
            tally.fault(format!("unexpected upload of {length} bytes: {plan:?}"));
        }
    };
    match plan.responds_early {
        true => runtime.spawn(Box::pin(check)),
        false => check.await,
    }
    Response::new(response_body)
}

/// One exchange, of which every outcome must have its reason.
async fn run_request(
    session: &client::Session,
    runtime: &SharedRuntime,
    mut random: TestRandom,
    cut: &AtomicBool,
    tally: &Tally,
) {
    let plan = Plan::new(&mut random);
    let upload = match plan.up {
        0 if !plan.client_breaks => Body::empty(),
        up => body(runtime, random.fork(), plan.seed, up, plan.client_breaks),
    };
    let request = Request::post(plan.url()).body(upload).expect("valid");
    let priority = Priority::new(random.below(8) as u8);
    let result = match session.request(request, priority).await {
        Err(error) => Err(Some(error)),
        Ok(response) => {
            let (body, seed) = (response.into_body(), plan.response_seed());
            read(body, seed, plan.leaves, runtime, &mut random, tally).await
        }
    };
    let counter = match result {
        Ok((length, true)) if length == plan.down && !plan.server_breaks => &tally.completed,
        Ok((_, false)) => &tally.cancelled,
        Err(_) if cut.load(Ordering::Relaxed) => &tally.cut,
        Err(Some(Error::Closing)) => &tally.closing,
        Err(Some(error))
            if (plan.client_breaks || plan.server_breaks) && error.reset_status().is_some() =>
        {
            &tally.broken
        }
        Err(Some(Error::Body(_))) if plan.client_breaks => &tally.broken,
        result => {
            return tally.fault(format!("{plan:?} ended with {result:?}"));
        }
    };
    Tally::count(counter);
}

/// Makes a connection: the near end, and the far one.
trait Dial: Send + Sync + 'static {
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn dial(&self) -> impl Future<Output = (Self::Io, Self::Io)> + Send;
}

struct Loopback(tokio::sync::Mutex<tokio::net::TcpListener>);

impl Dial for Loopback {
    type Io = tokio::net::TcpStream;

    async fn dial(&self) -> (Self::Io, Self::Io) {
        let listener = self.0.lock().await;
        let address = listener.local_addr().expect("the listener is bound");
        let near = tokio::net::TcpStream::connect(address);
        let (near, far) = tokio::join!(near, listener.accept());
        let (near, (far, _)) = (near.expect("loopback"), far.expect("loopback"));
        near.set_nodelay(true).expect("a socket");
        far.set_nodelay(true).expect("a socket");
        (near, far)
    }
}

struct Wire(Arc<World>);

impl Dial for Wire {
    type Io = virtual_world::End;

    async fn dial(&self) -> (Self::Io, Self::Io) {
        wire(&self.0, Duration::from_millis(5))
    }
}

/// What all sessions of a run share.
struct Run<D> {
    dial: D,
    runtime: SharedRuntime,
    metrics: Metrics,
    tally: Arc<Tally>,
    requests: u64,
}

impl<D: Dial> Run<D> {
    /// One session after the other, until all requests are made.
    async fn worker(self: Arc<Self>, mut random: TestRandom) {
        while self.tally.started.load(Ordering::Relaxed) < self.requests {
            let version = Version::ALL[random.below(3) as usize];
            self.session(version, random.fork()).await;
        }
    }

    fn rough<T>(&self, io: T, random: &mut TestRandom, cut: &Arc<AtomicBool>) -> Rough<T> {
        let bytes_until_cut = match random.one_in(8) {
            true => random.below(2_000_000),
            false => u64::MAX,
        };
        Rough {
            io,
            runtime: self.runtime.clone(),
            random: random.fork(),
            bytes_until_cut,
            cut: cut.clone(),
            delay: None,
        }
    }

    async fn session(&self, version: Version, mut random: TestRandom) {
        let (runtime, tally) = (&self.runtime, &self.tally);
        Tally::count(&tally.sessions);
        let (near, far) = self.dial.dial().await;
        let cut = Arc::<AtomicBool>::default();
        let far = self.rough(far, &mut random, &cut);
        let near = self.rough(near, &mut random, &cut);
        let service = {
            let (runtime, tally, mut random) = (runtime.clone(), tally.clone(), random.fork());
            move |request| respond(request, runtime.clone(), random.fork(), tally.clone())
        };
        let builder = server::Builder::new(version).metrics(&self.metrics);
        let server = builder.serve(far, runtime.clone(), service);
        runtime.spawn(Box::pin(server.map(drop)));
        let builder = client::Builder::new(version)
            .metrics(&self.metrics)
            .initial_window_bytes(65_536)
            .session_window_bytes(262_144);
        let (session, connection) = builder.handshake(near, runtime.clone());
        connection.spawn();
        let mut exchanges = FuturesUnordered::new();
        let (mut remaining, max_concurrent) = (20 + random.below(400), 1 + random.below(20));
        loop {
            while remaining > 0
                && (exchanges.len() as u64) < max_concurrent
                && !session.is_closing()
            {
                if Tally::count(&tally.started) > self.requests {
                    tally.started.fetch_sub(1, Ordering::Relaxed);
                    remaining = 0;
                    break;
                }
                remaining -= 1;
                exchanges.push(run_request(&session, runtime, random.fork(), &cut, tally));
            }
            if exchanges.next().await.is_none() {
                break;
            }
        }
        drop(exchanges);
        // It ends with its last stream, so that one that is left over would hold it for ever.
        session.shutdown();
        session.closed().await;
    }

    /// Whether no session and no stream is open, on either side.
    fn is_over(&self) -> bool {
        let snapshot = self.metrics.snapshot();
        [snapshot.client, snapshot.server].iter().all(|side| {
            side.streams_open == 0 && side.sessions.iter().all(|(_, sessions)| sessions.open == 0)
        })
    }

    /// Fails unless all went as it must.
    fn judge(&self, seed: u64) {
        let faults = self
            .tally
            .faults
            .lock()
            .expect("no code panics while holding this lock");
        let examples: Vec<_> = faults.iter().take(5).collect();
        assert!(
            faults.is_empty(),
            "seed {seed}: {} faults, such as {examples:#?}",
            faults.len()
        );
        let started = self.tally.started.load(Ordering::Relaxed);
        assert_eq!(started, self.requests, "seed {seed}");
        let completed = self.tally.completed.load(Ordering::Relaxed);
        assert!(completed * 2 > started, "seed {seed}: {}", self.tally);
        let limits = self.metrics.snapshot().server.stats.limits;
        assert!(limits.is_empty(), "seed {seed}: {limits}");
        assert!(self.is_over(), "seed {seed}: {:?}", self.metrics.snapshot());
    }
}

/// KiB of this process that are in memory, if the system reports it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// After so long a run hangs.
const PATIENCE: Duration = Duration::from_secs(1200);

async fn soak_sockets(requests: u64, seed: u64) -> Arc<Run<Loopback>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback");
    let run = Arc::new(Run {
        dial: Loopback(tokio::sync::Mutex::new(listener)),
        runtime: SharedRuntime::new(TokioRuntime::start()),
        metrics: Metrics::new(),
        tally: Arc::default(),
        requests,
    });
    let tasks = tokio::runtime::Handle::current().metrics();
    let tasks_before = tasks.num_alive_tasks();
    let mut random = TestRandom(seed);
    let workers: Vec<_> = (0..8)
        .map(|_| tokio::spawn(run.clone().worker(random.fork())))
        .collect();
    // A stream that is left over holds its session, and with it a worker.
    let all = futures_util::future::join_all(workers);
    let all = tokio::time::timeout(PATIENCE, all).await;
    let all = all.unwrap_or_else(|_| panic!("seed {seed}: the run hangs: {}", run.tally));
    for worker in all {
        worker.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    // Connections that were closed are read for a second more.
    for _ in 0..1000 {
        if tasks.num_alive_tasks() == tasks_before && run.is_over() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        tasks.num_alive_tasks(),
        tasks_before,
        "seed {seed}: tasks are still running"
    );
    run.judge(seed);
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_over_sockets_loses_no_byte_and_no_stream() {
    soak_sockets(3_000, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes several minutes: make bench runs it in release mode"]
#[allow(clippy::print_stdout, reason = "the test prints its measurements")]
async fn a_hundred_thousand_requests() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seed = number("SOAK_SEED").unwrap_or(1);
    let requests = number("SOAK_REQUESTS").unwrap_or(100_000);
    // The first run fills what allocators keep; the second must not hold more.
    soak_sockets(requests / 10, seed).await;
    let memory_before = resident_kib();
    let start = std::time::Instant::now();
    let run = soak_sockets(requests, seed).await;
    println!("seed {seed}: {}", run.tally);
    println!(
        "{:.1} s; resident before {memory_before:?} KiB, after {:?} KiB",
        start.elapsed().as_secs_f64(),
        resident_kib()
    );
}

#[test]
fn soak_in_virtual_time_loses_no_byte_and_no_stream() {
    for seed in 1..=3 {
        let world = Arc::<World>::default();
        let run = Arc::new(Run {
            dial: Wire(world.clone()),
            runtime: SharedRuntime::new(VirtualTime(world.clone())),
            metrics: Metrics::new(),
            tally: Arc::default(),
            requests: 600,
        });
        let mut random = TestRandom(seed);
        for _ in 0..4 {
            run.runtime
                .spawn(Box::pin(run.clone().worker(random.fork())));
        }
        world.run();
        run.judge(seed);
    }
}
