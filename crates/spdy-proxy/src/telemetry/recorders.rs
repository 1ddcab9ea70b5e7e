//! The recorders of the proxy: counters, latencies and spans.

use std::sync::{Arc, OnceLock};

use crate::telemetry::counters::Counters;
use crate::telemetry::origin_latency::OriginLatency;
use crate::telemetry::spans::{OpenSpan, SpanKind, Spans};
use crate::telemetry::trace_context::SpanContext;

/// Counters, latencies and spans.
#[derive(Debug, Default)]
pub struct Telemetry {
    /// What was done so far.
    pub counters: Counters,
    /// How long origins took to respond.
    pub latency: OriginLatency,
    spans: OnceLock<Arc<Spans>>,
}

impl Telemetry {
    /// Records requests in `spans` from now on. Only the first call has an effect.
    pub fn set_spans(&self, spans: Spans) {
        let _ = self.spans.set(Arc::new(spans));
    }

    pub(crate) fn spans(&self) -> Option<&Arc<Spans>> {
        self.spans.get()
    }

    /// The span of rewriting a response, as a part of `within`.
    pub(crate) fn rewrite_span(&self, within: Option<&SpanContext>) -> Option<OpenSpan> {
        let place = self
            .spans()?
            .child_span(within?, SpanKind::Internal, "rewrite");
        place.open
    }
}
