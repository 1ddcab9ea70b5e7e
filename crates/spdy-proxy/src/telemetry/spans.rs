//! Spans: how long each part of a request took, for a trace collector (OpenTelemetry).
//!
//! ```text
//!  client ── traceparent ──▶ SERVER    a request, to the last byte of its response                              serve/connection.rs
//!                              ├─ CLIENT    each request to an origin, to the head of its response             fetch/origin_spans.rs
//!                              │              └─ traceparent ──▶ the site's own origin, and no other host
//!                              ├─ INTERNAL  the rewriting of the response, to the last byte                    fetch/pump.rs
//!                              ┊ link
//!                            CLIENT    fetches in the background and prefetches: a separate trace
//! ```
//!
//! A request that is not sampled still has a trace ID and span ID, because its origin may get them. This module has no exporter and no wall
//! clock: the collector ([`SpanSink`]) also assigns the IDs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;

use crate::telemetry::trace_context::{SpanContext, SpanId, TraceId};

/// The outcome of an exchange that was dropped before its end.
const CANCELLED: &str = "cancelled";
/// The outcome of a response whose body was aborted.
pub(crate) const BROKEN: &str = "body-aborted";

/// Collects spans, and assigns their IDs.
pub trait SpanSink: fmt::Debug + Send + Sync {
    /// The ID of a new trace.
    fn trace_id(&self) -> TraceId;
    /// The ID of a new span.
    fn span_id(&self) -> SpanId;
    /// The span has ended. Request handlers call this, so it must not wait.
    fn take(&self, span: Span);
}

/// Which requests have spans, and what spans contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpanRules {
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// True if the `traceparent` of a client is trusted: the request then belongs to its trace. Otherwise each request begins a trace, with
    /// a link to the client's.
    pub trust_clients: bool,
    /// Spans contain queries, which may contain secrets.
    pub record_queries: bool,
}

/// Which traces are recorded (OpenTelemetry, *Sampler*).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// The recorded part of the traces, 0 to 1, by their numbers.
    pub part: f64,
    /// The client decides whether its trace is recorded here, regardless of the sampling ratio (*ParentBased*).
    pub follows_parents: bool,
}

impl Sampler {
    /// Records this part of the traces that begin here, and the other traces that their clients record.
    #[must_use]
    pub const fn by_parent(part: f64) -> Self {
        Self {
            part,
            follows_parents: true,
        }
    }

    /// A number up to 2^63; traces with lower numbers are recorded.
    fn below(self) -> u64 {
        // A float that is too large becomes the maximum, and NaN becomes 0.
        (self.part * (1_u64 << 63) as f64) as u64
    }
}

impl Default for Sampler {
    /// All traces that begin here.
    fn default() -> Self {
        Self::by_parent(1.0)
    }
}

/// The role of a span (OpenTelemetry, *SpanKind*).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SpanKind {
    /// A request of a client.
    Server,
    /// A request to an origin.
    Client,
    /// Work between the two.
    Internal,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttributeValue {
    /// At most [`TEXT_BYTES`](crate::telemetry::span_attributes::TEXT_BYTES) long if it comes from a peer.
    Text(Cow<'static, str>),
    /// An integer.
    Int(i64),
    /// A measure, with the unit in the attribute's name.
    Float(f64),
    /// Yes or no.
    Bool(bool),
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Its context.
    pub context: SpanContext,
    /// The span that it is a part of; `None`: it is the first of its trace.
    pub parent: Option<SpanId>,
    /// True if the parent is a span of another program.
    pub is_parent_remote: bool,
    /// The span of another trace that caused it.
    pub link: Option<SpanContext>,
    /// Its role.
    pub kind: SpanKind,
    /// Its name: few names for many spans.
    pub name: &'static str,
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Its attributes, with the names of `telemetry/span_attributes.rs`.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// The error (`error.type`).
    pub error: Option<Cow<'static, str>>,
}

/// All spans of an accelerator.
#[derive(Debug)]
pub struct Spans {
    rules: SpanRules,
    /// A number up to 2^63; traces with lower numbers are recorded.
    sampled_below: u64,
    sink: Arc<dyn SpanSink>,
    runtime: SharedRuntime,
}

/// The context of a request or a fetch in its trace, and its span if that is recorded.
#[derive(Debug)]
pub(crate) struct SpanScope {
    pub(crate) context: SpanContext,
    pub(crate) open: Option<OpenSpan>,
}

impl Spans {
    /// By `rules`, for `sink`; `runtime` has the clock.
    #[must_use]
    pub fn new(rules: SpanRules, sink: Arc<dyn SpanSink>, runtime: SharedRuntime) -> Self {
        Self {
            rules,
            sampled_below: rules.sampler.below(),
            sink,
            runtime,
        }
    }

    /// The span of a request that has the context `remote` of its client.
    pub(crate) fn server_span(
        self: &Arc<Self>,
        remote: Option<SpanContext>,
        name: &'static str,
    ) -> SpanScope {
        let context = match &remote {
            Some(remote) if self.rules.trust_clients => self.continued(remote),
            _ => self.root(None),
        };
        let mut place = self.place(context, SpanKind::Server, name);
        if let Some(open) = &mut place.open {
            open.set(|span| match remote {
                Some(remote) if self.rules.trust_clients => {
                    span.parent = Some(remote.span_id);
                    span.is_parent_remote = true;
                }
                remote => span.link = remote,
            });
        }
        place
    }

    /// A span within `parent`.
    pub(crate) fn child_span(
        self: &Arc<Self>,
        parent: &SpanContext,
        kind: SpanKind,
        name: &'static str,
    ) -> SpanScope {
        let mut place = self.place(self.child_of(parent), kind, name);
        if let Some(open) = &mut place.open {
            open.set(|span| span.parent = Some(parent.span_id));
        }
        place
    }

    /// A span in a separate trace, for work that `cause` leads to and that may outlive it. It is recorded if `cause` is.
    pub(crate) fn linked_span(
        self: &Arc<Self>,
        cause: &SpanContext,
        kind: SpanKind,
        name: &'static str,
    ) -> SpanScope {
        let mut place = self.place(self.root(Some(cause.is_sampled)), kind, name);
        if let Some(open) = &mut place.open {
            open.set(|span| span.link = Some(cause.clone()));
        }
        place
    }

    /// A span context in the trace of a client.
    fn continued(&self, remote: &SpanContext) -> SpanContext {
        let child = self.child_of(remote);
        SpanContext {
            is_sampled: match self.rules.sampler.follows_parents {
                true => remote.is_sampled,
                false => self.samples(remote.trace_id),
            },
            ..child
        }
    }

    fn child_of(&self, parent: &SpanContext) -> SpanContext {
        SpanContext {
            span_id: self.sink.span_id(),
            ..parent.clone()
        }
    }

    /// Whether the number of a trace is among those that are recorded (*TraceIdRatioBased*).
    fn samples(&self, trace_id: TraceId) -> bool {
        let number = trace_id.number() as u64 >> 1;
        number < self.sampled_below
    }

    /// The first span of a trace; whether it is recorded is given, or decided by its number.
    fn root(&self, is_sampled: Option<bool>) -> SpanContext {
        let trace_id = self.sink.trace_id();
        SpanContext {
            trace_id,
            span_id: self.sink.span_id(),
            is_sampled: is_sampled.unwrap_or_else(|| self.samples(trace_id)),
            state: None,
        }
    }

    fn place(
        self: &Arc<Self>,
        context: SpanContext,
        kind: SpanKind,
        name: &'static str,
    ) -> SpanScope {
        let open = context.is_sampled.then(|| {
            let now = self.runtime.now();
            let span = Span {
                context: context.clone(),
                parent: None,
                is_parent_remote: false,
                link: None,
                kind,
                name,
                began: now,
                ended: now,
                attributes: Vec::new(),
                error: Some(CANCELLED.into()),
            };
            OpenSpan {
                span: Some(Box::new(span)),
                spans: self.clone(),
            }
        });
        SpanScope { context, open }
    }
}

/// A span that has not ended. Dropping it ends it, as cancelled unless another outcome was set.
#[derive(Debug)]
pub(crate) struct OpenSpan {
    /// `None` after it has ended.
    span: Option<Box<Span>>,
    spans: Arc<Spans>,
}

impl OpenSpan {
    fn set(&mut self, change: impl FnOnce(&mut Span)) {
        if let Some(span) = &mut self.span {
            change(span);
        }
    }

    /// Whether its attributes contain queries.
    pub(crate) fn records_queries(&self) -> bool {
        self.spans.rules.record_queries
    }

    /// Adds an attribute.
    pub(crate) fn set_attribute(&mut self, name: &'static str, value: AttributeValue) {
        self.set(|span| span.attributes.push((name, value)));
    }

    /// Records that nothing has failed so far.
    pub(crate) fn set_ok(&mut self) {
        self.set(|span| span.error = None);
    }

    /// Sets the error, by one of few names.
    pub(crate) fn set_error(&mut self, error: impl Into<Cow<'static, str>>) {
        self.set(|span| span.error = Some(error.into()));
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            span.ended = self.spans.runtime.now();
            self.spans.sink.take(*span);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use http::HeaderMap;
    use spdy::runtime::TokioRuntime;

    use super::*;
    use crate::telemetry::trace_context::TRACEPARENT;

    /// Generates evenly spread IDs, and counts the spans it receives.
    #[derive(Debug, Default)]
    struct EvenIdSink {
        next: AtomicU64,
        span_count: AtomicU64,
    }

    impl SpanSink for EvenIdSink {
        fn trace_id(&self) -> TraceId {
            TraceId::of(
                self.span_id()
                    .to_bytes()
                    .into_iter()
                    .fold(0, |id, byte| id << 8 | u128::from(byte)),
            )
        }

        fn span_id(&self) -> SpanId {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            SpanId::of(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        }

        fn take(&self, _: Span) {
            self.span_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn spans(rules: SpanRules) -> (Arc<Spans>, Arc<EvenIdSink>) {
        let sink = Arc::new(EvenIdSink::default());
        let runtime = SharedRuntime::new(TokioRuntime::start());
        (Arc::new(Spans::new(rules, sink.clone(), runtime)), sink)
    }

    fn rules(part: f64, trust_clients: bool) -> SpanRules {
        SpanRules {
            sampler: Sampler::by_parent(part),
            trust_clients,
            record_queries: false,
        }
    }

    #[test]
    fn new_traces_are_sampled_by_ratio() {
        for (sample, recorded) in [(0.0, 0..=0), (0.25, 2_450..=2_550), (1.0, 10_000..=10_000)] {
            let (spans, sink) = spans(rules(sample, true));
            for _ in 0..10_000 {
                drop(spans.server_span(None, "GET"));
            }
            let span_count = sink.span_count.load(Ordering::Relaxed);
            assert!(recorded.contains(&span_count), "{sample}: {span_count}");
        }
    }

    #[test]
    fn remote_trace_is_sampled_by_id_unless_parent_based() {
        let client = |number: u64, flags: &str| {
            let remote = format!("00-{:016x}{number:016x}-{}2-{flags}", 1, "0".repeat(15));
            SpanContext::of(&HeaderMap::from_iter([(
                TRACEPARENT,
                remote.parse().unwrap(),
            )]))
        };
        for (part, number, flags, is_recorded) in [
            (1.0, u64::MAX, "00", true),
            (0.0, 1, "01", false),
            (0.5, u64::MAX >> 1, "00", true),
            (0.5, (u64::MAX >> 1) + 1, "01", false),
        ] {
            let (spans, _) = spans(SpanRules {
                sampler: Sampler {
                    part,
                    follows_parents: false,
                },
                ..rules(part, true)
            });
            let remote = client(number, flags);
            let place = spans.server_span(remote.clone(), "GET");
            let trace_id = remote.map(|remote| remote.trace_id);
            assert_eq!(Some(place.context.trace_id), trace_id, "it goes on");
            assert_eq!(place.context.is_sampled, is_recorded, "{part} {number:x}");
            assert_eq!(place.open.is_some(), is_recorded, "{part} {number:x}");
        }
    }

    #[test]
    fn client_sampling_applies_only_if_trusted() {
        for (trust_clients, sample, flags, is_recorded) in [
            (true, 0.0, "01", true),
            (true, 1.0, "00", false),
            (false, 0.0, "01", false),
            (false, 1.0, "00", true),
        ] {
            let (spans, _) = spans(rules(sample, trust_clients));
            let client = format!("00-{}2-{}2-{flags}", "0".repeat(31), "0".repeat(15));
            let headers = HeaderMap::from_iter([(TRACEPARENT, client.parse().unwrap())]);
            let remote = SpanContext::of(&headers);
            let place = spans.server_span(remote.clone(), "GET");
            let context = &place.context;
            let is_continued = Some(context.trace_id) == remote.map(|remote| remote.trace_id);
            assert_eq!(is_continued, trust_clients, "{client}");
            let within = spans.child_span(context, SpanKind::Client, "GET");
            let behind = spans.linked_span(context, SpanKind::Client, "GET");
            assert_eq!(within.context.trace_id, context.trace_id);
            assert_ne!(behind.context.trace_id, context.trace_id);
            for place in [&place, &within, &behind] {
                assert_eq!(place.context.is_sampled, is_recorded, "{client}");
                assert_eq!(place.open.is_some(), is_recorded, "{client}");
            }
        }
    }
}
