//! One connection of a client: its requests and their responses, with the log, the spans and the timing of each.
//!
//! What is pushed or hinted with its pages is in `push_and_hints.rs`.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::Either;
use http::{HeaderValue, Method, Request, Response, header, request};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_cache::cache_status::CACHE_STATUS;
use spdy_clock::Instant;
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::refusal::Refusal;

use crate::body::guarded_body::with_guard;
use crate::cache::public_response::is_html;
use crate::proxy::Proxy;
use crate::request::client_origin::request_authority;
use crate::request::forward_headers::scheme_of;
use crate::response::server_timing::{OriginDuration, SharedTiming, TimingBreakdown};
use crate::serve::push_and_hints::{PushAndHints, TrackedRequest};
use crate::telemetry::access_log::{
    AccessLog, AccessLogEntry, BodyEnd, PendingLogEntry, log_at_end,
};
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::telemetry::span_attributes::{set_request, set_response, span_name};
use crate::telemetry::spans::{BROKEN, OpenSpan, SpanScope};
use crate::telemetry::trace_context::{SpanContext, TraceId};

/// A connection's handler.
#[derive(Clone)]
pub struct ConnectionHandler {
    proxy: Arc<Proxy>,
    from: Option<IpAddr>,
    /// Where else the same is served, as this listener announces it (RFC 7838).
    alt_svc: Option<HeaderValue>,
    pages: PushAndHints,
    log: Option<AccessLog>,
    cutoff: Latch,
    timing: SharedTiming,
}

impl std::fmt::Debug for ConnectionHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Visit")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl ConnectionHandler {
    /// Handles a client at `from`. `alt_svc` announces HTTP/3 where the client connected. Clients get it with the port by which they reach
    /// it.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>, from: Option<IpAddr>, alt_svc: Option<HeaderValue>) -> Self {
        Self {
            pages: PushAndHints::new(proxy.clone()),
            proxy,
            from,
            alt_svc,
            log: None,
            cutoff: Latch::new(),
            timing: SharedTiming::default(),
        }
    }

    /// Reports each response to `log`.
    #[must_use]
    pub fn with_access_log(mut self, log: Option<AccessLog>) -> Self {
        self.log = log;
        self
    }

    /// Records a body that ends after `cut_off` is set as cut off by the program, not by the client (`ListenOptions::cut_off`).
    #[must_use]
    pub fn with_cutoff(mut self, cut_off: Latch) -> Self {
        self.cutoff = cut_off;
        self
    }

    /// Sends the times of a response to the clients that `timing` allows.
    #[must_use]
    pub fn timing(mut self, timing: SharedTiming) -> Self {
        self.timing = timing;
        self
    }

    /// The URL of the request, as browsers see it.
    fn url(&self, asked: &request::Parts) -> Option<String> {
        let site = self.proxy.origins.site_for(asked)?;
        let target = asked.uri.path_and_query()?.as_str();
        Some([site.rules.site_origin(), target].concat())
    }

    /// Completes `response` to a pending request before it is sent. `outcome` counts if the response has no outcome of its own.
    fn finish(
        &self,
        began: PendingResponse,
        mut response: Response<Body>,
        outcome: Outcome,
    ) -> Response<Body> {
        if let Some(asked) = began.asked {
            self.pages.finish_page(asked, &mut response);
        }
        let known = response.extensions_mut().remove::<Outcome>();
        let outcome = known.unwrap_or(outcome).0;
        self.proxy
            .telemetry
            .counters
            .count(CounterFamily::Responses, outcome);
        let took = || self.proxy.clock.now() - began.at;
        let origin = response.extensions_mut().remove::<OriginDuration>();
        if let Some(url) = began.times_for {
            let is_kept = origin.is_none() && is_html(response.headers());
            let url = url.filter(|_| is_kept);
            let times = TimingBreakdown {
                outcome,
                origin: origin.map(|origin| origin.0),
                rewriting_ms: url.and_then(|url| self.proxy.pages.reports.rewriting_ms(&url)),
                total: took(),
            };
            times.append_to(response.headers_mut());
        }
        if !response.headers().contains_key(header::DATE) {
            let now = spdy_cache::date::to_value(self.proxy.clock.wall_now());
            response.headers_mut().insert(header::DATE, now);
        }
        let line = self.log.clone().zip(began.about);
        let line = line.map(|(log, about)| self.line(log, about, began.at, &response, outcome));
        if let Some(alt_svc) = &self.alt_svc {
            let told = self.proxy.origins.sites().alt_svc(alt_svc);
            response.headers_mut().insert(header::ALT_SVC, told);
        }
        if let Some(mut span) = began.span {
            set_response(&mut span, &response, Outcome(outcome));
            response = response.map(|body| with_span(body, span));
        }
        match line {
            Some(line) => response.map(|body| log_at_end(body, line)),
            None => response,
        }
    }

    /// The entry for `log`, as far as it is known at the head of `response`.
    fn line(
        &self,
        log: AccessLog,
        about: LogContext,
        began: Instant,
        response: &Response<Body>,
        outcome: &'static str,
    ) -> PendingLogEntry {
        let told = response.headers().get_all(&CACHE_STATUS).iter();
        let told = told.filter_map(|told| told.to_str().ok()).next_back();
        let head = self.proxy.clock.now() - began;
        let answered = AccessLogEntry {
            at: about.at,
            method: Some(about.method),
            uri: Some(about.uri),
            client: about.from,
            protocol: about.protocol,
            status: response.status(),
            outcome,
            cache_status: told.map(str::to_owned),
            trace: about.trace,
            time_to_head: head,
            duration: head,
            bytes: 0,
            body_end: BodyEnd::Complete,
            page: None,
        };
        PendingLogEntry {
            log,
            answered,
            began,
            cut_off: self.cutoff.clone(),
            runtime: self.proxy.clock.runtime.clone(),
            reports: self.proxy.pages.reports.clone(),
            page: about.url.filter(|_| is_html(response.headers())),
        }
    }

    /// The span of a request and its place in the trace, if spans are recorded.
    fn start_span(&self, asked: &request::Parts, from: Option<IpAddr>) -> Option<SpanScope> {
        let spans = self.proxy.telemetry.spans()?;
        let told = SpanContext::of(&asked.headers);
        let mut place = spans.server_span(told, span_name(&asked.method));
        if let Some(open) = &mut place.open {
            let arrival: Option<RequestInfo> = asked.extensions.get().copied();
            let (scheme, authority) = (scheme_of(arrival), request_authority(asked));
            set_request(open, asked, scheme, authority, from);
        }
        Some(place)
    }
}

impl Handler for ConnectionHandler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let (mut asked, body) = request.into_parts();
        let from = self.proxy.origins.resolve_client(self.from, &mut asked);
        let times_for = self.timing.take(&mut asked.headers);
        let (within, span) = match self.start_span(&asked, from) {
            Some(place) => (Some(place.context), place.open),
            None => (None, None),
        };
        let began = PendingResponse {
            at: self.proxy.clock.now(),
            times_for: times_for.then(|| self.url(&asked)),
            about: self
                .log
                .as_ref()
                .map(|_| self.log_context(&asked, from, within.as_ref())),
            asked: self.pages.start_page(&asked, &body, from),
            span,
        };
        let request = Request::from_parts(asked, body);
        match self.proxy.handle_traced_request(request, from, within) {
            Either::Left(kept) => {
                let response = self.finish(began, kept.into_inner(), Outcome::HIT);
                Box::pin(std::future::ready(response))
            }
            Either::Right(coming) => {
                let visit = self.clone();
                Box::pin(async move { visit.finish(began, coming.await, Outcome::UNCACHEABLE) })
            }
        }
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        let counters = &self.proxy.telemetry.counters;
        counters.count(CounterFamily::Responses, Outcome::MALFORMED.0);
        counters.count(CounterFamily::RefusedRequests, refusal.flaw.name());
        if let Some(log) = &self.log {
            let from = self.from.zip(refusal.headers);
            let from =
                from.map(|(from, headers)| self.proxy.origins.client_of_malformed(from, headers));
            let from = from.or(self.from);
            log(&AccessLogEntry::malformed_request(
                refusal,
                self.proxy.clock.wall_now(),
                from,
            ));
        }
    }
}

/// A pending request, and what is reported with its response.
struct PendingResponse {
    at: Instant,
    /// The client gets the times of the response; the URL, if it has one.
    times_for: Option<Option<String>>,
    about: Option<LogContext>,
    asked: Option<TrackedRequest>,
    /// The span of the request, if it is recorded.
    span: Option<OpenSpan>,
}

/// What a log entry has of a request.
struct LogContext {
    at: SystemTime,
    from: Option<IpAddr>,
    method: Method,
    uri: String,
    /// The same as browsers see it, by the site's first name.
    url: Option<String>,
    protocol: Option<Protocol>,
    trace: Option<TraceId>,
}

impl ConnectionHandler {
    /// What a log entry has of a request with a place `within` a trace, or with the trace that its client names.
    fn log_context(
        &self,
        asked: &request::Parts,
        from: Option<IpAddr>,
        within: Option<&SpanContext>,
    ) -> LogContext {
        let host = asked.headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let uri = match asked.uri.authority() {
            Some(_) => asked.uri.to_string(),
            None => format!("{host}{}", asked.uri),
        };
        let arrival: Option<&RequestInfo> = asked.extensions.get();
        LogContext {
            at: self.proxy.clock.wall_now(),
            from,
            method: asked.method.clone(),
            uri,
            url: self.url(asked),
            protocol: arrival.map(|arrival| arrival.protocol),
            trace: match within {
                Some(within) => Some(within.trace_id),
                None => SpanContext::of(&asked.headers).map(|told| told.trace_id),
            },
        }
    }
}

/// `body`; `span` lasts until its end.
fn with_span(body: Body, span: OpenSpan) -> Body {
    with_guard(body, span, |span| span.set_error(BROKEN))
}
