//! An accelerator before origins that a test writes, all on loopback.

pub(crate) mod aliased_site;
pub(crate) mod cdn_site;
pub(crate) mod fields;
pub(crate) mod paused_time;
pub(crate) mod proxied_site;
pub(crate) mod stage;
pub(crate) mod websocket;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_net::latch::Latch;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::{SharedNetwork, SystemNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::compile::SiteError;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;
use spdy_resolver::address_rules::AddressRules;
use spdy_resolver::guarded_network::GuardedNetwork;
use spdy_rewrite::rules::capability::Keys;
use tokio::sync::Semaphore;

/// An origin: its address, and the requests that it got.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    pub(crate) open: Arc<AtomicUsize>,
    stop: Latch,
}

impl Origin {
    /// Answers by `respond`.
    pub(crate) fn start<F, A>(respond: F) -> Self
    where
        F: Fn(Request<Bytes>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<Body>> + Send + 'static,
    {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(loopback).expect("loopback has a free port");
        let (address, stop) = (listener.address(), Latch::new());
        let requests: Arc<Mutex<Vec<(String, HeaderMap)>>> = Arc::default();
        let open: Arc<AtomicUsize> = Arc::default();
        let (log, count, ended) = (requests.clone(), open.clone(), stop.clone());
        let handler = move |request: Request<Body>| {
            let (log, count, respond) = (log.clone(), count.clone(), respond.clone());
            async move {
                let (head, body) = request.into_parts();
                let target = head
                    .uri
                    .path_and_query()
                    .map_or("/", |target| target.as_str());
                let line = format!("{} {target}", head.method);
                log.lock().unwrap().push((line, head.headers.clone()));
                count.fetch_add(1, Ordering::SeqCst);
                let body = body.collect_up_to(1 << 20).await.unwrap_or_default();
                respond(Request::from_parts(head, body)).await
            }
        };
        let handler = Arc::new(handler);
        let serving = listener.run(
            ListenOptions::default(),
            stop.clone(),
            move |io, _, seat| {
                let (handler, ended) = (handler.clone(), ended.clone());
                async move {
                    let mut options = ServerOptions::default();
                    options.slot = seat;
                    let (protocols, runtime) = ([Protocol::Http1], runtime());
                    let served = spdy_net::serve::serve_connection(
                        io, handler, &protocols, None, &options, &runtime, &ended,
                    );
                    let _ = served.await;
                }
            },
        );
        tokio::spawn(serving);
        Self {
            address,
            requests,
            open,
            stop,
        }
    }

    /// The same, but each answer takes a permit of the semaphore, and requests wait until there is one.
    pub(crate) fn start_gated<F>(respond: F) -> (Self, Arc<Semaphore>)
    where
        F: Fn(Request<Bytes>) -> Response<Body> + Clone + Send + Sync + 'static,
    {
        let gate = Arc::new(Semaphore::new(0));
        let permits = gate.clone();
        let origin = Self::start(move |request| {
            let (permits, respond) = (permits.clone(), respond.clone());
            async move {
                permits
                    .acquire()
                    .await
                    .expect("the semaphore is never closed")
                    .forget();
                respond(request)
            }
        });
        (origin, gate)
    }

    /// The request lines so far.
    pub(crate) fn request_lines(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|(line, _)| line.clone()).collect()
    }

    /// How many requests it got for `target`.
    pub(crate) fn times(&self, target: &str) -> usize {
        let line = format!("GET {target}");
        self.request_lines()
            .iter()
            .filter(|request_line| **request_line == line)
            .count()
    }

    /// The fields of the last request for `target`.
    pub(crate) fn fields(&self, target: &str) -> HeaderMap {
        let line = format!("GET {target}");
        let requests = self.requests.lock().unwrap();
        let mut all = requests.iter().rev();
        let request = all.find(|(requests, _)| *requests == line);
        request
            .unwrap_or_else(|| panic!("{target} was not asked for"))
            .1
            .clone()
    }

    /// Stops answering.
    pub(crate) fn stop(&self) {
        self.stop.set();
    }
}

pub(crate) fn runtime() -> SharedRuntime {
    SharedRuntime::new(TokioRuntime::start())
}

/// An accelerator for `www.site.test`, whose own pages are at `own`; `more` is the rest of its configuration.
pub(crate) fn accelerator(own: &Origin, more: &str) -> Arc<Proxy> {
    let origin = own.address;
    let text = format!(
        "{more}\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n[site.rewrite]\n"
    );
    accelerator_of(&text)
}

/// What capabilities are made with.
pub(crate) fn keys() -> Keys {
    Keys::from_secrets(&[7; 32], None).expect("the secret is long enough")
}

/// The accelerator that `text` configures.
pub(crate) fn accelerator_of(text: &str) -> Arc<Proxy> {
    accelerator_with(text, Sites::compile)
}

/// The same, with moved URLs as in the paper.
pub(crate) fn accelerator_with_literal_urls(text: &str) -> Arc<Proxy> {
    accelerator_with(text, Sites::compile_with_literal_urls)
}

type Compile = fn(&Config, &Keys) -> Result<Sites, SiteError>;

fn accelerator_with(text: &str, compile: Compile) -> Arc<Proxy> {
    let runtime = runtime();
    let (config, sites, upstream) = compile_parts(text, compile, &runtime);
    Proxy::new(
        sites,
        upstream,
        &config.cache,
        &config.learn,
        runtime,
        WallClock::System,
    )
}

/// Reconfigures `proxy` with `text`.
pub(crate) fn read_again(proxy: &Arc<Proxy>, text: &str) {
    let (_, sites, upstream) = compile_parts(text, Sites::compile, &runtime());
    proxy.replace(sites, upstream);
}

fn compile_parts(
    text: &str,
    compile: Compile,
    runtime: &SharedRuntime,
) -> (Config, Sites, Upstream) {
    let config = Config::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let sites = compile(&config, &keys()).expect("valid sites");
    let network: SharedNetwork = Arc::new(SystemNetwork);
    let rules = AddressRules {
        allow: config
            .upstream
            .allow_addresses
            .iter()
            .map(|range| range.parse().expect("a range"))
            .collect(),
        ports: config.upstream.allow_ports.iter().copied().collect(),
        ..AddressRules::default()
    };
    let guarded: SharedNetwork = Arc::new(GuardedNetwork::new(network.clone(), rules));
    let upstream = Upstream::new(&config.upstream, None, &sites, network, guarded, runtime);
    (config, sites, upstream)
}

/// How long a test waits for what must come, before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `is_so`, for conditions without a notification.
///
/// # Panics
///
/// With `condition`, after a minute.
pub(crate) async fn until(condition: &str, is_so: impl Fn() -> bool) {
    until_some(condition, async || is_so().then_some(())).await;
}

/// The first result of `attempt`, for conditions without a notification.
///
/// # Panics
///
/// With `condition`, after a minute.
pub(crate) async fn until_some<T>(condition: &str, attempt: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(result) = attempt().await {
            return result;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "waited in vain until {condition}"
        );
        tokio::task::yield_now().await;
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct CollectedResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// `Err` if it broke off.
    pub(crate) body: Result<Bytes, String>,
}

impl CollectedResponse {
    pub(crate) fn text(&self) -> &str {
        let body = self.body.as_ref().expect("a whole body");
        std::str::from_utf8(body).expect("the text is UTF-8")
    }

    pub(crate) fn field(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("ASCII"))
    }
}

/// Requests `target` of the site.
pub(crate) async fn get(
    proxy: &Arc<Proxy>,
    target: &str,
    fields: &[(&str, &str)],
) -> CollectedResponse {
    send_request(proxy, Method::GET, target, fields, "").await
}

pub(crate) async fn send_request(
    proxy: &Arc<Proxy>,
    method: Method,
    target: &str,
    fields: &[(&str, &str)],
    body: &'static str,
) -> CollectedResponse {
    let mut request = Request::builder().method(method).uri(target);
    request = request.header("host", "www.site.test");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::from(body)).expect("a request");
    collect_response(proxy, request, 1).await
}

/// The answer to `request` of a client whose address ends with `from`.
pub(crate) async fn collect_response(
    proxy: &Arc<Proxy>,
    request: Request<Body>,
    from: u8,
) -> CollectedResponse {
    let from = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, from)));
    let (head, body) = proxy.answer(request, from).await.into_parts();
    let body = body.collect_up_to(1 << 26).await;
    CollectedResponse {
        status: head.status,
        headers: head.headers,
        body: body.map_err(|error| error.to_string()),
    }
}

/// A plain answer.
pub(crate) fn respond(fields: &[(&str, &str)], body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::builder();
    for (name, value) in fields {
        response = response.header(*name, *value);
    }
    response.body(Body::full(body.into())).expect("a response")
}

/// Target, fields, body.
pub(crate) type Page<'a> = (
    &'static str,
    &'a [(&'static str, &'static str)],
    &'static str,
);

/// Answers by target; 404 for the rest.
pub(crate) fn pages(
    pages: &[Page<'_>],
) -> impl Fn(Request<Bytes>) -> std::future::Ready<Response<Body>> + Clone + Send + Sync + 'static {
    type Fields = Vec<(&'static str, &'static str)>;
    let all: BTreeMap<&'static str, (Fields, &'static str)> = pages
        .iter()
        .map(|(target, fields, body)| (*target, (fields.to_vec(), *body)))
        .collect();
    let all = Arc::new(all);
    move |request| {
        let target = request
            .uri()
            .path_and_query()
            .map_or("/", |target| target.as_str());
        std::future::ready(match all.get(target) {
            Some((fields, body)) => respond(fields, *body),
            None => {
                let mut response = respond(&[], "no such thing");
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        })
    }
}
