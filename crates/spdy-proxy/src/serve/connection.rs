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
use spdy_net::body_wrapper::with_guard;
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::refusal::Refusal;

use crate::cache::public_response::is_html;
use crate::proxy::Proxy;
use crate::request::client_origin::request_authority;
use crate::request::forward_headers::scheme_of;
use crate::request::origin_hints::HintedUrls;
use crate::response::respond::{self, OwnMessage};
use crate::response::server_timing::{OriginDuration, SharedTiming, TimingBreakdown};
use crate::serve::page_hints::supports_early_hints;
use crate::serve::push_and_hints::{PushAndHints, TrackedRequest};
use crate::sites::site::Site;
use crate::telemetry::access_log::{
    AccessLog, AccessLogEntry, BodyEnd, LoggedFields, PendingLogEntry, log_at_end, target_of,
};
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::telemetry::shared_access_log::SharedAccessLog;
use crate::telemetry::span_attributes::{set_request, set_response, span_name};
use crate::telemetry::spans::{BROKEN, OpenSpan, SpanScope};
use crate::telemetry::trace_context::{SpanContext, TraceId};

/// A connection's handler.
#[derive(Clone)]
pub struct ConnectionHandler {
    proxy: Arc<Proxy>,
    from: Option<IpAddr>,
    /// The alternative services that this listener announces (RFC 7838).
    alt_svc: Option<HeaderValue>,
    pages: PushAndHints,
    log: SharedAccessLog,
    cutoff: Latch,
    timing: SharedTiming,
}

impl std::fmt::Debug for ConnectionHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectionHandler")
            .field("from", &self.from)
            .finish_non_exhaustive()
    }
}

impl ConnectionHandler {
    /// Handles a client at `from`. `alt_svc` announces HTTP/3 on the listener. Clients get it with the public port.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>, from: Option<IpAddr>, alt_svc: Option<HeaderValue>) -> Self {
        Self {
            pages: PushAndHints::new(proxy.clone()),
            proxy,
            from,
            alt_svc,
            log: SharedAccessLog::default(),
            cutoff: Latch::new(),
            timing: SharedTiming::default(),
        }
    }

    /// Reports each response to `log`.
    #[must_use]
    pub fn with_access_log(mut self, log: impl Into<SharedAccessLog>) -> Self {
        self.log = log.into();
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
    fn url(&self, head: &request::Parts) -> Option<String> {
        let site = self.proxy.origins.site_for(head)?;
        let target = head.uri.path_and_query()?.as_str();
        Some([site.rules.site_origin(), target].concat())
    }

    /// Completes `response` to a pending request before it is sent. `outcome` is used if the response has no outcome yet.
    fn finish(
        &self,
        pending: PendingResponse,
        mut response: Response<Body>,
        outcome: Outcome,
    ) -> Response<Body> {
        if let Some(tracked) = pending.tracked {
            self.pages.finish_page(tracked, &mut response);
        }
        let recorded = response.extensions_mut().remove::<Outcome>();
        let outcome = recorded.unwrap_or(outcome).0;
        self.proxy
            .telemetry
            .counters
            .count(CounterFamily::Responses, outcome);
        let took = || self.proxy.clock.now() - pending.at;
        let is_own = response.extensions_mut().remove::<OwnMessage>().is_some();
        if let Some(site) = &pending.site {
            if let Some(page) = site.error_pages.get(response.status()).filter(|_| is_own) {
                response = respond::with_error_page(response, page);
            }
            if let Some(hsts) = site.hsts.clone().filter(|_| pending.is_secure) {
                response
                    .headers_mut()
                    .insert(header::STRICT_TRANSPORT_SECURITY, hsts);
            }
            let (counters, outcome) = (&site.counters, Outcome(outcome));
            counters.record_response(response.status(), outcome, took());
            // The body of a response to HEAD is never read.
            if !pending.is_head {
                response = response.map(|body| counters.count_body(outcome, body));
            }
        }
        let origin = response.extensions_mut().remove::<OriginDuration>();
        if let Some(url) = pending.times_for {
            let is_cached_page = origin.is_none() && is_html(response.headers());
            let url = url.filter(|_| is_cached_page);
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
        let log_entry = pending
            .about
            .map(|context| self.log_entry(context, pending.at, &response, outcome));
        if let Some(alt_svc) = &self.alt_svc {
            let public_alt_svc = self.proxy.origins.sites().alt_svc(alt_svc);
            response
                .headers_mut()
                .insert(header::ALT_SVC, public_alt_svc);
        }
        if let Some(mut span) = pending.span {
            set_response(&mut span, &response, Outcome(outcome));
            response = response.map(|body| with_span(body, span));
        }
        match log_entry {
            Some(log_entry) => response.map(|body| log_at_end(body, log_entry)),
            None => response,
        }
    }

    /// The log entry, as far as it is known when the head of `response` is sent.
    fn log_entry(
        &self,
        context: LogContext,
        began: Instant,
        response: &Response<Body>,
        outcome: &'static str,
    ) -> PendingLogEntry {
        let cache_status = response.headers().get_all(&CACHE_STATUS).iter();
        let cache_status = cache_status
            .filter_map(|cache_status| cache_status.to_str().ok())
            .next_back();
        let time_to_head = self.proxy.clock.now() - began;
        let entry = AccessLogEntry {
            at: context.at,
            method: Some(context.method),
            uri: Some(context.uri),
            target: Some(context.target),
            fields: context.fields,
            client: context.from,
            protocol: context.protocol,
            status: response.status(),
            outcome,
            cache_status: cache_status.map(str::to_owned),
            trace: context.trace,
            time_to_head,
            duration: time_to_head,
            bytes: 0,
            body_end: BodyEnd::Complete,
            page: None,
        };
        PendingLogEntry {
            log: context.log,
            entry,
            began,
            cut_off: self.cutoff.clone(),
            runtime: self.proxy.clock.runtime.clone(),
            reports: self.proxy.pages.reports.clone(),
            page: context.url.filter(|_| is_html(response.headers())),
        }
    }

    /// The span of a request and its place in the trace, if spans are recorded.
    fn start_span(&self, head: &request::Parts, from: Option<IpAddr>) -> Option<SpanScope> {
        let spans = self.proxy.telemetry.spans()?;
        let remote = SpanContext::of(&head.headers);
        let mut scope = spans.server_span(remote, span_name(&head.method));
        if let Some(open) = &mut scope.open {
            let arrival: Option<RequestInfo> = head.extensions.get().copied();
            let (scheme, authority) = (scheme_of(arrival), request_authority(head));
            set_request(open, head, scheme, authority, from);
        }
        Some(scope)
    }
}

impl Handler for ConnectionHandler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let at = self.proxy.clock.now();
        let (mut head, body) = request.into_parts();
        let from = self.proxy.origins.resolve_client(self.from, &mut head);
        // Before the proxy's own hints are sent.
        if supports_early_hints(&head) {
            head.extensions.insert(HintedUrls::default());
        }
        let times_for = self.timing.take(&mut head.headers);
        let (context, span) = match self.start_span(&head, from) {
            Some(scope) => (Some(scope.context), scope.open),
            None => (None, None),
        };
        let proxy = &self.proxy;
        let admission = proxy.admit(&head, from, at);
        // Nothing is pushed, hinted or learned for a request that may be refused.
        let tracked = match admission.is_open() {
            true => self.pages.start_page(&head, &body, from),
            false => None,
        };
        let arrival: Option<&RequestInfo> = head.extensions.get();
        let mut pending = PendingResponse {
            site: None,
            is_head: head.method == Method::HEAD,
            is_secure: arrival.is_some_and(|arrival| arrival.secure),
            at,
            times_for: times_for.then(|| self.url(&head)),
            about: self
                .log
                .current()
                .map(|log| self.log_context(log, &head, from, context.as_ref())),
            tracked,
            span,
        };
        let (site, response) = proxy.handle_admitted(admission, head, body, from, context, at);
        pending.site = site;
        match response {
            Either::Left(ready) => {
                let response = self.finish(pending, ready.into_inner(), Outcome::HIT);
                Box::pin(std::future::ready(response))
            }
            Either::Right(future) => {
                let handler = self.clone();
                Box::pin(async move {
                    let mut response = future.await;
                    let tracked = pending.tracked.as_ref();
                    handler.pages.wait_for_text(tracked, &mut response).await;
                    handler.finish(pending, response, Outcome::UNCACHEABLE)
                })
            }
        }
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        let counters = &self.proxy.telemetry.counters;
        counters.count(CounterFamily::Responses, Outcome::MALFORMED.0);
        counters.count(CounterFamily::RefusedRequests, refusal.flaw.name());
        if let Some(log) = self.log.current() {
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
    /// Its site, if its host is known.
    site: Option<Arc<Site>>,
    is_head: bool,
    /// The client uses TLS.
    is_secure: bool,
    /// The client gets the times of the response; the URL, if it has one.
    times_for: Option<Option<String>>,
    about: Option<LogContext>,
    tracked: Option<TrackedRequest>,
    /// The span of the request, if it is recorded.
    span: Option<OpenSpan>,
}

/// The part of a log entry that is about the request.
struct LogContext {
    log: AccessLog,
    at: SystemTime,
    from: Option<IpAddr>,
    method: Method,
    uri: String,
    target: String,
    fields: LoggedFields,
    /// The URL with the site's first name.
    url: Option<String>,
    protocol: Option<Protocol>,
    trace: Option<TraceId>,
}

impl ConnectionHandler {
    /// The part of a log entry about a request `within` a trace, or with the trace that its client sent.
    fn log_context(
        &self,
        log: AccessLog,
        head: &request::Parts,
        from: Option<IpAddr>,
        within: Option<&SpanContext>,
    ) -> LogContext {
        let host = head.headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let uri = match head.uri.authority() {
            Some(_) => head.uri.to_string(),
            None => format!("{host}{}", head.uri),
        };
        let arrival: Option<&RequestInfo> = head.extensions.get();
        LogContext {
            log,
            at: self.proxy.clock.wall_now(),
            from,
            method: head.method.clone(),
            uri,
            target: target_of(&head.uri),
            fields: LoggedFields::of(&head.headers),
            url: self.url(head),
            protocol: arrival.map(|arrival| arrival.protocol),
            trace: match within {
                Some(within) => Some(within.trace_id),
                None => SpanContext::of(&head.headers).map(|remote| remote.trace_id),
            },
        }
    }
}

/// `body`; `span` lasts until its end.
fn with_span(body: Body, span: OpenSpan) -> Body {
    with_guard(body, span, |span| span.set_error(BROKEN))
}
