//! Slow readers of an origin's responses over one HTTP/2 connection do not make other readers wait. In virtual time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;

use crate::support::paused_time::PausedTime;
use crate::support::{self, get};

/// Bytes of each thing.
const LEN: usize = 768 * 1024;
/// As many as an origin usually lets be open at once, but one.
const READERS: usize = 99;

/// An origin over HTTP/2, whose responses may not be stored.
struct Things {
    tls: ServerTls,
    runtime: SharedRuntime,
}

impl Network for Things {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let (tls, runtime) = (self.tls.clone(), self.runtime.clone());
        tokio::spawn(async move {
            let (options, stop) = (ServerOptions::default(), Latch::new());
            let (handler, protocols) = (Arc::new(thing), [Protocol::Http2]);
            let far = Box::new(far);
            let served = serve_connection(
                far,
                handler,
                &protocols,
                Some(&tls),
                &options,
                &runtime,
                &stop,
            );
            let _ = served.await;
        });
        Box::pin(std::future::ready(Ok(Box::new(near) as BoxIo)))
    }
}

async fn thing(_: Request<Body>) -> Response<Body> {
    let response = Response::builder().header("cache-control", "no-store");
    let body = Body::full(Bytes::from(vec![b'x'; LEN]));
    response.body(body).expect("a response")
}

/// An accelerator before such an origin.
fn accelerator() -> Arc<Proxy> {
    let mut options = TlsOptions::default();
    options.key_log = KeyLogTarget::Disabled;
    let ca = LocalCa::generate(KeyKind::EcdsaP256).expect("a key");
    let identity = ca.issue(&["origin.test".to_owned()], &[]);
    let identity = identity.expect("a certificate");
    let protocols = [Protocol::Http2];
    let tls = ServerTls::new(&identity, &protocols, &options).expect("a valid value");
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let client_tls = ClientTls::new(&trust, &options).expect("a valid value");
    let text = "[cache]\nmisses_per_second = 0\n[[site]]\nnames = ['www.site.test']\norigin = 'https://origin.test'\n";
    let config = Config::parse(text).expect("a valid value");
    let sites = Sites::compile(&config, &support::keys()).expect("valid sites");
    let runtime = SharedRuntime::new(PausedTime::start());
    let origin = Things {
        tls,
        runtime: runtime.clone(),
    };
    let network: SharedNetwork = Arc::new(origin);
    let (client_tls, guarded) = (Some(&client_tls), network.clone());
    let upstream = Upstream::new(
        &config.upstream,
        client_tls,
        &sites,
        network,
        guarded,
        &runtime,
    );
    let (cache, learn) = (&config.cache, &config.learn);
    Proxy::new(sites, upstream, cache, learn, runtime, WallClock::System)
}

/// Regression: ten of them used up the connection's window, and no client got another byte of that origin until they read on.
#[tokio::test(start_paused = true)]
async fn stalled_http2_readers_do_not_block_others() {
    let proxy = accelerator();
    let mut stalled = Vec::new();
    for number in 0..READERS {
        let request = Request::get(format!("/{number}")).header("host", "www.site.test");
        let request = request.body(Body::empty()).expect("a request");
        stalled.push(proxy.answer(request, None).await.into_body());
    }
    // All that can come for them has.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let another = get(&proxy, "/another", &[]);
    let another = tokio::time::timeout(Duration::from_secs(10), another).await;
    let another = another.expect("slow readers do not delay other clients");
    let body = another.body.expect("the body is complete");
    assert_eq!(body.len(), LEN);
    // And they have lost nothing.
    for body in stalled {
        let body = body.collect().await.expect("the body is complete");
        assert_eq!(body.to_bytes().len(), LEN);
    }
}
