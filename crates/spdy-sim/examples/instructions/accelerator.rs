//! The accelerator: responses from its cache, and pages that it rewrites.

use std::hint::black_box;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use spdy::runtime::BoxFuture;
use spdy_net::network::{BoxIo, Network, SharedNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_rewrite::rules::config::{Config as RewriteConfig, HostConfig};
use spdy_testkit::clock::ORIGIN;
use spdy_testkit::shop_page::{IMAGE_HOSTS, shop_page};
use tokio::io::duplex;
use url::Url;

use crate::HotPath;
use crate::connections::{Bench, HOST, Server, respond, server_path};

/// Bytes that a proxy reads at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// All names lead to this server.
struct Origin(Server);

impl Network for Origin {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::new(192, 0, 2, 80))]) })
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let (near, far) = duplex(CHUNK_BYTES);
        self.0.serve(far);
        Box::pin(async move { Ok(Box::new(near) as BoxIo) })
    }
}

fn proxy(bench: &Bench) -> Arc<Proxy> {
    let config = format!("[[site]]\nnames = ['{HOST}']\norigin = 'http://origin.test:8000'\n");
    let config = Config::parse(&config).expect("the configuration is valid");
    let keys = Keys::from_secrets(&[7; 32], None).expect("the secret is long enough");
    let sites = Sites::compile(&config, &keys).expect("the sites are valid");
    let runtime = bench.runtime.clone();
    let network: SharedNetwork = Arc::new(Origin(Server {
        handler: Arc::new(respond),
        protocol: Protocol::Http1,
        runtime: runtime.clone(),
    }));
    let guarded = network.clone();
    let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, &runtime);
    let wall_clock = WallClock::FromEpoch(std::time::SystemTime::UNIX_EPOCH + ORIGIN);
    let (cache, learn) = (&config.cache, &config.learn);
    Proxy::new(sites, upstream, cache, learn, runtime, wall_clock)
}

/// Hits on one stored response, which the first request of the recording stores.
pub(crate) fn hit(protocol: Protocol) -> HotPath {
    let bench = Bench::new();
    let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let handler = ConnectionHandler::new(proxy(&bench), Some(client), None);
    let server = Server {
        handler: Arc::new(handler),
        protocol,
        runtime: bench.runtime.clone(),
    };
    bench.run(crate::connections::record(&server));
    server_path(bench, server)
}

pub(crate) fn rewrite() -> HotPath {
    let site = Url::parse("https://www.site.test").expect("a URL");
    let host = |number| HostConfig::all_kinds(&format!("img{number}.cdn.test"));
    let config = RewriteConfig {
        hosts: (0..IMAGE_HOSTS).map(host).collect(),
        ..RewriteConfig::default()
    };
    let keys = Keys::new(Key::new('a', &[7; 32]).expect("a name for a key"), None);
    let rules = Rules::compile(&site, &config, Some(keys)).expect("the rules are valid");
    let (rules, page) = (Arc::new(rules), shop_page());
    let len = page.len();
    let path = HotPath::new(1, "MB", move || {
        let mut headers = HeaderMap::new();
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        );
        let head = PageHead::rewrite(&rules, &site, StatusCode::OK, &mut headers, true);
        let mut rewriter = HtmlRewriter::new(&rules, &site, head, None);
        let mut out = Vec::with_capacity(CHUNK_BYTES * 2);
        for chunk in page.chunks(CHUNK_BYTES) {
            rewriter.write(chunk, &mut out);
            out.clear();
        }
        black_box(rewriter.end(&mut out));
    });
    HotPath {
        times: len as f64 / 1e6,
        ..path
    }
}
