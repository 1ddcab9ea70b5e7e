//! The spans of one fetch: one for each request to an origin, and the trace context that the site's own origin gets.

use std::sync::Arc;

use http::{HeaderMap, StatusCode, Version};
use spdy_cache::cache_status::Forward;

use crate::request::proxy_request::ProxyRequest;
use crate::telemetry::span_attributes::{set_origin_request, set_origin_response, span_name};
use crate::telemetry::spans::{OpenSpan, SpanKind, Spans};
use crate::telemetry::trace_context::SpanContext;
use crate::upstream::error::UpstreamError;

/// Spans of a fetch in progress.
pub(crate) struct FetchSpans {
    spans: Arc<Spans>,
    /// The span that it is a part of, or that caused it.
    within: SpanContext,
    forward: Forward,
    /// No client waits for it.
    is_background: bool,
    /// The number of requests to origins so far.
    origin_requests: u8,
}

/// The span of a request to an origin.
pub(crate) struct OriginSpan(Option<OpenSpan>);

impl FetchSpans {
    /// For a fetch of `request`; `None` if there are no spans.
    pub(crate) fn of(
        spans: Option<&Arc<Spans>>,
        request: &ProxyRequest,
        forward: Forward,
        is_background: bool,
    ) -> Option<Self> {
        Some(Self {
            spans: spans?.clone(),
            within: request.span_context.clone()?,
            forward,
            is_background,
            origin_requests: 0,
        })
    }

    /// Starts the span of a request to the origin of `at`. If it is the site's own, `headers` get the trace context.
    pub(crate) fn start_request(
        &mut self,
        at: &ProxyRequest,
        headers: &mut HeaderMap,
    ) -> OriginSpan {
        let (kind, name) = (SpanKind::Client, span_name(&at.head.method));
        let is_first = self.origin_requests == 0;
        let mut scope = match self.is_background && is_first {
            true => self.spans.linked_span(&self.within, kind, name),
            false => self.spans.child_span(&self.within, kind, name),
        };
        if self.is_background && is_first {
            // The rest of the fetch, and its consequences, belong to the trace that it began.
            self.within = scope.context.clone();
        }
        if at.proxied.is_none() {
            scope.context.set_headers(headers);
        }
        if let Some(open) = &mut scope.open {
            let (method, uri) = (&at.head.method, &at.head.uri);
            let (forward, is_background) = (self.forward, self.is_background);
            set_origin_request(
                open,
                method,
                uri,
                forward,
                is_background,
                self.origin_requests,
            );
        }
        self.origin_requests = self.origin_requests.saturating_add(1);
        OriginSpan(scope.open)
    }

    /// The context for the consequences of the fetch.
    pub(crate) fn into_context(self) -> SpanContext {
        self.within
    }
}

impl OriginSpan {
    /// Records the response, or its absence.
    pub(crate) fn finish(self, result: Result<(StatusCode, Version), &UpstreamError>) {
        if let Self(Some(mut open)) = self {
            set_origin_response(&mut open, result.map_err(UpstreamError::name));
        }
    }
}
