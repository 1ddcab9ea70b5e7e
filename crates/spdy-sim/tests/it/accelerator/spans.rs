//! Spans of the accelerator in virtual time: the spans of each outcome of a request, their parents, and determinism.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Request, Response};
use rand::SeedableRng;
use rand::rand_core::Rng;
use rand_chacha::ChaCha8Rng;
use spdy::Body;
use spdy::runtime::{Runtime, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::wall_clock::WallClock;
use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::telemetry::spans::{
    AttributeValue, Sampler, Span, SpanKind, SpanRules, SpanSink, Spans,
};
use spdy_proxy::telemetry::trace_context::{SpanId, TraceId};
use spdy_proxy::upstream::client::Upstream;
use spdy_rewrite::rules::capability::Keys;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::network::{NetworkConfig, SimNetwork};
use spdy_sim::runtime::Executor;
use spdy_sim::runtime::SimRuntime;

const ORIGIN: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(8, 0, 0, 1)),
    80,
);
const OTHER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(8, 0, 0, 2)),
    80,
);
const RTT: Duration = Duration::from_millis(20);
const ALL: SpanRules = SpanRules {
    sampler: Sampler::by_parent(1.0),
    trust_clients: false,
    record_queries: false,
};
/// The trace ID of clients whose traces are recorded.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENTS: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Completed spans; their IDs are derived from a seed.
#[derive(Debug)]
struct SpanRecorder {
    chance: Mutex<ChaCha8Rng>,
    taken: Mutex<Vec<Span>>,
}

impl SpanSink for SpanRecorder {
    fn trace_id(&self) -> TraceId {
        let mut chance = self.chance.lock().unwrap();
        TraceId::of(u128::from(chance.next_u64()) << 64 | u128::from(chance.next_u64()))
    }

    fn span_id(&self) -> SpanId {
        SpanId::of(self.chance.lock().unwrap().next_u64())
    }

    fn take(&self, span: Span) {
        self.taken.lock().unwrap().push(span);
    }
}

/// Requests that origins received: their targets and headers.
type OriginRequests = Arc<Mutex<Vec<(String, HeaderMap)>>>;

/// An accelerator in virtual time, with its spans and the requests that its origins received.
struct Setup {
    runtime: SimRuntime,
    proxy: Arc<Proxy>,
    notes: Arc<SpanRecorder>,
    requests: OriginRequests,
}

impl Setup {
    /// One client's request, to the last byte of its answer.
    async fn get(&self, target: &str, fields: &[(&str, &str)]) -> u16 {
        let visit = ConnectionHandler::new(self.proxy.clone(), None, None);
        let mut request = Request::builder()
            .uri(target)
            .header("host", "www.site.test");
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let (head, body) = visit.answer(request).await.into_parts();
        let _ = body.collect_up_to(1 << 20).await;
        head.status.as_u16()
    }

    /// Waits `ms` milliseconds.
    async fn rest(&self, ms: u64) {
        let until = self.runtime.now() + Duration::from_millis(ms);
        self.runtime.sleep_until(until).await;
    }

    /// The spans since the last call.
    fn taken(&self) -> Vec<Span> {
        std::mem::take(&mut self.notes.taken.lock().unwrap())
    }

    /// The headers of the last request for `target` that an origin received.
    fn last_upstream_headers(&self, target: &str) -> HeaderMap {
        let requests = self.requests.lock().unwrap();
        let found = requests
            .iter()
            .rev()
            .find(|(requested, _)| requested == target);
        found
            .unwrap_or_else(|| panic!("{target} was not requested"))
            .1
            .clone()
    }
}

fn answer(target: &str) -> Response<Body> {
    let response = Response::builder();
    let fresh = |kind, body: &'static str| {
        let response = Response::builder().header("cache-control", "max-age=600");
        response.header("content-type", kind).body(Body::from(body))
    };
    let answer = match target {
        "/" => fresh(
            "text/html",
            "<link rel=stylesheet href=/a.css><img src=http://cdn.test/b.png>",
        ),
        "/a.css" => fresh("text/css", "a { background: url(/c.png) }"),
        "/a.txt?secret" | "/b.png" | "/c.png" => fresh("text/plain", "whole"),
        "/validated" => response
            .header("cache-control", "max-age=1")
            .header("etag", "\"1\"")
            .body(Body::from("kept")),
        "/stale" => response
            .header("cache-control", "max-age=1, stale-while-revalidate=60")
            .header("etag", "\"1\"")
            .body(Body::from("kept")),
        "/private" => response
            .header("cache-control", "private")
            .body(Body::from("one's own")),
        _ => response.status(503).body(Body::empty()),
    };
    answer.unwrap()
}

/// Runs `client` with an accelerator that records spans by `rules`, if there are any.
fn run<T>(seed: u64, rules: Option<SpanRules>, client: impl AsyncFnOnce(&Setup) -> T) -> T {
    let config = NetworkConfig {
        path: PathConfig::new(10_000_000, 10_000_000, RTT),
        client_tcp: TcpConfig::today(),
        server_tcp: TcpConfig::today(),
        name_lookups: NameLookups::RoundTrip,
        program_latency: Duration::ZERO,
    };
    let executor = Executor::default();
    let runtime = executor.runtime();
    let network = SimNetwork::new(runtime.clone(), config, seed);
    let origin_requests = OriginRequests::default();
    for (name, address) in [("origin.test", ORIGIN), ("cdn.test", OTHER)] {
        network.name(name, vec![address.ip()]);
        listen(&network, &runtime, address, &origin_requests);
    }
    let shared = SharedRuntime::new(runtime.clone());
    let config = Config::parse(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test'\nscheme = 'http'\nkinds = ['image']\nwhole = true\n",
    );
    let config = config.unwrap();
    let keys = Keys::from_secrets(&[7; 32], None).unwrap();
    let sites = Sites::compile(&config, &keys).unwrap();
    let network = Arc::new(network);
    let upstream = Upstream::new(
        &config.upstream,
        None,
        &sites,
        network.clone(),
        network,
        &shared,
    );
    let calendar = WallClock::FromEpoch(std::time::UNIX_EPOCH);
    let (cache, learn) = (&config.cache, &config.learn);
    let proxy = Proxy::new(sites, upstream, cache, learn, shared.clone(), calendar);
    let notes = Arc::new(SpanRecorder {
        chance: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
        taken: Mutex::default(),
    });
    if let Some(rules) = rules {
        proxy
            .telemetry
            .set_spans(Spans::new(rules, notes.clone(), shared));
    }
    let stage = Setup {
        runtime,
        proxy,
        notes,
        requests: origin_requests,
    };
    let ended = executor.run(client(&stage));
    ended.unwrap_or_else(|stalled| panic!("seed {seed}: {stalled}"))
}

fn listen(
    network: &SimNetwork,
    runtime: &SimRuntime,
    address: SocketAddr,
    requests: &OriginRequests,
) {
    let (spawner, requests) = (runtime.clone(), requests.clone());
    let handler = Arc::new(move |request: Request<Body>| {
        let target = request.uri().path_and_query().unwrap().to_string();
        let validates = request.headers().contains_key("if-none-match");
        let response = match validates {
            true => Response::builder()
                .status(304)
                .header("etag", "\"1\"")
                .body(Body::empty())
                .unwrap(),
            false => answer(&target),
        };
        let mut requests = requests.lock().unwrap();
        requests.push((target, request.headers().clone()));
        std::future::ready(response)
    });
    let acceptor = move |io| {
        let (handler, shared) = (handler.clone(), SharedRuntime::new(spawner.clone()));
        spawner.spawn(Box::pin(async move {
            let (options, stop) = (ServerOptions::default(), Latch::new());
            let protocols = [Protocol::Http1];
            let served = serve_connection(io, handler, &protocols, None, &options, &shared, &stop);
            let _ = served.await;
        }));
    };
    network.listen(address, Arc::new(acceptor));
}

/// The value of the attribute `name` of a span, as text.
fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|(key, _)| *key == name);
    match found.map(|(_, value)| value) {
        Some(AttributeValue::Text(text)) => text.to_string(),
        Some(AttributeValue::Int(number)) => number.to_string(),
        Some(AttributeValue::Float(number)) => number.to_string(),
        Some(AttributeValue::Bool(is_so)) => is_so.to_string(),
        None => "-".to_owned(),
    }
}

/// The parent or link of a span, as the number of another span in `all`.
fn place(span: &Span, all: &[Span]) -> String {
    let position = |id: SpanId| all.iter().position(|other| other.context.span_id == id);
    let number = |id| position(id).map_or("another's".to_owned(), |place| place.to_string());
    let parent = span.parent.map(|id| format!("in {}", number(id)));
    let link = span.link.as_ref();
    let link = link.map(|to| format!("by {}", number(to.span_id)));
    parent.or(link).unwrap_or("first".to_owned())
}

/// A line for each span, in the order of their starts: number, kind, place, target, outcome.
fn format_spans(mut all: Vec<Span>) -> Vec<String> {
    all.sort_by_key(|span| (span.began, span.kind != SpanKind::Server));
    let lines = all.iter().enumerate().map(|(number, span)| {
        let (what, became) = match span.kind {
            SpanKind::Server => (
                attribute(span, "url.path"),
                attribute(span, "spdy.cache.outcome"),
            ),
            SpanKind::Client => (
                attribute(span, "url.full"),
                attribute(span, "spdy.cache.forward"),
            ),
            SpanKind::Internal => (attribute(span, "spdy.rewrite.kind"), "-".to_owned()),
        };
        let status = attribute(span, "http.response.status_code");
        let error = span.error.as_deref().unwrap_or("good");
        let (kind, place) = (span.kind, place(span, &all));
        format!(
            "{number} {kind:?} {} {place}: {what} {became} {status} {error}",
            span.name
        )
    });
    lines.collect()
}

#[test]
fn a_miss_has_a_part_for_its_origin_and_a_hit_has_none() {
    run(1, Some(ALL), async |stage| {
        stage.get("/a.txt?secret", &[]).await;
        let miss = stage.taken();
        stage
            .get(
                "/a.txt?secret",
                &[("cookie", "sesame"), ("user-agent", "me")],
            )
            .await;
        let hit = stage.taken();
        assert_eq!(
            format_spans(miss.clone()),
            [
                "0 Server GET first: /a.txt miss 200 good",
                "1 Client GET in 0: http://origin.test/a.txt uri-miss 200 good"
            ]
        );
        assert_eq!(
            format_spans(hit.clone()),
            ["0 Server GET first: /a.txt hit 200 good"]
        );
        // A lookup, a handshake and the request. The response has already been sent when it is read.
        let (fetch, request) = (&miss[0], &miss[1]);
        assert!(fetch.ended - fetch.began >= 3 * RTT, "{fetch:?}");
        assert!(request.ended >= fetch.ended && request.began <= fetch.began);
        assert_eq!(fetch.context.trace_id, request.context.trace_id);
        assert_ne!(hit[0].context.trace_id, request.context.trace_id);
        for (name, expected) in [
            ("http.request.method", "GET"),
            ("url.scheme", "http"),
            ("server.address", "www.site.test"),
            ("server.port", "80"),
            ("network.protocol.name", "http"),
            ("network.protocol.version", "1.1"),
            ("user_agent.original", "me"),
            ("spdy.cache.status", "spdy; hit; ttl=599"),
        ] {
            let value = attribute(&hit[0], name);
            assert!(
                value == expected || name == "spdy.cache.status" && value.starts_with("spdy; hit"),
                "{name}: {value}"
            );
        }
        for secret in ["secret", "sesame"] {
            assert!(!format!("{miss:?}{hit:?}").contains(secret), "{secret}");
        }
    });
}

#[test]
fn a_spdy_request_has_one_span() {
    run(10, Some(ALL), async |stage| {
        let visit = ConnectionHandler::new(stage.proxy.clone(), None, None);
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = "https://www.site.test/private".parse().unwrap();
        let protocol = Protocol::Spdy(Version::V31);
        request.extensions_mut().insert(RequestInfo {
            protocol,
            secure: true,
            priority: Priority::HIGHEST,
        });
        drop(visit.answer(request).await);
        let taken = stage.taken();
        let request = taken.iter().find(|span| span.kind == SpanKind::Server);
        for (name, expected) in [
            ("network.protocol.name", "spdy"),
            ("network.protocol.version", "3.1"),
            ("url.scheme", "https"),
            ("server.address", "www.site.test"),
            ("server.port", "443"),
        ] {
            assert_eq!(attribute(request.unwrap(), name), expected, "{name}");
        }
    });
}

#[test]
fn stale_responses_are_revalidated_in_or_after_the_request() {
    run(2, Some(ALL), async |stage| {
        for target in ["/validated", "/stale"] {
            stage.get(target, &[]).await;
        }
        stage.rest(3_000).await;
        stage.taken();
        stage.get("/validated", &[]).await;
        assert_eq!(
            format_spans(stage.taken()),
            [
                "0 Server GET first: /validated revalidated 200 good",
                "1 Client GET in 0: http://origin.test/validated stale 304 good"
            ]
        );
        stage.get("/stale", &[]).await;
        stage.rest(1_000).await;
        let taken = stage.taken();
        assert_eq!(
            format_spans(taken.clone()),
            [
                "0 Server GET first: /stale stale 200 good",
                "1 Client GET by 0: http://origin.test/stale stale 304 good"
            ]
        );
        let behind = taken.iter().find(|span| span.kind == SpanKind::Client);
        assert_eq!(attribute(behind.unwrap(), "spdy.background"), "true");
        assert_ne!(taken[0].context.trace_id, taken[1].context.trace_id);
    });
}

#[test]
fn prefetches_have_linked_traces_and_rewriting_a_child_span() {
    run(3, Some(ALL), async |stage| {
        stage.get("/", &[("sec-fetch-dest", "document")]).await;
        stage.rest(2_000).await;
        let drawn = format_spans(stage.taken());
        assert_eq!(
            drawn,
            [
                "0 Server GET first: / miss 200 good",
                "1 Client GET in 0: http://origin.test/ uri-miss 200 good",
                "2 Internal rewrite in 0: page - - good",
                "3 Client GET by 0: http://origin.test/a.css uri-miss 200 good",
                "4 Client GET by 0: http://cdn.test/b.png uri-miss 200 good",
                "5 Internal rewrite in 3: sheet - - good",
                "6 Client GET by 3: http://origin.test/c.png uri-miss 200 good",
            ]
        );
    });
}

#[test]
fn trace_headers_go_to_the_sites_origin_and_to_no_other_host() {
    run(4, Some(ALL), async |stage| {
        let fields = [("traceparent", CLIENTS), ("tracestate", "a=b")];
        stage.get("/private", &fields).await;
        let taken = stage.taken();
        let fetch = taken.iter().find(|span| span.kind == SpanKind::Client);
        let headers = stage.last_upstream_headers("/private");
        assert_eq!(headers["traceparent"], fetch.unwrap().context.traceparent());
        assert!(
            !headers.contains_key("tracestate"),
            "it is of another trace"
        );
        // The client's trace ends here, and a new one links to it.
        let request = taken.iter().find(|span| span.kind == SpanKind::Server);
        let request = request.unwrap();
        assert_ne!(request.context.trace_id.to_string(), TRACE);
        assert_eq!(request.parent, None);
        assert_eq!(request.link.as_ref().unwrap().traceparent(), CLIENTS);
        stage.get("/.spdy/1/-/p/cdn.test/b.png", &fields).await;
        assert_eq!(stage.taken().len(), 2);
        let headers = stage.last_upstream_headers("/b.png");
        assert!(!headers.contains_key("traceparent") && !headers.contains_key("tracestate"));
    });
}

#[test]
fn a_trusted_client_continues_its_trace_and_sampling() {
    let rules = SpanRules {
        sampler: Sampler::by_parent(0.0),
        trust_clients: true,
        ..ALL
    };
    run(5, Some(rules), async |stage| {
        let fields = [("traceparent", CLIENTS), ("tracestate", "a=b")];
        stage.get("/private", &fields).await;
        let taken = stage.taken();
        assert_eq!(taken.len(), 2);
        for span in &taken {
            assert_eq!(span.context.trace_id.to_string(), TRACE);
            assert_eq!(span.context.state.as_ref().unwrap(), "a=b");
            let is_request = span.kind == SpanKind::Server;
            assert_eq!(span.is_parent_remote, is_request);
            assert!(span.parent.is_some() && span.link.is_none(), "{span:?}");
        }
        assert_eq!(stage.last_upstream_headers("/private")["tracestate"], "a=b");
        // One client sends an unsampled trace, and one sends no trace.
        let unsampled = CLIENTS.replace("-01", "-00");
        stage.get("/private", &[("traceparent", &unsampled)]).await;
        let traceparent = stage.last_upstream_headers("/private")["traceparent"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            traceparent.contains(TRACE) && traceparent.ends_with("-00") && traceparent != unsampled,
            "{traceparent}"
        );
        stage.get("/private", &[]).await;
        let traceparent = stage.last_upstream_headers("/private")["traceparent"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            traceparent.ends_with("-00") && !traceparent.contains(TRACE),
            "{traceparent}"
        );
        assert_eq!(stage.taken(), []);
    });
}

#[test]
fn spans_record_origin_failures_and_client_disconnects() {
    run(6, Some(ALL), async |stage| {
        assert_eq!(stage.get("/fails", &[]).await, 503);
        assert_eq!(
            format_spans(stage.taken()),
            [
                "0 Server GET first: /fails uncacheable 503 503",
                "1 Client GET in 0: http://origin.test/fails uri-miss 503 503"
            ]
        );
    });
    let left = run(6, Some(ALL), async |stage| {
        let patience = Box::pin(stage.rest(5));
        let asking = Box::pin(stage.get("/private", &[]));
        drop(futures_util::future::select(patience, asking).await);
        stage.taken()
    });
    assert_eq!(
        format_spans(left),
        [
            "0 Server GET first: /private - - cancelled",
            "1 Client GET in 0: http://origin.test/private uri-miss - cancelled"
        ]
    );
}

#[test]
fn without_spans_trace_headers_pass_unchanged() {
    run(7, None, async |stage| {
        let fields = [("traceparent", CLIENTS), ("tracestate", "a=b")];
        stage.get("/private", &fields).await;
        let headers = stage.last_upstream_headers("/private");
        assert_eq!(headers["traceparent"], CLIENTS);
        assert_eq!(headers["tracestate"], "a=b");
    });
}

#[test]
fn span_ids_depend_on_the_seed_only() {
    let of = |seed| {
        run(seed, Some(ALL), async |stage| {
            stage.get("/", &[("sec-fetch-dest", "document")]).await;
            stage.rest(2_000).await;
            stage.taken()
        })
    };
    let busy = "spdy.rewrite.busy_ms";
    let (once, again, other) = (of(8), of(8), of(9));
    assert_eq!(once, again);
    assert!(
        once.iter().any(|span| attribute(span, busy) == "0"),
        "{once:?}"
    );
    let names =
        |spans: &[Span]| -> Vec<_> { spans.iter().map(|span| span.context.trace_id).collect() };
    assert_ne!(names(&once), names(&other));
    assert_eq!(format_spans(once), format_spans(other));
}
