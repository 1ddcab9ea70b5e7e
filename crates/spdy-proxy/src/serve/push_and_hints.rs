//! Pushes, early hints and `Link` for the pages that one client requests, and what is learned from its requests.
//!
//! Nothing is pushed, hinted or learned before the client may make the request (`Proxy::admit`). Nothing is pushed or hinted before the
//! page is known to be public: the cache has a public copy, and this request would get it as its response (`public`). If only the origin
//! decides that, as for `no-cache`, resources are pushed and hinted when it has responded, with the head of the response.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::select;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, request};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy_cache::lookup;
use spdy_net::client_certificate::ClientCertificate;
use spdy_net::handler::{Pusher, RequestInfo};
use spdy_net::protocol::Protocol;
use spdy_page::replica::Kind;
use spdy_rewrite::reference::integrity::strip_unrewritten_mark;
use spdy_server::learned_resources::ResourceLoad;
use spdy_server::push_plan::{
    Budget, CandidateState, Hints, Plan, PlannedPush, PushCandidate, plan,
};
use spdy_server::session_history::{SessionHistory, UrlDigest};
use spdy_server::site_pusher::is_normal;

use crate::cache::public_response::{self, PublicPage};
use crate::fetch::delivery::TextEnd;
use crate::prefetch::document_references::target_at;
use crate::prefetch::page_candidates::{Candidate, NamedBy};
use crate::prefetch::page_resources::SubresourceRequest;
use crate::prefetch::subresource_request::LoadHints;
use crate::proxy::Proxy;
use crate::request::client_origin::{client_origin_text, request_authority};
use crate::request::forgeable_headers::{FromTrustedProxy, has_credentials};
use crate::request::proxy_request::{ProxyRequest, is_rewriting_disabled};
use crate::rewrite::page_text;
use crate::serve::page_hints::{HintTiming, PageHints, SEC_FETCH_DEST, hint_rank};
use crate::sites::site::Site;
use crate::telemetry::counters::CounterFamily;
use crate::telemetry::page_report::PushedAndHinted;

/// How long the head of a response waits for the end of the page, so that it can have hints.
const MAX_HEAD_DELAY: Duration = Duration::from_millis(20);

/// Maximum sum of the fonts that a page does not name itself and that are pushed or hinted for it, bytes. A browser requests a hinted font
/// as more urgent than images, and its load event waits for it. Without the hint it may request the font after the event.
const MAX_FONT_BYTES: u64 = 100 * 1024;

/// Pushes and hints for one client's connection.
#[derive(Clone)]
pub(super) struct PushAndHints {
    proxy: Arc<Proxy>,
    /// What the client has received.
    session_history: Arc<Mutex<SessionHistory>>,
}

/// A GET in progress, as far as it is about pages.
pub(super) struct TrackedRequest {
    /// Recorded when the response is sent.
    digest: UrlDigest,
    page: Option<PageRequest>,
}

/// A requested page, and what its response adds.
struct PageRequest {
    url: String,
    from: Option<IpAddr>,
    is_new: bool,
    /// The request has credentials, so the origin may identify the client.
    has_credentials: bool,
    /// The variant of the public page that the request selects; `None` if the page is not known to be public.
    public: Option<Vec<u8>>,
    /// The request, if its response may show that the page is public.
    pending: Option<PendingPage>,
    /// `Link` values that go into the head of the response.
    links: Vec<HeaderValue>,
    /// Targets that the client receives hints for.
    hinted: Vec<String>,
}

/// The request for a page.
struct PendingPage {
    site: Arc<Site>,
    head: request::Parts,
    /// The origin of the page, by the name that the client uses.
    origin: String,
}

/// Whether the origin may identify the client of the request with `head`.
fn may_identify(head: &request::Parts) -> bool {
    has_credentials(&head.headers) || head.extensions.get::<ClientCertificate>().is_some()
}

impl PushAndHints {
    pub(super) fn new(proxy: Arc<Proxy>) -> Self {
        let history = SessionHistory::new(proxy.push_config.digest_key());
        Self {
            proxy,
            session_history: Arc::new(Mutex::new(history)),
        }
    }

    /// Learns from a request of a client at `from`, which was admitted. If it is for a page, pushes or hints its resources before the response starts.
    ///
    /// The response to a request with content depends on the content, so such a request is not about the page at its URL.
    pub(super) fn start_page(
        &self,
        head: &request::Parts,
        body: &Body,
        from: Option<IpAddr>,
    ) -> Option<TrackedRequest> {
        if head.method != Method::GET || !http_body::Body::is_end_stream(body) {
            return None;
        }
        let arrival: Option<&RequestInfo> = head.extensions.get();
        let cannot_push = arrival.is_some_and(|arrival| arrival.protocol == Protocol::Http1);
        if cannot_push && !head.headers.contains_key(header::REFERER) && !is_navigation(head) {
            return None; // nothing to learn from it, and nothing to push or hint
        }
        let site = self.proxy.origins.site_for(head)?;
        let target = head.uri.path_and_query()?.as_str();
        if site.paths.is_restricted(target) {
            return None; // this client may not be allowed to see the page
        }
        // By the host name that the client used: its pushes and hints must have that name.
        let origin = client_origin_text(&site, arrival.copied(), request_authority(head)?)?;
        let url = [&*origin, target].concat();
        self.record_subresource(&origin, head, from, target, &url);
        let digest = self.memory().digest(&url);
        let is_page = is_navigation(head)
            && strip_unrewritten_mark(target).is_none()
            && !is_rewriting_disabled(&head.headers);
        let page = is_page.then(|| self.page(&site, head, from, &origin, url, digest));
        Some(TrackedRequest { digest, page })
    }

    /// Waits a short time for the end of the page that is the response to `tracked`, if clients are known to request more than it names.
    /// Resources that are hinted with the response must be named by this text.
    pub(super) async fn wait_for_text(
        &self,
        tracked: Option<&TrackedRequest>,
        response: &mut Response<Body>,
    ) {
        let text_end = response.extensions_mut().remove::<TextEnd>();
        let page = tracked.and_then(|tracked| tracked.page.as_ref());
        let (Some(text_end), Some(page)) = (text_end, page) else {
            return;
        };
        let clock = &self.proxy.clock;
        let resources = &self.proxy.prefetcher.resources;
        if page.pending.is_some() && resources.has_learned(clock.now(), &page.url) {
            let deadline = clock.now() + MAX_HEAD_DELAY;
            let timeout = clock.runtime.sleep_until(deadline);
            select(Box::pin(text_end.reached()), timeout).await;
        }
    }

    /// Records `response` to the request `tracked`, and adds the hints of its page.
    pub(super) fn finish_page(&self, tracked: TrackedRequest, response: &mut Response<Body>) {
        let status = response.status();
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            self.memory().record(tracked.digest);
        }
        let Some(mut page) = tracked.page else {
            return;
        };
        let Some(public) = response.extensions_mut().remove::<PublicPage>() else {
            // The origin no longer gives this variant to all clients.
            if let Some(variant) = &page.public
                && !page.has_credentials
                && is_about_page(status)
            {
                self.proxy
                    .prefetcher
                    .resources
                    .forget_page(&page.url, variant);
            }
            return;
        };
        if let Some(pending) = page.pending.take()
            && status == StatusCode::OK
        {
            self.deliver(&pending, &mut page, &public, HintTiming::WithResponse);
        }
        if page.is_new && status == StatusCode::OK {
            let now = self.proxy.clock.now();
            let resources = &self.proxy.prefetcher.resources;
            resources.record_view(now, page.from, &page.url, &page.hinted);
        }
        for link in std::mem::take(&mut page.links) {
            response.headers_mut().append(header::LINK, link);
        }
    }

    /// The page at `text` that a client at `from` requests, with what can be pushed or hinted now.
    fn page(
        &self,
        site: &Arc<Site>,
        head: &request::Parts,
        from: Option<IpAddr>,
        origin: &str,
        text: String,
        digest: UrlDigest,
    ) -> PageRequest {
        let mut page = PageRequest {
            from,
            is_new: !self.memory().has(digest),
            has_credentials: may_identify(head),
            public: None,
            pending: None,
            links: Vec::new(),
            hinted: Vec::new(),
            url: text,
        };
        if !self.proxy.prefetcher.resources.has_page(&page.url) {
            return page; // true of most pages: there is nothing to push or hint
        }
        let request = PendingPage {
            site: site.clone(),
            head: head.clone(),
            origin: origin.to_owned(),
        };
        match self.public_page(site, head) {
            Some(public) => {
                if self.deliver(&request, &mut page, &public, HintTiming::BeforeResponse) {
                    page.public = Some(public.variant);
                }
            }
            None => page.pending = Some(request),
        }
        page
    }

    /// Pushes and hints what the text `public` of `page` needs, which a client requested as `request`. Returns whether the references of this
    /// text are recorded.
    fn deliver(
        &self,
        request: &PendingPage,
        page: &mut PageRequest,
        public: &PublicPage,
        timing: HintTiming,
    ) -> bool {
        let PendingPage { site, head, origin } = request;
        let Ok(url) = page.url.parse::<Uri>() else {
            return false;
        };
        let now = self.proxy.clock.now();
        let resources = &self.proxy.prefetcher.resources;
        let (variant, text) = (&public.variant, public.text.as_deref());
        let candidates = resources.candidates(now, origin, &page.url, variant, text);
        let Some(mut candidates) = candidates else {
            return false;
        };
        if timing == HintTiming::WithResponse {
            // Clients may have requested others after another text.
            candidates.retain(|candidate| candidate.named_by != NamedBy::Nothing);
        }
        let mut deep = BTreeSet::new();
        for candidate in &candidates {
            let target = candidate.resource.url.strip_prefix(&origin[..]);
            if let (NamedBy::Subresource, Some(target)) = (candidate.named_by, target) {
                deep.insert(target.to_owned());
            }
        }
        let has_unhintable_sheet = candidates.iter().any(|candidate| {
            let resource = &candidate.resource;
            resource.is_unhintable && resource.kind == Some(Kind::Stylesheet)
        });
        let mut font_bytes = 0;
        let push_candidates = candidates
            .into_iter()
            .filter_map(|candidate| self.preload_for(site, head, candidate, &mut font_bytes));
        let arrival: Option<&RequestInfo> = head.extensions.get();
        let priority = arrival.map(|arrival| arrival.priority).unwrap_or_default();
        let budget = Budget::default();
        let Plan { pushes, mut hints } = plan(
            &url,
            priority,
            &budget,
            Hints::Remaining,
            push_candidates,
            |uri, candidate| {
                let memory = self.memory();
                if memory.has(memory.digest(&uri.to_string())) {
                    return CandidateState::AlreadyReceived;
                }
                drop(memory);
                let load = LoadHints::from_page(candidate.kind, candidate.by_cors);
                self.proxy
                    .prefetcher
                    .push_candidate_state(&self.proxy.cache, site, head, uri, load)
            },
        );
        let mut pushed = Vec::new();
        let refused = self.push(site, head, page, pushes, &mut pushed);
        hints.splice(0..0, refused.iter().filter_map(PlannedPush::as_hint));
        // A browser requests them in this order, some of them with equal priority.
        hints.sort_by_key(|hint| hint_rank(hint.kind));
        hints.truncate(budget.hints);
        let page_hints = PageHints {
            hints,
            deep,
            has_unhintable_sheet,
            timing,
        };
        let target = &page.url[origin.len()..];
        let reported = [site.rules.site_origin(), target].concat();
        (page.hinted, page.links) = page_hints.send(&self.proxy, head, &page.url);
        self.proxy
            .pages
            .reports
            .record_delivery(&reported, || PushedAndHinted {
                pushed,
                hinted: page.hinted.clone(),
            });
        true
    }

    /// The page that this request selects, if it is stored, and known to be public before the origin has responded.
    fn public_page(&self, site: &Arc<Site>, head: &request::Parts) -> Option<PublicPage> {
        let authority = request_authority(head)?;
        let mut copy = Request::new(()).into_parts().0;
        (copy.uri, copy.version) = (head.uri.clone(), head.version);
        copy.headers.clone_from(&head.headers);
        if let Some(arrival) = head.extensions.get::<RequestInfo>() {
            copy.extensions.insert(*arrival);
        }
        // An identified user gets the stored page only if it is marked as shared.
        if let Some(certificate) = head.extensions.get::<ClientCertificate>() {
            copy.extensions.insert(certificate.clone());
        }
        if let Some(proxy) = head.extensions.get::<FromTrustedProxy>() {
            copy.extensions.insert(*proxy);
        }
        let request = ProxyRequest::read(site.clone(), authority.to_owned(), copy).ok()?;
        if request.is_websocket {
            return None;
        }
        let variants = self.proxy.cache.memory.lookup(&request.key)?;
        let policy = self.proxy.cache.policy(request.origin_kind());
        let result = lookup::lookup(
            policy,
            &request.head,
            &variants,
            self.proxy.clock.wall_now(),
        );
        let page = public_response::public_page(&result, &variants)?;
        Some(PublicPage {
            variant: page.variant_of(&request.head.headers),
            text: page_text::id_of(page.note()).map(str::to_owned),
        })
    }

    /// The push candidate for `candidate`; `None` if it may not be pushed or hinted. A resource that the page does not name must be in the
    /// cache for all clients, and have the kind that clients or the naming text state. `font_bytes` has the fonts among them so far: up to
    /// [`MAX_FONT_BYTES`].
    fn preload_for(
        &self,
        site: &Arc<Site>,
        head: &request::Parts,
        candidate: Candidate,
        font_bytes: &mut u64,
    ) -> Option<PushCandidate> {
        let Candidate {
            resource: mut push_candidate,
            named_by,
        } = candidate;
        if named_by == NamedBy::Page {
            return Some(push_candidate);
        }
        let uri = push_candidate.url.parse().ok()?;
        let load = LoadHints::from_page(push_candidate.kind, push_candidate.by_cors);
        let (prefetcher, cache) = (&self.proxy.prefetcher, &self.proxy.cache);
        let bytes = match (named_by, push_candidate.kind) {
            (NamedBy::Subresource, Some(kind)) => {
                prefetcher.public_bytes(cache, site, head, &uri, load, kind)?
            }
            (_, stated) => {
                let (kind, bytes) = prefetcher.public_resource(cache, site, head, &uri, load)?;
                push_candidate.kind = Some(kind);
                if stated.is_some_and(|stated| stated != kind) {
                    return None;
                }
                bytes
            }
        };
        if push_candidate.kind == Some(Kind::Font) {
            let sum = font_bytes.saturating_add(bytes);
            if sum > MAX_FONT_BYTES {
                return None;
            }
            *font_bytes = sum;
        }
        Some(push_candidate)
    }

    /// Records the page after which `url` is requested, which is `target` of `origin`.
    fn record_subresource(
        &self,
        origin: &str,
        head: &request::Parts,
        from: Option<IpAddr>,
        target: &str,
        url: &str,
    ) {
        let referer = head.headers.get(header::REFERER);
        let referer = referer.and_then(|referer| referer.to_str().ok()?.split('#').next());
        let is_own = |page: &&str| target_at(origin, page).is_some();
        let Some(page) = referer.filter(|page| is_own(page) && *page != url) else {
            return;
        };
        let loaded = ResourceLoad::of(target, &head.method, &head.headers);
        if let Some(loaded) = loaded.filter(|_| is_normal(url)) {
            let now = self.proxy.clock.now();
            let resources = &self.proxy.prefetcher.resources;
            let request = SubresourceRequest {
                loaded: &loaded,
                has_credentials: may_identify(head),
            };
            resources.record_request(now, from, origin, page, &request);
        }
    }

    /// Pushes what the client accepts, and adds the URLs to `pushed`. Gives the rest.
    fn push(
        &self,
        site: &Arc<Site>,
        head: &request::Parts,
        page: &PageRequest,
        pushes: Vec<PlannedPush>,
        pushed: &mut Vec<String>,
    ) -> Vec<PlannedPush> {
        let pusher = Pusher::of(&head.extensions).filter(|_| self.proxy.push_config.push);
        let Some(pusher) = pusher else {
            return pushes;
        };
        let mut pushes = pushes.into_iter();
        let mut rest = Vec::new();
        for planned in pushes.by_ref() {
            let (prefetcher, cache) = (&self.proxy.prefetcher, &self.proxy.cache);
            let Some(response) = prefetcher.push_response(cache, site, head, &planned) else {
                continue;
            };
            let mut request = Request::new(());
            *request.uri_mut() = planned.uri.clone();
            let sending = match pusher.push(&request, planned.priority, response) {
                Ok(sending) => sending,
                Err(error) => {
                    // The client's limit of open streams is reached, or it accepts no push: the others would fail, too.
                    tracing::debug!(%error, uri = %planned.uri, "cannot push a resource");
                    rest.push(planned);
                    break;
                }
            };
            self.proxy
                .telemetry
                .counters
                .count(CounterFamily::Preloads, "pushed");
            let url = planned.uri.to_string();
            {
                let mut memory = self.memory();
                let digest = memory.digest(&url);
                memory.record(digest);
            }
            pushed.push(url);
            let (prefetcher, page, from) = (prefetcher.clone(), page.url.clone(), page.from);
            let target = planned.uri.path_and_query().map(ToString::to_string);
            self.proxy.clock.runtime.spawn(Box::pin(async move {
                if sending.await
                    && let Some(target) = target
                {
                    let resources = &prefetcher.resources;
                    resources.record_accepted_push(from, &page, &target);
                }
            }));
        }
        rest.extend(pushes);
        rest
    }

    fn memory(&self) -> MutexGuard<'_, SessionHistory> {
        self.session_history.lock()
    }
}

/// Whether a response with this status is about the page. A 206 and a 304 are about the client's copy of it; other errors are about the
/// request, or about the origin.
fn is_about_page(status: StatusCode) -> bool {
    let is_refusal = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS
    );
    let is_content = status.is_success() && status != StatusCode::PARTIAL_CONTENT;
    let is_redirect = status.is_redirection() && status != StatusCode::NOT_MODIFIED;
    is_content || is_redirect || is_refusal
}

/// Whether a user views the response: modern browsers state it, and those of SPDY's time accept HTML first.
fn is_navigation(head: &request::Parts) -> bool {
    match head.headers.get(SEC_FETCH_DEST) {
        Some(destination) => destination == "document",
        None => {
            let accepted = head.headers.get(header::ACCEPT);
            accepted.is_some_and(|accepted| accepted.as_bytes().starts_with(b"text/html"))
        }
    }
}
