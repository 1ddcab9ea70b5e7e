//! Slow readers of what an origin sends over HTTP/1.1, a connection each: they hold some of them, and not all. In time that stands.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::telemetry::counters::CounterFamily;
use spdy_proxy::upstream::client::Upstream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::paused_time::PausedTime;
use crate::support::{self, get};

/// Bytes of each thing.
const LEN: usize = 1 << 20;
const CONNECTIONS: usize = 4;

/// An origin whose responses may not be stored.
struct Things;

/// Answers each request of a connection.
async fn serve(mut io: DuplexStream) -> io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {LEN}\r\nCache-Control: no-store\r\n\r\n");
    loop {
        let mut request_head = Vec::new();
        while !request_head.ends_with(b"\r\n\r\n") {
            request_head.push(io.read_u8().await?);
        }
        io.write_all(head.as_bytes()).await?;
        io.write_all(&vec![b'x'; LEN]).await?;
    }
}

impl Network for Things {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { drop(serve(far).await) });
        Box::pin(std::future::ready(Ok(Box::new(near) as BoxIo)))
    }
}

/// An accelerator before such an origin.
fn accelerator() -> Arc<Proxy> {
    let text = format!(
        "[cache]\nmisses_per_second = 0\n[upstream]\nconnections = {CONNECTIONS}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n"
    );
    let config = Config::parse(&text).expect("a valid value");
    let sites = Sites::compile(&config, &support::keys()).expect("valid sites");
    let network: SharedNetwork = Arc::new(Things);
    let runtime = SharedRuntime::new(PausedTime::start());
    let guarded = network.clone();
    let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, &runtime);
    let (cache, learn) = (&config.cache, &config.learn);
    Proxy::new(sites, upstream, cache, learn, runtime, WallClock::System)
}

/// A reader that reads `pieces` pieces and then stops: the bytes read, and the rest.
async fn read_some(proxy: &Arc<Proxy>, number: usize, pieces: usize) -> (usize, Body) {
    let request = Request::get(format!("/{number}")).header("host", "www.site.test");
    let request = request.body(Body::empty()).expect("a request");
    let mut body = proxy.answer(request, None).await.into_body();
    let mut read_bytes = 0;
    for _ in 0..pieces {
        let piece = body
            .frame()
            .await
            .expect("the body has more frames")
            .expect("the response arrives");
        read_bytes += piece.into_data().expect("the frame is data").len();
    }
    (read_bytes, body)
}

/// Regression: with as many of them as connections, no client got another answer of the origin.
#[tokio::test(start_paused = true)]
async fn slowest_reader_is_aborted_when_connections_are_needed() {
    let proxy = accelerator();
    let mut readers = Vec::new();
    for number in 0..CONNECTIONS {
        readers.push(read_some(&proxy, number, number + 1).await);
    }
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Limits),
        [],
        "no request waits"
    );
    for number in 0..3 {
        let target = format!("/another-{number}");
        let another = get(&proxy, &target, &[]);
        let another = tokio::time::timeout(Duration::from_secs(3), another).await;
        let another = another.expect("a slow reader is aborted");
        assert_eq!(another.status, StatusCode::OK);
        assert_eq!(another.body.expect("the body is complete").len(), LEN);
    }
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Limits),
        [("connections", 1)]
    );
    for (number, (read_bytes, body)) in readers.into_iter().enumerate() {
        let rest = body.collect().await;
        match number {
            0 => {
                let error = rest.expect_err("it made room").to_string();
                assert!(error.contains("read too slowly"), "{error}");
            }
            _ => {
                let rest = rest.expect("the body is complete").to_bytes().len();
                assert_eq!(read_bytes + rest, LEN, "{number}");
            }
        }
    }
}
