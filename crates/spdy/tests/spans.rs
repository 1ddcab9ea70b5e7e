//! The spans of `tracing`, as a subscriber sees them.
//!
//! A test program of its own, because `tracing` caches for the whole process which call sites are enabled.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use spdy::client::{self, OpenOptions};
use spdy::{Body, HeaderBlock, Priority, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// One span that has ended, or an event, with the names of the spans around it, the nearest first.
#[derive(Clone, Debug, Default)]
struct SpanRecord {
    name: &'static str,
    within: Vec<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

#[derive(Clone, Default)]
struct SpanLog(Arc<Mutex<Vec<SpanRecord>>>);

impl Visit for SpanRecord {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLog {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).expect("a new span");
        let mut record = SpanRecord {
            name: span.name(),
            within: span.scope().skip(1).map(|span| span.name()).collect(),
            ..SpanRecord::default()
        };
        attributes.record(&mut record);
        span.extensions_mut().insert(record);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let span = context.span(id).expect("a span");
        let mut extensions = span.extensions_mut();
        values.record(
            extensions
                .get_mut::<SpanRecord>()
                .expect("recorded when the span was new"),
        );
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if event.metadata().target() == "spans" {
            let around = context.event_span(event);
            let around = around
                .iter()
                .flat_map(tracing_subscriber::registry::SpanRef::scope);
            let mut record = SpanRecord {
                name: "event",
                within: around.map(|span| span.name()).collect(),
                ..SpanRecord::default()
            };
            event.record(&mut record);
            self.0.lock().expect("no panic").push(record);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("a span");
        let record = span.extensions_mut().remove::<SpanRecord>();
        let record = record.expect("recorded when the span was new");
        self.0.lock().expect("no panic").push(record);
    }
}

impl SpanLog {
    /// Notes all that this thread does while the guard lives.
    fn take() -> (Self, DefaultGuard) {
        let log = Self::default();
        let subscriber = tracing_subscriber::registry().with(log.clone());
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The one span called `name` of `role`.
    fn only_span(&self, name: &str, role: &str) -> SpanRecord {
        let all = self.0.lock().expect("no panic");
        let fits = |record: &&SpanRecord| record.name == name && record.fields["role"] == role;
        let matching: Vec<_> = all.iter().filter(fits).cloned().collect();
        assert_eq!(matching.len(), 1, "{name} of a {role} in {all:#?}");
        matching[0].clone()
    }
}

#[track_caller]
fn assert_fields(record: &SpanRecord, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let actual = record.fields.get(name).map(String::as_str);
        assert_eq!(actual, Some(*value), "{name} of {record:#?}");
    }
}

#[tokio::test]
async fn a_request_has_spans_at_both_ends_around_its_service() {
    let (log, _guard) = SpanLog::take();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server_task = tokio::spawn(server::serve(far, |request: Request<Body>| async move {
        let body = request.into_body().collect_up_to(1000).await;
        tracing::info!(target: "spans", "answering");
        Response::new(Body::full(vec![0; body.expect("a body").len() * 2]))
    }));
    let (session, connection) = client::handshake(near);
    connection.spawn();
    let request = Request::post("http://example.org/path?secret=1").body(Body::full(vec![1; 300]));
    let request = request.expect("a valid URL");
    let page = tracing::info_span!("page");
    let response = page.in_scope(|| session.request(request, Priority::HIGHEST));
    let body = response.await.expect("a response").into_body();
    assert_eq!(body.collect_up_to(1000).await.expect("a body").len(), 600);
    drop(page);
    drop(session);
    server_task
        .await
        .expect("no panic")
        .expect("an orderly end");
    tokio::task::yield_now().await;

    let client_span = log.only_span("spdy.stream", "client");
    assert_eq!(client_span.within, ["page"]);
    let about = [
        ("stream", "1"),
        ("method", "POST"),
        ("path", "/path"),
        ("status", "200"),
    ];
    assert_fields(&client_span, &about);
    assert_fields(
        &client_span,
        &[("sent_bytes", "300"), ("received_bytes", "600")],
    );
    let server_span = log.only_span("spdy.stream", "server");
    assert_eq!(server_span.within, ["spdy.session"]);
    assert_fields(&server_span, &about);
    assert_fields(
        &server_span,
        &[("sent_bytes", "600"), ("received_bytes", "300")],
    );
    for span in [&client_span, &server_span] {
        assert!(span.fields.contains_key("duration_us"), "{span:#?}");
        assert!(!span.fields.contains_key("error"), "{span:#?}");
    }
    for role in ["client", "server"] {
        let session = log.only_span("spdy.session", role);
        assert_fields(&session, &[("version", "3.1"), ("streams", "1")]);
    }
    let all = log.0.lock().expect("no panic");
    let event = all.iter().find(|record| record.name == "event");
    let within = &event.expect("the service logged an event").within;
    assert_eq!(within[..], ["spdy.stream", "spdy.session"]);
    assert!(
        !format!("{all:?}").contains("secret"),
        "queries stay out of logs"
    );
}

#[tokio::test]
async fn a_stream_without_http_has_a_span_until_its_reset() {
    let (log, _guard) = SpanLog::take();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (mut accept, connection) = server::handshake(far);
    connection.spawn();
    let (session, connection) = client::handshake(near);
    connection.spawn();
    let headers = HeaderBlock::from_iter([("streamtype", "data")]);
    let mut stream = session
        .open(headers, OpenOptions::default())
        .await
        .expect("a stream");
    stream.write_all(b"hello").await.expect("room");
    let incoming = accept.next().await.expect("a stream");
    let mut accepted_stream = incoming.accept_raw(&HeaderBlock::new()).expect("a stream");
    let mut hello = [0; 5];
    accepted_stream.read_exact(&mut hello).await.expect("hello");
    accepted_stream.reset(spdy::RstStatus::INTERNAL_ERROR);
    stream.failed().await;
    drop(stream);

    let client_span = log.only_span("spdy.stream", "client");
    assert_fields(&client_span, &[("stream", "1"), ("sent_bytes", "5")]);
    let error = "the peer reset stream 1: INTERNAL_ERROR";
    assert_fields(&client_span, &[("error", error)]);
    assert!(
        !client_span.fields.contains_key("method"),
        "{client_span:#?}"
    );
    let server_span = log.only_span("spdy.stream", "server");
    assert_fields(&server_span, &[("received_bytes", "5")]);
}
