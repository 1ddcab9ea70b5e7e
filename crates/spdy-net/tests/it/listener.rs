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
    listener_task: tokio::task::JoinHandle<()>,
}

impl TestListener {
    fn start(drain_timeout: Duration) -> Self {
        let bind_address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(bind_address).expect("loopback has a free port");
        let (address, stop) = (listener.address(), Latch::new());
        let (may, hits) = (Arc::new(Semaphore::new(0)), LimitHits::default());
        let mut limits = AdmissionLimits::default();
        limits.connections = 1;
        let cut_off = Latch::new();
        let mut options = ListenOptions::default();
        options.drain_timed_out = cut_off.clone();
        options.admission = Admission::new(limits, hits.clone());
        options.drain_timeout = drain_timeout;
        let allowed = may.clone();
        let serve = move |mut io: spdy_net::network::BoxIo, _, _| {
            let allowed = allowed.clone();
            async move {
                allowed.acquire().await.expect("it is open").forget();
                let _ = io.write_all(b"hello").await;
                Conduct::Fair
            }
        };
        let listener_task = tokio::spawn(listener.run(options, stop.clone(), serve));
        Self {
            address,
            may,
            hits,
            stop,
            cut_off,
            listener_task,
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

async fn read_text(mut io: TcpStream) -> String {
    let mut text = String::new();
    // One that is dropped may be reset.
    let _ = io.read_to_string(&mut text).await;
    text
}

#[tokio::test]
async fn a_waiting_connection_is_served_after_the_stop() {
    let listener = TestListener::start(Duration::from_secs(60));
    let (first, second) = listener.two().await;
    listener.stop.set();
    listener.may.add_permits(2);
    assert_eq!(read_text(first).await, "hello");
    assert_eq!(read_text(second).await, "hello");
    listener.listener_task.await.expect("no panic");
    let refused = TcpStream::connect(listener.address).await;
    assert!(refused.is_err(), "the listener accepts no more connections");
    assert!(!listener.cut_off.is_set());
}

#[tokio::test]
async fn a_waiting_connection_is_dropped_after_the_drain_timeout() {
    let listener = TestListener::start(Duration::from_millis(1));
    let (first, second) = listener.two().await;
    listener.stop.set();
    listener.listener_task.await.expect("no panic");
    assert!(listener.cut_off.is_set());
    assert_eq!(read_text(first).await, "");
    assert_eq!(read_text(second).await, "");
}
