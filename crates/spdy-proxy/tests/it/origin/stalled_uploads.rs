//! Origins that take nothing of an upload, and clients that send nothing of one: which of them is blamed. In virtual time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::telemetry::counters::CounterFamily;
use spdy_proxy::upstream::client::Upstream;
use tokio::io::DuplexStream;

use crate::support::paused_time::PausedTime;
use crate::support::{self, CollectedResponse, collect_response, get};

/// One server, which lets everybody in and then does nothing.
#[derive(Clone, Default)]
struct Silent(Arc<Mutex<Vec<DuplexStream>>>);

impl Network for Silent {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        self.0.lock().unwrap().push(far);
        Box::pin(std::future::ready(Ok(Box::new(near) as BoxIo)))
    }
}

/// An accelerator before a silent origin, which may fail twice.
fn accelerator(upstream: &str) -> (Arc<Proxy>, SharedRuntime) {
    let text = format!(
        "[upstream]\nfailures = 2\nrest_s = 100\n{upstream}\n[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n"
    );
    let config = Config::parse(&text).expect("a valid value");
    let sites = Sites::compile(&config, &support::keys()).expect("valid sites");
    let network: SharedNetwork = Arc::new(Silent::default());
    let runtime = SharedRuntime::new(PausedTime::start());
    let guarded = network.clone();
    let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, &runtime);
    let (cache, learn) = (&config.cache, &config.learn);
    let calendar = WallClock::System;
    let proxy = Proxy::new(sites, upstream, cache, learn, runtime.clone(), calendar);
    (proxy, runtime)
}

/// Posts `pieces`, each after `pause`.
async fn post(proxy: &Arc<Proxy>, pieces: Vec<Bytes>, pause: Duration) -> CollectedResponse {
    let pieces = futures_util::stream::unfold(pieces.into_iter(), move |mut pieces| async move {
        tokio::time::sleep(pause).await;
        Some((Ok::<_, io::Error>(pieces.next()?), pieces))
    });
    let request = Request::post("/upload").header("host", "www.site.test");
    let request = request.body(Body::from_stream(pieces)).expect("a request");
    collect_response(proxy, request, 1).await
}

/// It counted as an error of the exchange, which no origin was left alone for.
#[tokio::test(start_paused = true)]
async fn origin_stalling_uploads_is_backed_off() {
    let (proxy, runtime) = accelerator("write_timeout_s = 7");
    for nth in 1..=2 {
        let begun = runtime.now();
        let long = vec![Bytes::from(vec![b'x'; 1 << 20])];
        let response = post(&proxy, long, Duration::ZERO).await;
        assert_eq!(response.status, StatusCode::GATEWAY_TIMEOUT, "{nth}");
        let proxy_status = response.field("proxy-status");
        assert_eq!(
            proxy_status, "spdy; error=connection_write_timeout",
            "{nth}"
        );
        assert_eq!((runtime.now() - begun).as_secs(), 7, "{nth}");
        assert_eq!(
            proxy.telemetry.counters.read(CounterFamily::Origins),
            [("timeout", nth)]
        );
    }
    let response = get(&proxy, "/", &[]).await;
    let proxy_status = response.field("proxy-status");
    assert_eq!(proxy_status, "spdy; error=destination_unavailable");
    tokio::time::advance(Duration::from_secs(101)).await;
    let response = get(&proxy, "/", &[]).await;
    let proxy_status = response.field("proxy-status");
    assert_eq!(
        proxy_status, "spdy; error=http_response_timeout",
        "one is let through"
    );
}

#[tokio::test(start_paused = true)]
async fn stalled_client_does_not_count_against_origin() {
    let (proxy, _) = accelerator("write_timeout_s = 7\nhead_timeout_s = 30");
    for _ in 0..3 {
        // The origin has room for all of it.
        let pieces = vec![Bytes::from(vec![b'x'; 20_000]); 2];
        let response = post(&proxy, pieces, Duration::from_secs(40)).await;
        assert_eq!(response.status, StatusCode::REQUEST_TIMEOUT);
    }
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Origins),
        [("client-aborted", 3)]
    );
    let response = get(&proxy, "/", &[]).await;
    let reason = response.field("proxy-status");
    assert_eq!(
        reason, "spdy; error=http_response_timeout",
        "the origin got the request"
    );
}
