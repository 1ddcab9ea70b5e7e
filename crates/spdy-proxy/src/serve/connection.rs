//! One connection of a client: its address, what it has received, and what is pushed or hinted with the pages it requests.
//!
//! Nothing is pushed or hinted before the page is known to be public: the cache has a public copy, and this request
//! would be answered with it (`public`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::future::Either;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, request,
};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy::runtime::BoxFuture;
use spdy_cache::cache_status::CACHE_STATUS;
use spdy_cache::lookup;
use spdy_clock::Instant;
use spdy_net::handler::{Handler, Pusher, RequestInfo};
use spdy_net::interim::early_hints::EarlyHints;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::refusal::Refusal;
use spdy_rewrite::reference::integrity::strip_unrewritten_mark;
use spdy_server::learned_resources::ResourceLoad;
use spdy_server::push_plan::{
    Budget, CandidateState, Hint, Hints, Plan, PlannedPush, PushCandidate, early_link_value,
    link_value, plan,
};
use spdy_server::session_history::{SessionHistory as MemoryStore, UrlDigest};
use spdy_server::site_pusher::is_normal;

use crate::cache::public_response::{self, PublicPage, is_html};
use crate::prefetch::page_resources::{Candidate, SubresourceRequest, target_at};
use crate::prefetch::prefetcher::LoadHints;
use crate::proxy::{Proxy, request_authority};
use crate::request::forgeable_headers::has_credentials;
use crate::request::proxy_request::{ProxyRequest, client_origin_text, is_rewriting_disabled};
use crate::response::server_timing::{OriginDuration, SharedTiming, TimingBreakdown};
use crate::sites::site_table::Site;
use crate::telemetry::access_log::{
    AccessLog, AccessLogEntry, BodyEnd, PendingLogEntry, log_at_end,
};
use crate::telemetry::counters::{CounterFamily, Outcome};
use crate::telemetry::page_reports::PushedAndHinted;
use crate::telemetry::span_attributes::{set_request, set_response, span_name};
use crate::telemetry::spans::{OpenSpan, SpanScope, with_span};
use crate::telemetry::trace_context::{SpanContext, TraceId};

/// What a browser uses the response for (W3C Fetch Metadata).
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// How a browser makes the request.
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// A connection's handler.
#[derive(Clone)]
pub struct ConnectionHandler {
    proxy: Arc<Proxy>,
    from: Option<IpAddr>,
    /// Where else the same is served, as this listener announces it (RFC 7838).
    alt_svc: Option<HeaderValue>,
    session_history: Arc<Mutex<MemoryStore>>,
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

/// A GET that is being answered, as far as it is about pages.
struct TrackedRequest {
    /// Recorded when the request is answered.
    digest: UrlDigest,
    page: Option<PageRequest>,
}

/// A requested page, and what its response adds.
struct PageRequest {
    url: String,
    from: Option<IpAddr>,
    is_new: bool,
    /// The origin may know the client.
    has_credentials: bool,
    /// The variant of the public page that the request selects; `None` if the page is not known to be public.
    public: Option<Vec<u8>>,
    /// Hints that go into the head of the answer.
    links: Vec<Hint>,
    /// Targets that the client receives hints for.
    hinted: Vec<String>,
}

impl ConnectionHandler {
    /// Handles a client at `from`. `alt_svc` announces HTTP/3 where the client connected. Clients get it with the port by which they reach
    /// it.
    #[must_use]
    pub fn new(proxy: Arc<Proxy>, from: Option<IpAddr>, alt_svc: Option<HeaderValue>) -> Self {
        let memory = MemoryStore::new(proxy.digest_key());
        Self {
            proxy,
            from,
            alt_svc,
            session_history: Arc::new(Mutex::new(memory)),
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

    fn memory(&self) -> MutexGuard<'_, MemoryStore> {
        self.session_history.lock()
    }

    /// The URL of the request, as browsers see it.
    fn url(&self, asked: &request::Parts) -> Option<String> {
        let site = self.proxy.site_for(asked)?;
        let target = asked.uri.path_and_query()?.as_str();
        Some([site.rules.site_origin(), target].concat())
    }

    /// Learns from a request of a client at `from`. If it is for a page, pushes or hints its resources before the response starts.
    ///
    /// The response to a request with content depends on the content, so such a request is not about the page at its URL.
    fn start_page(
        &self,
        asked: &request::Parts,
        body: &Body,
        from: Option<IpAddr>,
    ) -> Option<TrackedRequest> {
        if asked.method != Method::GET || !http_body::Body::is_end_stream(body) {
            return None;
        }
        let arrival: Option<&RequestInfo> = asked.extensions.get();
        let cannot_push = arrival.is_some_and(|arrival| arrival.protocol == Protocol::Http1);
        if cannot_push && !asked.headers.contains_key(header::REFERER) && !is_navigation(asked) {
            return None; // nothing to learn from it, and nothing to push or hint
        }
        let site = self.proxy.site_for(asked)?;
        let target = asked.uri.path_and_query()?.as_str();
        // By the host name that the client used: its pushes and hints must have that name.
        let home = client_origin_text(&site, arrival.copied(), request_authority(asked)?)?;
        let text = [&*home, target].concat();
        self.record_subresource(&home, asked, from, target, &text);
        let digest = self.memory().digest(&text);
        let is_page = is_navigation(asked)
            && strip_unrewritten_mark(target).is_none()
            && !is_rewriting_disabled(&asked.headers);
        let page = is_page.then(|| self.page(&site, asked, from, &home, text, digest));
        let page = page.flatten();
        Some(TrackedRequest { digest, page })
    }

    /// The page at `text` that a client at `from` requests, with what can be pushed or hinted now.
    fn page(
        &self,
        site: &Arc<Site>,
        asked: &request::Parts,
        from: Option<IpAddr>,
        home: &str,
        text: String,
        digest: UrlDigest,
    ) -> Option<PageRequest> {
        let url: Uri = text.parse().ok()?;
        let mut page = PageRequest {
            from,
            is_new: !self.memory().has(digest),
            has_credentials: has_credentials(&asked.headers),
            public: self.public_variant(site, asked, &text),
            links: Vec::new(),
            hinted: Vec::new(),
            url: text,
        };
        let Some(variant) = &page.public else {
            return Some(page);
        };
        let now = self.proxy.runtime.now();
        let companions = &self.proxy.resources;
        let candidates = companions.candidates(now, home, &page.url, variant);
        let wishes = candidates
            .into_iter()
            .filter_map(|it| self.preload_for(site, asked, it));
        let arrival: Option<&RequestInfo> = asked.extensions.get();
        let priority = arrival.map(|arrival| arrival.priority).unwrap_or_default();
        let budget = Budget::default();
        let Plan { pushes, mut hints } = plan(
            &url,
            priority,
            &budget,
            Hints::Remaining,
            wishes,
            |uri, wish| {
                let memory = self.memory();
                if memory.has(memory.digest(&uri.to_string())) {
                    return CandidateState::AlreadyReceived;
                }
                drop(memory);
                let load = LoadHints::from_page(wish.kind, wish.by_cors);
                self.proxy.push_candidate_state(site, asked, uri, load)
            },
        );
        let mut pushed = Vec::new();
        let refused = self.push(site, asked, &page, pushes, &mut pushed);
        hints.splice(0..0, refused.iter().filter_map(PlannedPush::as_hint));
        hints.truncate(budget.hints);
        let hinted: Vec<_> = hints.iter().map(|hint| hint.url.clone()).collect();
        let is_told;
        (is_told, page.links) = self.hint(asked, hints);
        if is_told {
            page.hinted = hinted;
        }
        let target = &page.url[home.len()..];
        let reported = [site.rules.site_origin(), target].concat();
        self.proxy
            .reports
            .record_delivery(&reported, || PushedAndHinted {
                pushed,
                hinted: page.hinted.clone(),
            });
        Some(page)
    }

    /// The variant of the page at `url` that this request selects, if it is stored, and known to be public before the origin has
    /// answered.
    fn public_variant(
        &self,
        site: &Arc<Site>,
        asked: &request::Parts,
        url: &str,
    ) -> Option<Vec<u8>> {
        if !self.proxy.resources.has_page(url) {
            return None; // true of most pages: there is nothing to push or hint
        }
        let authority = request_authority(asked)?;
        let mut copy = Request::new(()).into_parts().0;
        (copy.uri, copy.version) = (asked.uri.clone(), asked.version);
        copy.headers.clone_from(&asked.headers);
        if let Some(arrival) = asked.extensions.get::<RequestInfo>() {
            copy.extensions.insert(*arrival);
        }
        let wanted = ProxyRequest::read(site.clone(), authority.to_owned(), copy).ok()?;
        if wanted.is_websocket {
            return None;
        }
        let variants = self.proxy.memory.lookup(&wanted.key)?;
        let policy = self.proxy.policy(wanted.origin_kind());
        let found = lookup::lookup(policy, &wanted.ask, &variants, self.proxy.wall_now());
        let page = public_response::public_page(&found, &variants)?;
        let variant = page.variant_of(&wanted.ask.headers);
        let companions = &self.proxy.resources;
        companions.has_variant(url, &variant).then_some(variant)
    }

    /// The push candidate for `candidate`; `None` if it may not be pushed or hinted. A resource that no public text names must be in the
    /// cache for all clients, and have the kind that clients state.
    fn preload_for(
        &self,
        site: &Arc<Site>,
        asked: &request::Parts,
        candidate: Candidate,
    ) -> Option<PushCandidate> {
        let Candidate {
            resource: mut wish,
            is_referenced: is_named,
        } = candidate;
        if is_named {
            return Some(wish);
        }
        let uri = wish.url.parse().ok()?;
        let load = LoadHints::from_page(wish.kind, wish.by_cors);
        let kind = self.proxy.public_resource_kind(site, asked, &uri, load)?;
        let is_so = wish.kind.is_none_or(|said| said == kind);
        wish.kind = Some(kind);
        is_so.then_some(wish)
    }

    /// Records the page after which `text` is requested, which is `target` of `home`.
    fn record_subresource(
        &self,
        home: &str,
        asked: &request::Parts,
        from: Option<IpAddr>,
        target: &str,
        text: &str,
    ) {
        let referer = asked.headers.get(header::REFERER);
        let referer = referer.and_then(|referer| referer.to_str().ok()?.split('#').next());
        let is_own = |page: &&str| target_at(home, page).is_some();
        let Some(page) = referer.filter(|page| is_own(page) && *page != text) else {
            return;
        };
        let loaded = ResourceLoad::of(target, &asked.method, &asked.headers);
        if let Some(loaded) = loaded.filter(|_| is_normal(text)) {
            let now = self.proxy.runtime.now();
            let companions = &self.proxy.resources;
            let request = SubresourceRequest {
                loaded: &loaded,
                has_credentials: has_credentials(&asked.headers),
            };
            companions.record_request(now, from, home, page, &request);
        }
    }

    /// Pushes what the client accepts, and adds the URLs to `pushed`. Gives the rest.
    fn push(
        &self,
        site: &Arc<Site>,
        asked: &request::Parts,
        page: &PageRequest,
        pushes: Vec<PlannedPush>,
        pushed: &mut Vec<String>,
    ) -> Vec<PlannedPush> {
        let pusher = Pusher::of(&asked.extensions).filter(|_| self.proxy.learn.push);
        let Some(pusher) = pusher else {
            return pushes;
        };
        let mut pushes = pushes.into_iter();
        let mut rest = Vec::new();
        for planned in pushes.by_ref() {
            let Some(response) = self.proxy.push_response(site, asked, &planned) else {
                continue;
            };
            let mut request = Request::new(());
            *request.uri_mut() = planned.uri.clone();
            let sending = match pusher.push(&request, planned.priority, response) {
                Ok(sending) => sending,
                Err(error) => {
                    // The client's limit of open streams is reached, or it accepts no push: the others would fail, too.
                    tracing::debug!(%error, uri = %planned.uri, "not pushed");
                    rest.push(planned);
                    break;
                }
            };
            self.proxy.counters.count(CounterFamily::Preloads, "pushed");
            let url = planned.uri.to_string();
            {
                let mut memory = self.memory();
                let digest = memory.digest(&url);
                memory.record(digest);
            }
            pushed.push(url);
            let (proxy, page, from) = (self.proxy.clone(), page.url.clone(), page.from);
            let target = planned.uri.path_and_query().map(ToString::to_string);
            self.proxy.runtime.spawn(Box::pin(async move {
                if sending.await
                    && let Some(target) = target
                {
                    proxy.resources.record_accepted_push(from, &page, &target);
                }
            }));
        }
        rest.extend(pushes);
        rest
    }

    /// Sends `hints` at once if possible. Gives whether the client gets hints, and those that go into the response.
    fn hint(&self, asked: &request::Parts, hints: Vec<Hint>) -> (bool, Vec<Hint>) {
        let early = EarlyHints::of(&asked.extensions)
            .filter(|_| self.proxy.learn.early_hints && supports_early_hints(asked));
        let Some(early) = early.filter(|_| !hints.is_empty()) else {
            let arrival: Option<&RequestInfo> = asked.extensions.get();
            let is_spdy = matches!(
                arrival,
                Some(RequestInfo {
                    protocol: Protocol::Spdy(_),
                    ..
                })
            );
            // Over HTTP/1.1, a browser finds them in the page as fast.
            return (is_spdy, if is_spdy { hints } else { Vec::new() });
        };
        let mut fields = HeaderMap::new();
        for link in hints.iter().filter_map(early_link_value) {
            if let Ok(link) = HeaderValue::try_from(link) {
                fields.append(header::LINK, link);
            }
        }
        if fields.is_empty() {
            return (false, Vec::new());
        }
        let count = fields.len() as u64;
        match early.send(fields) {
            true => {
                self.proxy
                    .counters
                    .add(CounterFamily::Preloads, "hinted", count);
                (true, Vec::new())
            }
            false => (true, hints),
        }
    }

    /// Completes `response` to a pending request before it is sent. `outcome` counts if the response has no outcome of its own.
    fn finish(
        &self,
        began: PendingResponse,
        mut response: Response<Body>,
        outcome: Outcome,
    ) -> Response<Body> {
        if let Some(asked) = began.asked {
            self.answered(asked, &mut response);
        }
        let known = response.extensions_mut().remove::<Outcome>();
        let outcome = known.unwrap_or(outcome).0;
        self.proxy.counters.count(CounterFamily::Responses, outcome);
        let took = || self.proxy.runtime.now() - began.at;
        let origin = response.extensions_mut().remove::<OriginDuration>();
        if let Some(url) = began.times_for {
            let is_kept = origin.is_none() && is_html(response.headers());
            let url = url.filter(|_| is_kept);
            let times = TimingBreakdown {
                outcome,
                origin: origin.map(|origin| origin.0),
                rewriting_ms: url.and_then(|url| self.proxy.reports.rewriting_ms(&url)),
                total: took(),
            };
            times.append_to(response.headers_mut());
        }
        if !response.headers().contains_key(header::DATE) {
            let now = spdy_cache::date::to_value(self.proxy.wall_now());
            response.headers_mut().insert(header::DATE, now);
        }
        let line = self.log.clone().zip(began.about);
        let line = line.map(|(log, about)| self.line(log, about, began.at, &response, outcome));
        if let Some(alt_svc) = &self.alt_svc {
            let told = self.proxy.sites().alt_svc(alt_svc);
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

    /// Records that `asked` is answered with `response`, and adds the hints of its page.
    fn answered(&self, asked: TrackedRequest, response: &mut Response<Body>) {
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            self.memory().record(asked.digest);
        }
        let Some(page) = asked.page else {
            return;
        };
        if response.extensions_mut().remove::<PublicPage>().is_none() {
            // The origin no longer gives this variant to all clients.
            if let Some(variant) = &page.public
                && !page.has_credentials
                && is_about_page(status)
            {
                self.proxy.resources.forget_page(&page.url, variant);
            }
            return;
        }
        if page.is_new && status == StatusCode::OK {
            let now = self.proxy.runtime.now();
            let companions = &self.proxy.resources;
            companions.record_view(now, page.from, &page.url, &page.hinted);
        }
        for hint in &page.links {
            if let Ok(link) = HeaderValue::try_from(link_value(hint)) {
                response.headers_mut().append(header::LINK, link);
            }
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
        let head = self.proxy.runtime.now() - began;
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
            proxy: self.proxy.clone(),
            page: about.url.filter(|_| is_html(response.headers())),
        }
    }

    /// The span of a request and its place in the trace, if spans are recorded.
    fn start_span(&self, asked: &request::Parts, from: Option<IpAddr>) -> Option<SpanScope> {
        let spans = self.proxy.spans()?;
        let told = SpanContext::of(&asked.headers);
        let mut place = spans.server_span(told, span_name(&asked.method));
        if let Some(open) = &mut place.open {
            set_request(open, asked, from);
        }
        Some(place)
    }
}

impl Handler for ConnectionHandler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        let (mut asked, body) = request.into_parts();
        let from = self.proxy.resolve_client(self.from, &mut asked);
        let times_for = self.timing.take(&mut asked.headers);
        let (within, span) = match self.start_span(&asked, from) {
            Some(place) => (Some(place.context), place.open),
            None => (None, None),
        };
        let began = PendingResponse {
            at: self.proxy.runtime.now(),
            times_for: times_for.then(|| self.url(&asked)),
            about: self
                .log
                .as_ref()
                .map(|_| self.log_context(&asked, from, within.as_ref())),
            asked: self.start_page(&asked, &body, from),
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
        let counters = &self.proxy.counters;
        counters.count(CounterFamily::Responses, Outcome::MALFORMED.0);
        counters.count(CounterFamily::RefusedRequests, refusal.flaw.name());
        if let Some(log) = &self.log {
            let from = self.from.zip(refusal.headers);
            let from = from.map(|(from, headers)| self.proxy.client_of_malformed(from, headers));
            let from = from.or(self.from);
            log(&AccessLogEntry::malformed_request(
                refusal,
                self.proxy.wall_now(),
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
            at: self.proxy.wall_now(),
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

/// Whether a response with this status is about the page. A 206 and a 304 are about what the client has of it; other errors are about
/// the request, or about the origin.
fn is_about_page(status: StatusCode) -> bool {
    let is_refusal = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    );
    let is_answer = status.is_success() && status != StatusCode::PARTIAL_CONTENT;
    let is_elsewhere = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
    is_answer || is_elsewhere || is_refusal
}

/// Whether a user views the response: modern browsers state it, and those of SPDY's time accept HTML first.
fn is_navigation(asked: &request::Parts) -> bool {
    match asked.headers.get(SEC_FETCH_DEST) {
        Some(destination) => destination == "document",
        None => {
            let accepted = asked.headers.get(header::ACCEPT);
            accepted.is_some_and(|accepted| accepted.as_bytes().starts_with(b"text/html"))
        }
    }
}

/// Whether the client is known to support a 103: browsers that announce a navigation by Fetch Metadata do. With a 103, some browsers of
/// 2016 fail the page.
fn supports_early_hints(asked: &request::Parts) -> bool {
    let says = |name, word| asked.headers.get(name).is_some_and(|said| said == word);
    says(SEC_FETCH_DEST, "document") && says(SEC_FETCH_MODE, "navigate")
}
