//! Slow readers of many large resources: what is held for them is within the configured limits, each gets every byte, and others are served
//! at the same time. In virtual time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::cache::purge::PurgeRequest;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::telemetry::counters::CounterFamily;
use spdy_proxy::upstream::client::Upstream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinSet;

use crate::support::paused_time::PausedTime;
use crate::support::{self, get};

/// Bytes of each thing.
const LEN: usize = 1 << 20;
const MEMORY_MIB: usize = 8;
const IN_FLIGHT_MIB: usize = 4;
/// What one answer may hold beside: 64 KiB of its own, 64 KiB in the pipe from its origin, and a piece in each task that passes it on.
const OF_EACH: usize = 256 * 1024;
/// Delay between two pieces of a slow reader.
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes of one thing, of which none is like the next.
fn thing(number: usize) -> Vec<u8> {
    (0..LEN)
        .map(|at| (number * 7 + at * 31 + at / 256) as u8)
        .collect()
}

/// An origin of things, `/number`; counts what it has sent of them.
#[derive(Clone, Default)]
struct Things {
    sent_bytes: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<usize>>>,
}

impl Things {
    async fn serve(self, mut io: DuplexStream) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(io.read_u8().await?);
        }
        let head = String::from_utf8(head).expect("ASCII");
        let target = head.split(' ').nth(1).expect("a target");
        let number = target.trim_start_matches('/').parse().expect("a number");
        self.requests.lock().unwrap().push(number);
        let fields = "Content-Type: application/octet-stream\r\nCache-Control: max-age=600";
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {LEN}\r\n{fields}\r\n\r\n"
        );
        io.write_all(head.as_bytes()).await?;
        for piece in thing(number).chunks(16 * 1024) {
            io.write_all(piece).await?;
            self.sent_bytes.fetch_add(piece.len(), Ordering::Relaxed);
        }
        io.shutdown().await
    }

    fn times(&self, number: usize) -> usize {
        let requests = self.requests.lock().unwrap();
        requests
            .iter()
            .filter(|requests| **requests == number)
            .count()
    }
}

impl Network for Things {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        // An aborted reader is an expected failure.
        let origin = self.clone();
        tokio::spawn(async move { drop(origin.serve(far).await) });
        Box::pin(std::future::ready(Ok(Box::new(near) as BoxIo)))
    }
}

/// An accelerator before `origin`, with little memory.
fn accelerator(origin: &Things) -> Arc<Proxy> {
    let text = format!(
        "[cache]\nmemory_mib = {MEMORY_MIB}\nin_flight_mib = {IN_FLIGHT_MIB}\nobject_mib = 2\nmisses_per_second = 0\n\
         [upstream]\nconnections = 200\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n"
    );
    let config = Config::parse(&text).expect("a valid value");
    let sites = Sites::compile(&config, &support::keys()).expect("valid sites");
    let network: SharedNetwork = Arc::new(origin.clone());
    let runtime = SharedRuntime::new(PausedTime::start());
    let guarded = network.clone();
    let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, &runtime);
    let (cache, learn) = (&config.cache, &config.learn);
    Proxy::new(sites, upstream, cache, learn, runtime, WallClock::System)
}

/// The buffered bytes are within their limits, by the accelerator's own counters.
fn assert_within_limits(proxy: &Proxy) {
    let (_, stored, _) = proxy.cache.usage();
    assert!(
        stored <= (MEMORY_MIB << 20) as u64,
        "{stored} bytes are stored"
    );
    let in_flight = proxy.cache.body_memory().bytes();
    assert!(in_flight <= IN_FLIGHT_MIB << 20, "{in_flight} bytes come");
}

/// Reads a resource piece by piece, with a pause after each, and returns `Cache-Status`. Calls `on_piece` for each piece.
async fn slowly(proxy: Arc<Proxy>, number: usize, on_piece: impl Fn(usize)) -> String {
    let request = Request::get(format!("/{number}")).header("host", "www.site.test");
    let request = request.body(Body::empty()).expect("a request");
    let (head, mut body) = proxy.answer(request, None).await.into_parts();
    let mut received = Vec::with_capacity(LEN);
    while let Some(frame) = body.frame().await {
        let piece = frame
            .expect("the body is complete")
            .into_data()
            .expect("the frame is data");
        received.extend_from_slice(&piece);
        on_piece(piece.len());
        assert_within_limits(&proxy);
        tokio::time::sleep(PAUSE).await;
    }
    assert!(received == thing(number), "/{number} is another");
    let status = head
        .headers
        .get("cache-status")
        .expect("every response has the field");
    status.to_str().expect("ASCII").to_owned()
}

/// All of a thing at once.
async fn at_once(proxy: &Arc<Proxy>, number: usize) {
    let response = get(proxy, &format!("/{number}"), &[]).await;
    assert!(
        response.body.as_deref() == Ok(&thing(number)[..]),
        "/{number} is another"
    );
    assert_within_limits(proxy);
}

#[tokio::test(start_paused = true)]
async fn hundred_slow_readers_stay_within_limits() {
    const READERS: usize = 100;
    let origin = Things::default();
    let proxy = accelerator(&origin);
    let read_bytes = Arc::<AtomicUsize>::default();
    let max_in_between = Arc::<AtomicUsize>::default();
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        let (sent_bytes, read_bytes, max_in_between) = (
            origin.sent_bytes.clone(),
            read_bytes.clone(),
            max_in_between.clone(),
        );
        readers.spawn(slowly(proxy.clone(), number, move |len| {
            let read_bytes = read_bytes.fetch_add(len, Ordering::Relaxed) + len;
            let in_between = sent_bytes.load(Ordering::Relaxed) - read_bytes;
            max_in_between.fetch_max(in_between, Ordering::Relaxed);
        }));
    }
    // All of them have begun.
    tokio::time::sleep(3 * PAUSE).await;
    for number in [READERS, READERS + 1] {
        at_once(&proxy, number).await;
    }
    let mut unstored = 0;
    while let Some(status) = readers.join_next().await {
        let status = status.expect("no panic");
        unstored += usize::from(status.contains("detail=in-flight-limit"));
    }
    let max_in_between = max_in_between.load(Ordering::Relaxed);
    let limit = ((MEMORY_MIB + IN_FLIGHT_MIB) << 20) + READERS * OF_EACH;
    assert!(
        max_in_between <= limit,
        "{max_in_between} bytes were between origin and readers, at most {limit}"
    );
    assert!(max_in_between < READERS * LEN / 2, "of all values");
    assert!(
        unstored > READERS / 2,
        "{unstored} were told that it is not kept"
    );
    let limits = proxy.telemetry.counters.read(CounterFamily::Limits);
    assert!(
        limits[0].0 == "in_flight_mib" && limits[0].1 >= unstored as u64,
        "{limits:?}"
    );

    // When no reader holds anything, responses are stored as usual.
    assert_eq!(proxy.cache.body_memory().bytes(), 0);
    for _ in 0..2 {
        at_once(&proxy, READERS + 2).await;
    }
    assert_eq!(origin.times(READERS + 2), 1);
}

#[tokio::test(start_paused = true)]
async fn bodies_held_by_slow_readers_count_after_eviction() {
    const READERS: usize = 6;
    let origin = Things::default();
    let proxy = accelerator(&origin);
    for number in 0..READERS {
        at_once(&proxy, number).await;
    }
    let mut readers = JoinSet::new();
    for number in 0..READERS {
        readers.spawn(slowly(proxy.clone(), number, |_| {}));
    }
    tokio::time::sleep(3 * PAUSE).await;
    let all = PurgeRequest {
        site: Some("www.site.test".to_owned()),
        ..PurgeRequest::default()
    };
    proxy.purge(&all).expect("the purge is valid");
    let (_, bytes_in_use, objects) = proxy.cache.usage();
    assert_eq!(objects, 0);
    assert!(
        bytes_in_use >= (READERS * LEN) as u64,
        "{bytes_in_use} bytes are read yet"
    );
    // There is room for one more thing beside those that are gone, and yet read.
    for _ in 0..2 {
        for number in 10..13 {
            at_once(&proxy, number).await;
        }
    }
    let requests: usize = (10..13).map(|number| origin.times(number)).sum();
    assert!(requests > 3, "all three were stored");
    while let Some(status) = readers.join_next().await {
        let status = status.expect("no panic");
        assert!(status.contains("hit"), "{status}");
    }
    let (_, bytes_in_use, _) = proxy.cache.usage();
    assert!(
        bytes_in_use < (2 * LEN) as u64,
        "{bytes_in_use} bytes held without a reader"
    );
    for _ in 0..2 {
        for number in 20..23 {
            at_once(&proxy, number).await;
        }
    }
    let requests: Vec<usize> = (20..23).map(|number| origin.times(number)).collect();
    assert_eq!(requests, [1, 1, 1]);
}
