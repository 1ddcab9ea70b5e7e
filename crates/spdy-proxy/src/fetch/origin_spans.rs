//! The spans of one fetch: one for each origin that is asked, and what the site's own is told of them.

use std::sync::Arc;

use http::{HeaderMap, StatusCode, Version};
use spdy_cache::cache_status::Forward;

use crate::request::proxy_request::ProxyRequest;
use crate::telemetry::span_attributes::{set_origin_request, set_origin_response, span_name};
use crate::telemetry::spans::{OpenSpan, SpanKind, Spans};
use crate::telemetry::trace_context::SpanContext;
use crate::upstream::error::UpstreamError;

/// Spans of a fetch that goes on.
pub(crate) struct FetchSpans {
    spans: Arc<Spans>,
    /// What it is a part of, or what caused it.
    within: SpanContext,
    forward: Forward,
    /// Nobody waits for it.
    is_background: bool,
    /// How often origins were asked so far.
    asked: u8,
}

/// An origin is being asked.
pub(crate) struct OriginSpan(Option<OpenSpan>);

impl FetchSpans {
    /// Of a fetch for `wanted`; nothing where there are no spans.
    pub(crate) fn of(
        spans: Option<&Arc<Spans>>,
        wanted: &ProxyRequest,
        forward: Forward,
        is_background: bool,
    ) -> Option<Self> {
        Some(Self {
            spans: spans?.clone(),
            within: wanted.span_context.clone()?,
            forward,
            is_background,
            asked: 0,
        })
    }

    /// The origin of `at` is about to be asked, by `headers`: they tell the site's own where that belongs.
    pub(crate) fn ask(&mut self, at: &ProxyRequest, headers: &mut HeaderMap) -> OriginSpan {
        let (kind, name) = (SpanKind::Client, span_name(&at.ask.method));
        let is_first = self.asked == 0;
        let mut place = match self.is_background && is_first {
            true => self.spans.linked_span(&self.within, kind, name),
            false => self.spans.child_span(&self.within, kind, name),
        };
        if self.is_background && is_first {
            // The rest of it, and what comes of it, belongs to the trace that it began.
            self.within = place.context.clone();
        }
        if at.moved.is_none() {
            place.context.set_headers(headers);
        }
        if let Some(open) = &mut place.open {
            let (method, uri) = (&at.ask.method, &at.ask.uri);
            let (forward, is_background) = (self.forward, self.is_background);
            set_origin_request(open, method, uri, forward, is_background, self.asked);
        }
        self.asked = self.asked.saturating_add(1);
        OriginSpan(place.open)
    }

    /// What comes of the fetch is a part of this.
    pub(crate) fn into_context(self) -> SpanContext {
        self.within
    }
}

impl OriginSpan {
    /// It answered so, or did not.
    pub(crate) fn answered(self, answered: Result<(StatusCode, Version), &UpstreamError>) {
        if let Self(Some(mut open)) = self {
            set_origin_response(&mut open, answered);
        }
    }
}
