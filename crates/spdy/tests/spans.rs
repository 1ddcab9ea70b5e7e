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
        let mut noted = SpanRecord {
            name: span.name(),
            within: span.scope().skip(1).map(|span| span.name()).collect(),
            ..SpanRecord::default()
        };
        attributes.record(&mut noted);
        span.extensions_mut().insert(noted);
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
            let mut noted = SpanRecord {
                name: "event",
                within: around.map(|span| span.name()).collect(),
                ..SpanRecord::default()
            };
            event.record(&mut noted);
            self.0.lock().expect("no panic").push(noted);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let span = context.span(&id).expect("a span");
        let noted = span.extensions_mut().remove::<SpanRecord>();
        let noted = noted.expect("recorded when the span was new");
        self.0.lock().expect("no panic").push(noted);
    }
}

impl SpanLog {
    /// Notes all that this thread does while the guard lives.
    fn take() -> (Self, DefaultGuard) {
        let notes = Self::default();
        let subscriber = tracing_subscriber::registry().with(notes.clone());
        (notes, tracing::subscriber::set_default(subscriber))
    }

    /// The one span called `name` of `role`.
    fn one(&self, name: &str, role: &str) -> SpanRecord {
        let all = self.0.lock().expect("no panic");
        let fits = |noted: &&SpanRecord| noted.name == name && noted.fields["role"] == role;
        let found: Vec<_> = all.iter().filter(fits).cloned().collect();
        assert_eq!(found.len(), 1, "{name} of a {role} in {all:#?}");
        found[0].clone()
    }
}

#[track_caller]
fn assert_fields(noted: &SpanRecord, want: &[(&str, &str)]) {
    for (name, value) in want {
        let got = noted.fields.get(name).map(String::as_str);
        assert_eq!(got, Some(*value), "{name} of {noted:#?}");
    }
}

#[tokio::test]
async fn a_request_is_followed_at_both_ends_and_its_service_runs_within() {
    let (notes, _guard) = SpanLog::take();
    let (near, far) = tokio::io::duplex(64 * 1024);
    let serving = tokio::spawn(server::serve(far, |request: Request<Body>| async move {
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
    serving.await.expect("no panic").expect("an orderly end");
    tokio::task::yield_now().await;

    let asked = notes.one("spdy.stream", "client");
    assert_eq!(asked.within, ["page"]);
    let about = [
        ("stream", "1"),
        ("method", "POST"),
        ("path", "/path"),
        ("status", "200"),
    ];
    assert_fields(&asked, &about);
    assert_fields(&asked, &[("sent_bytes", "300"), ("received_bytes", "600")]);
    let answered = notes.one("spdy.stream", "server");
    assert_eq!(answered.within, ["spdy.session"]);
    assert_fields(&answered, &about);
    assert_fields(
        &answered,
        &[("sent_bytes", "600"), ("received_bytes", "300")],
    );
    for span in [&asked, &answered] {
        assert!(span.fields.contains_key("duration_us"), "{span:#?}");
        assert!(!span.fields.contains_key("error"), "{span:#?}");
    }
    for role in ["client", "server"] {
        let session = notes.one("spdy.session", role);
        assert_fields(&session, &[("version", "3.1"), ("streams", "1")]);
    }
    let all = notes.0.lock().expect("no panic");
    let event = all.iter().find(|noted| noted.name == "event");
    let within = &event.expect("the service logged an event").within;
    assert_eq!(within[..], ["spdy.stream", "spdy.session"]);
    assert!(
        !format!("{all:?}").contains("secret"),
        "queries stay out of logs"
    );
}

#[tokio::test]
async fn a_stream_without_http_is_followed_to_its_reset() {
    let (notes, _guard) = SpanLog::take();
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
    let mut taken = incoming.accept_raw(&HeaderBlock::new()).expect("a stream");
    let mut hello = [0; 5];
    taken.read_exact(&mut hello).await.expect("hello");
    taken.reset(spdy::RstStatus::INTERNAL_ERROR);
    stream.failed().await;
    drop(stream);

    let opened = notes.one("spdy.stream", "client");
    assert_fields(&opened, &[("stream", "1"), ("sent_bytes", "5")]);
    let error = "the peer reset stream 1: INTERNAL_ERROR";
    assert_fields(&opened, &[("error", error)]);
    assert!(!opened.fields.contains_key("method"), "{opened:#?}");
    let accepted = notes.one("spdy.stream", "server");
    assert_fields(&accepted, &[("received_bytes", "5")]);
}
