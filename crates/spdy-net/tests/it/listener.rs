//! A listener that stops: it serves the connections that it has accepted, and no others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use spdy_net::admission::{Admission, AdmissionLimits, Conduct};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_net::listen::{ListenOptions, Listener};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// A listener with one place, which sends a word to each client once `may` has a permit.
struct TestListener {
    address: SocketAddr,
    may: Arc<Semaphore>,
    hits: LimitHits,
    stop: Latch,
    cut_off: Latch,
    running: tokio::task::JoinHandle<()>,
}

impl TestListener {
    fn start(drain_timeout: Duration) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(here).expect("loopback has a free port");
        let (address, stop) = (listener.address(), Latch::new());
        let (may, hits) = (Arc::new(Semaphore::new(0)), LimitHits::default());
        let limits = AdmissionLimits {
            connections: 1,
            ..AdmissionLimits::default()
        };
        let cut_off = Latch::new();
        let options = ListenOptions {
            drain_timed_out: cut_off.clone(),
            admission: Admission::new(limits, hits.clone()),
            drain_timeout,
            ..ListenOptions::default()
        };
        let allowed = may.clone();
        let serve = move |mut io: spdy_net::network::BoxIo, _, _| {
            let allowed = allowed.clone();
            async move {
                allowed.acquire().await.expect("it is open").forget();
                let _ = io.write_all(b"hello").await;
                Conduct::Fair
            }
        };
        let running = tokio::spawn(listener.run(options, stop.clone(), serve));
        Self {
            address,
            may,
            hits,
            stop,
            cut_off,
            running,
        }
    }

    /// One that is served, and one that waits for its place.
    async fn two(&self) -> (TcpStream, TcpStream) {
        let connect = || TcpStream::connect(self.address);
        let first = connect().await.expect("it listens");
        let second = connect().await.expect("it listens");
        while self.hits.of(ConnectionLimit::MaxConnections) == 0 {
            tokio::task::yield_now().await;
        }
        (first, second)
    }
}

async fn heard(mut io: TcpStream) -> String {
    let mut heard = String::new();
    // One that is dropped may be reset.
    let _ = io.read_to_string(&mut heard).await;
    heard
}

#[tokio::test]
async fn a_waiting_connection_is_served_after_the_stop() {
    let scene = TestListener::start(Duration::from_secs(60));
    let (first, second) = scene.two().await;
    scene.stop.set();
    scene.may.add_permits(2);
    assert_eq!(heard(first).await, "hello");
    assert_eq!(heard(second).await, "hello");
    scene.running.await.expect("no panic");
    let late = TcpStream::connect(scene.address).await;
    assert!(late.is_err(), "the listener accepts no more connections");
    assert!(!scene.cut_off.is_set());
}

#[tokio::test]
async fn a_waiting_connection_is_dropped_after_the_drain_timeout() {
    let scene = TestListener::start(Duration::from_millis(1));
    let (first, second) = scene.two().await;
    scene.stop.set();
    scene.running.await.expect("no panic");
    assert!(scene.cut_off.is_set());
    assert_eq!(heard(first).await, "");
    assert_eq!(heard(second).await, "");
}
