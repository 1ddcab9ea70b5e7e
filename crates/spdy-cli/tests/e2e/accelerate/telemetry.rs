//! Spans of `spdy accelerate` as a collector receives them, and collectors that are unreachable, reject spans, or never respond.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use spdy_testkit::closed_port::ClosedPort;
use spdy_testkit::wait::until;

use crate::support::accelerator::otel_collector::{Behavior, OtelCollector, attribute_text};
use crate::support::accelerator::program::{Accelerator, check};
use crate::support::clients::raw_client::{PendingResponse, RawResponse};
use crate::support::origins::echo::EchoOrigin;

/// An origin, and a folder for the files of the configuration.
struct TestSite {
    origin: EchoOrigin,
    folder: tempfile::TempDir,
}

impl TestSite {
    fn open(cache_control: &'static str) -> Self {
        let site = Self {
            origin: EchoOrigin::start(cache_control, Duration::ZERO),
            folder: tempfile::tempdir().expect("create a folder"),
        };
        site.write("token", "a token of the operator");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("write the test's file");
    }

    /// The configuration with these keys of `[telemetry]`, for a collector at `collector`.
    fn config(&self, collector: SocketAddr, keys: &str) -> String {
        format!(
            "[telemetry]\nendpoint = 'http://{collector}'\n{keys}\n{}",
            self.config_without_telemetry()
        )
    }

    fn config_without_telemetry(&self) -> String {
        format!(
            "[listen]\ntls = []\nplain = ['127.0.0.1:0']\n[admin]\naddress = '127.0.0.1:0'\ntoken_file = {:?}\n\
             [[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n",
            self.path("token"),
            self.origin.address
        )
    }
}

fn get(accelerator: &Accelerator, target: &str, fields: &str) -> RawResponse {
    let head = format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n");
    let request = format!("{head}{fields}\r\n");
    PendingResponse::begin(accelerator.plain(), request.as_bytes()).end(usize::MAX)
}

/// Number of spans with `outcome`, by the metrics of the admin listener.
fn span_count(accelerator: &Accelerator, outcome: &str) -> u64 {
    let name = format!("spdy_telemetry_spans_total{{outcome=\"{outcome}\"}} ");
    let count = accelerator.metric(&name);
    count.unwrap_or_else(|| panic!("{outcome} is not counted"))
}

fn spans_of_kind(spans: &[Span], kind: SpanKind) -> Vec<&Span> {
    let all = spans.iter().filter(|span| span.kind() == kind);
    all.collect()
}

#[test]
fn spans_are_exported_with_a_token_and_without_secrets() {
    let site = TestSite::open("public, max-age=600");
    let collector = OtelCollector::start(Behavior::Accepts);
    site.write("headers", "Authorization: Bearer sesame-of-the-collector\n");
    let headers = site.path("headers");
    let keys = format!("service_name = 'front'\nheaders_file = {headers:?}");
    let accelerator = Accelerator::start(&site.config(collector.address, &keys));
    let fields = "Cookie: id=sesame-of-a-client\r\nUser-Agent: test/1\r\n";
    let response = get(&accelerator, "/a?sesame-of-a-page", fields);
    let cache_status = response.field("cache-status").expect("a Cache-Status");
    let spans = collector.wait_for_spans(2);
    let (request, fetch) = (
        spans_of_kind(&spans, SpanKind::Server)[0].clone(),
        spans_of_kind(&spans, SpanKind::Client)[0].clone(),
    );
    assert_eq!((&request.name[..], &fetch.name[..]), ("GET", "GET"));
    assert_eq!(
        (request.parent_span_id.len(), request.trace_id.len()),
        (0, 16)
    );
    assert_eq!(fetch.parent_span_id, request.span_id);
    assert_eq!(fetch.trace_id, request.trace_id);
    assert!(request.start_time_unix_nano <= fetch.start_time_unix_nano);
    assert!(fetch.end_time_unix_nano <= request.end_time_unix_nano);
    let now = std::time::UNIX_EPOCH
        .elapsed()
        .expect("a time after 1970")
        .as_nanos();
    let age = now - u128::from(request.start_time_unix_nano);
    assert!(age < 600_000_000_000, "started {age} ns ago");
    for (span, name, expected) in [
        (&request, "http.request.method", "GET"),
        (&request, "url.path", "/a"),
        (&request, "http.response.status_code", "200"),
        (&request, "network.protocol.version", "1.1"),
        (&request, "client.address", "127.0.0.1"),
        (&request, "user_agent.original", "test/1"),
        (&request, "spdy.cache.outcome", "miss"),
        (&request, "spdy.cache.status", &cache_status),
        (&fetch, "server.address", "127.0.0.1"),
        (
            &fetch,
            "url.full",
            &format!("http://{}/a", site.origin.address),
        ),
    ] {
        assert_eq!(attribute_text(&span.attributes, name), expected, "{name}");
    }
    // The origin got the trace and span IDs of the fetch, the same as the collector.
    let traceparents = site.origin.requests()[0].values("traceparent");
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let expected = format!("00-{}-{}-01", hex(&fetch.trace_id), hex(&fetch.span_id));
    assert_eq!(traceparents, [expected]);
    let request = &collector.requests()[0];
    assert_eq!(request.target(), "/v1/traces");
    assert_eq!(request.values("content-type"), ["application/x-protobuf"]);
    assert_eq!(
        request.values("authorization"),
        ["Bearer sesame-of-the-collector"]
    );
    let bytes = String::from_utf8_lossy(&request.body).into_owned();
    assert!(!bytes.contains("sesame"), "{bytes}");
    let resource_spans = &collector.exports()[0].resource_spans[0];
    let resource = resource_spans.resource.as_ref().expect("a resource");
    assert_eq!(
        attribute_text(&resource.attributes, "service.name"),
        "front"
    );
    until("the spans are counted", || {
        span_count(&accelerator, "sent") == 2
    });
}

#[test]
fn queries_are_recorded_only_if_configured_and_failures_marked() {
    let site = TestSite::open("no-store");
    let collector = OtelCollector::start(Behavior::Accepts);
    let nowhere = ClosedPort::leak();
    let config = site.config(collector.address, "queries = true");
    let config = config.replace(&site.origin.address.to_string(), &nowhere.to_string());
    let accelerator = Accelerator::start(&config);
    assert_eq!(get(&accelerator, "/a?b=c", "").status, 502);
    let spans = collector.wait_for_spans(2);
    let (request, fetch) = (
        spans_of_kind(&spans, SpanKind::Server)[0],
        spans_of_kind(&spans, SpanKind::Client)[0],
    );
    assert_eq!(attribute_text(&request.attributes, "url.query"), "b=c");
    assert_eq!(
        attribute_text(&fetch.attributes, "url.full"),
        format!("http://{nowhere}/a?b=c")
    );
    assert_eq!(attribute_text(&request.attributes, "error.type"), "502");
    assert_eq!(
        attribute_text(&fetch.attributes, "error.type"),
        "connect-error"
    );
    for span in [request, fetch] {
        let status = span.status.as_ref().expect("a status");
        assert_eq!(status.code(), StatusCode::Error);
    }
}

#[test]
fn a_collector_outage_fails_no_request_and_is_logged_once() {
    let site = TestSite::open("no-store");
    let closed_port = ClosedPort::take();
    let accelerator = Accelerator::start(&site.config(closed_port.address, ""));
    for number in 0..40 {
        assert_eq!(get(&accelerator, &format!("/{number}"), "").status, 200);
    }
    accelerator.line_with("does not accept spans");
    let collector = OtelCollector::start_at(closed_port.open(), Behavior::Accepts);
    accelerator.line_with("accepts spans again");
    // No span that fitted into the queue is lost.
    assert_eq!(collector.wait_for_spans(80).len(), 80);
    collector.set_behavior(Behavior::RespondsWith(503));
    get(&accelerator, "/a", "");
    until("the failure is logged", || {
        accelerator.count_lines_with("does not accept spans: response status 503") == 1
    });
    collector.set_behavior(Behavior::Accepts);
    assert_eq!(collector.wait_for_spans(82).len(), 82);
    until("the return is logged", || {
        accelerator.count_lines_with("accepts spans again") == 2
    });
    assert_eq!(accelerator.count_lines_with("does not accept spans"), 2);
}

#[test]
fn rejected_and_dropped_spans_are_counted() {
    let site = TestSite::open("no-store");
    let collector = OtelCollector::start(Behavior::RespondsWith(400));
    let accelerator = Accelerator::start(&site.config(collector.address, "queue = 4"));
    get(&accelerator, "/a", "");
    until("the spans are rejected", || {
        span_count(&accelerator, "rejected") == 2
    });
    let requests_before = collector.requests().len();
    collector.set_behavior(Behavior::RejectsOne);
    get(&accelerator, "/a", "");
    let [rejected, sent] = ["rejected", "sent"];
    until("all spans are counted", || {
        span_count(&accelerator, rejected) + span_count(&accelerator, sent) == 4
    });
    // Usually both are in one batch.
    let batches = collector.requests().len() - requests_before;
    assert_eq!(span_count(&accelerator, rejected), 2 + batches as u64);
    collector.set_behavior(Behavior::Hangs);
    for _ in 0..20 {
        assert_eq!(get(&accelerator, "/a", "").status, 200);
    }
    // One batch is being sent and one more waits; each has at most four spans.
    until("spans are dropped", || {
        span_count(&accelerator, "dropped") >= 40 - 3 * 4
    });
    let request_count = collector.requests().len();
    assert!(request_count < 10, "{request_count} requests in progress");
}

#[test]
fn shutdown_sends_the_last_spans_but_skips_a_hanging_collector() {
    let site = TestSite::open("no-store");
    let collector = OtelCollector::start(Behavior::Accepts);
    let accelerator = Accelerator::start(&site.config(collector.address, ""));
    get(&accelerator, "/a", "");
    accelerator.end();
    assert_eq!(collector.spans().len(), 2);
    collector.set_behavior(Behavior::Hangs);
    let keys = "timeout_s = 600";
    let accelerator = Accelerator::start(&site.config(collector.address, keys));
    get(&accelerator, "/a", "");
    accelerator.end();
    assert_eq!(collector.spans().len(), 2);
}

#[test]
fn opentelemetry_variables_fill_missing_configuration() {
    let site = TestSite::open("no-store");
    let collector = OtelCollector::start(Behavior::Accepts);
    let endpoint = format!(
        "OTEL_EXPORTER_OTLP_ENDPOINT=http://{}/below",
        collector.address
    );
    let wrapper = [
        "env",
        &endpoint,
        "OTEL_SERVICE_NAME=named",
        "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=a%20test",
        "OTEL_EXPORTER_OTLP_HEADERS=x-key=sesame",
    ];
    let config = format!("[telemetry]\n{}", site.config_without_telemetry());
    let accelerator = Accelerator::start_under(&wrapper.map(OsStr::new), &config);
    get(&accelerator, "/a", "");
    collector.wait_for_spans(2);
    let request = &collector.requests()[0];
    assert_eq!(request.target(), "/below/v1/traces");
    assert_eq!(request.values("x-key"), ["sesame"]);
    let resource_spans = &collector.exports()[0].resource_spans[0];
    let resource = resource_spans.resource.as_ref().expect("a resource");
    assert_eq!(
        attribute_text(&resource.attributes, "service.name"),
        "named"
    );
    assert_eq!(
        attribute_text(&resource.attributes, "deployment.environment.name"),
        "a test"
    );
    // Without the `[telemetry]` table no spans are sent, whatever the variables are.
    let accelerator =
        Accelerator::start_under(&wrapper.map(OsStr::new), &site.config_without_telemetry());
    get(&accelerator, "/b", "");
    assert_eq!(
        site.origin.requests()[1].values("traceparent"),
        [] as [&str; 0]
    );
    assert_eq!(accelerator.count_lines_with("sending spans to"), 0);
}

#[test]
fn the_environments_sampler_applies_without_a_configured_one() {
    let site = TestSite::open("no-store");
    let collector = OtelCollector::start(Behavior::Accepts);
    for (sampler, keys, is_recorded, has_warning) in [
        ("parentbased_always_off", "", false, false),
        ("parentbased_always_off", "sample = 1", true, false),
        ("unheard_of", "", true, true),
    ] {
        let variable = format!("OTEL_TRACES_SAMPLER={sampler}");
        let wrapper = ["env", &variable].map(OsStr::new);
        let config = site.config(collector.address, keys);
        let accelerator = Accelerator::start_under(&wrapper, &config);
        get(&accelerator, "/a", "");
        let requests = site.origin.requests();
        let traceparents = requests.last().expect("a request").values("traceparent");
        let flags = if is_recorded { "-01" } else { "-00" };
        assert!(
            traceparents[0].ends_with(flags),
            "{sampler} {keys}: {traceparents:?}"
        );
        let warning_count =
            accelerator.count_lines_with("OTEL_TRACES_SAMPLER in the environment: expected");
        assert_eq!(warning_count, usize::from(has_warning), "{sampler} {keys}");
    }
}

#[cfg(unix)]
#[test]
fn a_reload_replaces_the_token_and_reports_restart_only_keys() {
    let site = TestSite::open("no-store");
    let collector = OtelCollector::start(Behavior::Accepts);
    site.write("headers", "Authorization: the first\n");
    let headers = site.path("headers");
    let keys = format!("headers_file = {headers:?}");
    let config = site.config(collector.address, &keys);
    let accelerator = Accelerator::start(&config);
    site.write("headers", "Authorization: the second\n");
    accelerator.reload(&config);
    accelerator.line_with("reloaded the configuration");
    get(&accelerator, "/a", "");
    collector.wait_for_spans(2);
    assert_eq!(
        collector.requests()[0].values("authorization"),
        ["the second"]
    );
    assert_eq!(accelerator.count_lines_with("[telemetry] changed"), 0);
    accelerator.reload(&site.config(collector.address, &format!("{keys}\nsample = 0")));
    accelerator.line_with("[telemetry] changed");
    get(&accelerator, "/b", "");
    collector.wait_for_spans(4);
}

#[test]
fn check_reports_telemetry_errors_without_the_token() {
    let site = TestSite::open("no-store");
    let collector = SocketAddr::from(([127, 0, 0, 1], 4318));
    site.write("headers", "sesame\n");
    let headers = site.path("headers");
    for (keys, code, expected) in [
        (
            format!("headers_file = {headers:?}"),
            2,
            "line 1: expected a header as Name: value",
        ),
        (
            "headers_file = '/nowhere'".to_owned(),
            2,
            "cannot read /nowhere",
        ),
        (
            "authority = '/nowhere'".to_owned(),
            2,
            "telemetry.authority: expected an https endpoint",
        ),
        (
            "sample = 2".to_owned(),
            2,
            "telemetry.sample: expected a number from 0 to 1, found 2",
        ),
        ("sample = 0.5".to_owned(), 0, "good"),
    ] {
        let (exit_code, message) = check(&site.config(collector, &keys));
        assert_eq!(exit_code, code, "{message}");
        assert!(
            message.contains(expected) && !message.contains("sesame"),
            "{message}"
        );
    }
}
