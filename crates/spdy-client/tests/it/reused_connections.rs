//! Connections that are used again: their end is detected in time, and a request that meets it is retried or fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, Runtime, SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_client::error::Error;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{World, get, numbers, read, runtime};

const HTTP: &str = "10.0.0.1:80";

fn over_http1() -> Config {
    let mut config = Config::default();
    config.protocols = vec![Protocol::Http1];
    config
}

/// A server whose connections the test ends: each is in the list once the server has sent `response` on it.
fn serve_until_hung_up(world: &World, response: &'static str) -> Arc<Mutex<Vec<BoxIo>>> {
    let connections: Arc<Mutex<Vec<BoxIo>>> = Arc::default();
    let shared = connections.clone();
    world
        .name("a.test", &["10.0.0.1"])
        .accept_at(HTTP, move |mut io| {
            let shared = shared.clone();
            tokio::spawn(async move {
                let mut request = Vec::new();
                // A body of chunks ends like this, and a head without one like the rest of it.
                while !request.ends_with(b"\r\n\r\n")
                    || request.starts_with(b"POST") && !request.ends_with(b"0\r\n\r\n")
                {
                    if io.read_buf(&mut request).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                io.write_all(response.as_bytes()).await.unwrap();
                shared.lock().unwrap().push(io);
            });
        });
    connections
}

/// Until everything that can go on has.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_unsent_request_is_retried_with_any_method() {
    const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let world = World::default();
    let connections = serve_until_hung_up(&world, OK);
    let mut config = over_http1();
    config.retries = 0;
    let client = Client::new(runtime(), Arc::new(world), config);
    let first = client.send(get("http://a.test/"), Priority::HIGHEST).await;
    read(first.unwrap()).await.unwrap();
    settle().await;
    // Nothing has looked at the connection since: the request is given to it, and met by its end.
    let connection = connections.lock().unwrap().pop();
    drop(connection.expect("one connection has responded"));
    let pieces = ["some ", "data"].map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
    let body = Body::from_stream(futures_util::stream::iter(pieces));
    assert!(!body.is_in_memory(), "a copy could be sent instead");
    let request = Request::post("http://a.test/").body(body).unwrap();
    let second = client.send(request, Priority::HIGHEST).await;
    assert_eq!(read(second.unwrap()).await.unwrap(), "ok");
    let stats = client.stats();
    assert_eq!((stats.connections, stats.requests), (2, 3), "{stats:?}");
}

/// Speaks as much of HTTP/2 as it takes to answer the first request of a connection, and to want no more of them at the second.
async fn respond_once_and_close(mut io: BoxIo) -> std::io::Result<()> {
    const HEADERS: u8 = 1;
    io.read_exact(&mut [0; 24]).await?; // the preface
    io.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).await?; // SETTINGS
    let mut is_first = true;
    loop {
        let mut head = [0; 9];
        io.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        io.read_exact(&mut vec![0; length as usize]).await?;
        if head[3] != HEADERS {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            // GOAWAY: stream 1 was the last that was looked at; NO_ERROR.
            io.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0])
                .await?;
            return io.shutdown().await;
        }
        // HEADERS of stream 1, the last of it: `:status 200`.
        io.write_all(&[0, 0, 1, HEADERS, 5, 0, 0, 0, 1, 0x88])
            .await?;
    }
}

#[tokio::test]
async fn refused_requests_are_retried_up_to_the_configured_count() {
    for (retries, connections) in [(0, 1), (1, 2)] {
        let world = World::default();
        world.name("a.test", &["10.0.0.1"]).accept_at(HTTP, |io| {
            tokio::spawn(respond_once_and_close(io));
        });
        let mut config = Config::default();
        config.protocols = vec![Protocol::Http2];
        config.plain_protocol = Protocol::Http2;
        config.retries = retries;
        let client = Client::new(runtime(), Arc::new(world), config);
        let send = || client.send(get("http://a.test/"), Priority::HIGHEST);
        read(send().await.unwrap()).await.unwrap();
        assert_eq!(send().await.is_ok(), retries > 0);
        assert_eq!(client.stats().connections, connections, "{retries} retries");
    }
}

/// A clock that advances only when the test moves it.
#[derive(Debug)]
struct ManualClock {
    real: TokioRuntime,
    now_ms: Arc<AtomicU64>,
}

impl Runtime for ManualClock {
    fn now(&self) -> Instant {
        Instant::ZERO + Duration::from_millis(self.now_ms.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        self.real.sleep_until(deadline)
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.real.spawn(task);
    }
}

/// A client with a [`ManualClock`], and the milliseconds that the clock shows.
fn client_with_clock(world: World, idle_timeout: Option<Duration>) -> (Client, Arc<AtomicU64>) {
    let now_ms = Arc::new(AtomicU64::new(0));
    let clock = ManualClock {
        real: TokioRuntime::start(),
        now_ms: now_ms.clone(),
    };
    let mut config = over_http1();
    config.http1_idle_timeout = idle_timeout;
    let client = Client::new(SharedRuntime::new(clock), Arc::new(world), config);
    (client, now_ms)
}

#[tokio::test]
async fn a_connection_is_not_used_when_its_server_may_be_closing_it() {
    let response_with = |field: &str| -> &'static str {
        let response = format!("HTTP/1.1 200 OK\r\n{field}content-length: 0\r\n\r\n");
        Box::leak(response.into_boxed_str())
    };
    let four = Some(Duration::from_secs(4));
    // The server's header, the configured timeout, and for how long the connection is reused, in milliseconds.
    for (field, configured, good_for) in [
        ("", four, 4_000),
        ("Keep-Alive: timeout=5\r\n", four, 4_000),
        ("Keep-Alive: max=100, timeout=20\r\n", four, 19_000),
        ("Keep-Alive: timeout=1\r\n", four, 500),
        ("Keep-Alive: timeout=3600\r\n", four, 60_000),
        ("Keep-Alive: timeout=soon\r\n", four, 4_000),
        ("Keep-Alive: timeout=5\r\n", None, 60_000),
    ] {
        for (idle, connections) in [(good_for, 1), (good_for + 1, 2)] {
            let world = World::default();
            let response = response_with(field);
            world
                .name("a.test", &["10.0.0.1"])
                .accept_at(HTTP, move |mut io| {
                    tokio::spawn(async move {
                        let mut request = [0; 4096];
                        while io.read(&mut request).await.is_ok_and(|len| len > 0) {
                            io.write_all(response.as_bytes()).await.unwrap();
                        }
                    });
                });
            let (client, now_ms) = client_with_clock(world, configured);
            for _ in 0..2 {
                let response = client.send(get("http://a.test/"), Priority::HIGHEST).await;
                read(response.unwrap()).await.unwrap();
                settle().await;
                now_ms.fetch_add(idle, Ordering::SeqCst);
            }
            let connection_count = client.stats().connections;
            assert_eq!(
                connection_count, connections,
                "{field:?} {configured:?} after {idle} ms"
            );
        }
    }
}

/// Without the timeout, only their servers would close them.
#[tokio::test]
async fn idle_connections_of_unused_origins_are_closed() {
    for (configured, expected_open) in [(Some(Duration::from_secs(4)), 1), (None, 3)] {
        let (world, open) = (World::default(), Arc::new(AtomicU64::new(0)));
        let count = open.clone();
        for name in ["a.test", "b.test", "c.test"] {
            world.name(name, &["10.0.0.1"]);
        }
        world.accept_at(HTTP, move |mut io| {
            let count = count.clone();
            tokio::spawn(async move {
                count.fetch_add(1, Ordering::SeqCst);
                let mut request = [0; 4096];
                while io.read(&mut request).await.is_ok_and(|len| len > 0) {
                    let response = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    io.write_all(response.as_bytes()).await.unwrap();
                }
                count.fetch_sub(1, Ordering::SeqCst);
            });
        });
        let (client, now_ms) = client_with_clock(world, configured);
        for (name, later) in [("a", 30_000), ("b", 31_000), ("c", 0)] {
            let url = format!("http://{name}.test/");
            let response = client.send(get(&url), Priority::HIGHEST).await;
            read(response.unwrap()).await.unwrap();
            settle().await;
            now_ms.fetch_add(later, Ordering::SeqCst);
        }
        assert_eq!(open.load(Ordering::SeqCst), expected_open, "{configured:?}");
    }
}

#[tokio::test]
async fn waiting_for_busy_connections_ends_as_queue_full() {
    let world = World::default();
    world.name("a.test", &["10.0.0.1"]).server(
        HTTP,
        &[Protocol::Http1],
        None,
        Latch::new(),
        numbers,
    );
    let mut config = over_http1();
    config.http1_connections = 1;
    config.queue_timeout = Some(Duration::from_millis(20));
    config.max_queued = 1;
    let client = Client::new(runtime(), Arc::new(world), config);
    let send = |path: &str| {
        let request = get(&format!("http://a.test/{path}"));
        client.send(request, Priority::HIGHEST)
    };
    // Not read: the body does not fit the pipe, and holds the only connection.
    let busy = send("300000").await.unwrap();
    let (waits, one_too_many) = (send("1"), send("2"));
    for (response, reason) in [
        (one_too_many, "too many requests are queued"),
        (waits, "all connections stayed busy"),
    ] {
        let error = response.await.unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error:?}");
        let expected = format!("no free connection to http://a.test:80: {reason}");
        assert_eq!(error.to_string(), expected);
    }
    read(busy).await.unwrap();
    // It is free in a moment; each attempt waits for that a while.
    let mut next = send("7").await;
    for _ in 0..500 {
        if next.is_ok() {
            break;
        }
        next = send("7").await;
    }
    assert_eq!(read(next.unwrap()).await.unwrap().len(), 7);
}
