//! What is fetched, pushed and hinted ahead: the resources that a page or a sheet names, with the headers of the later request.
//!
//! A client that requested a page will request what the page names, with the same headers. So the prefetcher sends the same requests
//! without the cookies, and stores the answers in the cache. The number of prefetches of a page and their depth are limited
//! (prefetch/limits.rs).

use std::sync::Arc;
use std::time::Duration;

use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, request};
use spdy::body::Body;
use spdy_cache::cache_status::Forward;
use spdy_cache::lookup::{self, Lookup};
use spdy_cache::stored::Stored;
use spdy_net::handler::RequestInfo;
use spdy_page::replica::Kind as PageKind;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_report::{PageReport, PageSkipReason};
use spdy_rewrite::referrer::ReferrerScope;
use spdy_rewrite::rules::host_aliases::HostAlias;
use spdy_rewrite::rules::verdict::{ReferenceSource, SkipReason, Verdict};
use spdy_server::push_plan::{CandidateState, PlannedPush};

use crate::cache::coalescer::CoalesceRole;
use crate::cache::public_response::is_public;
use crate::cache::shared_response::CoalesceKey;
use crate::config::learn::LearnConfig;
use crate::fetch::origin_exchange::Fetch;
use crate::prefetch::accept_history::AcceptHistory;
use crate::prefetch::backoff::PrefetchBackoff;
use crate::prefetch::limits::PrefetchLimits;
use crate::prefetch::page_resources::{self, DocumentContext};
use crate::prefetch::seen::{PrefetchContext, PrefetchSeen};
use crate::proxy::Proxy;
use crate::request::client_origin::request_authority;
use crate::request::prefetch_step::{PrefetchBudget, PrefetchStep};
use crate::request::proxy_request::ProxyRequest;
use crate::sites::page_policies::PagePolicy;
use crate::sites::site_table::Site;
use crate::telemetry::counters::CounterFamily;
use crate::telemetry::page_reports;

/// Things that one page or sheet names and that are looked for here to be fetched ahead: most of a page that came by before are here.
pub(crate) const MAX_PREFETCH_LOOKUPS: usize = 1024;
/// How far one thing that was fetched ahead leads to the next: a page's sheet, what that imports, and its pictures. A sheet
/// that imports another one without end is not followed.
const MAX_PREFETCH_DEPTH: u8 = 3;

/// A page that passed to its end, and the result of rewriting it.
pub(crate) struct FinishedPage<'a> {
    pub(crate) report: PageReport,
    pub(crate) status: StatusCode,
    /// The resources that it names, up to a limit.
    pub(crate) references: &'a [Reference],
    /// It is stored, so that other requests may use it.
    pub(crate) is_shared: bool,
    /// The stored page, if it is public.
    pub(crate) public: Option<&'a Stored>,
    /// Targets of what was prefetched for it: fetched, or loaded from the disk or the shared tier.
    pub(crate) prefetched: &'a [String],
    /// What rewriting took.
    pub(crate) rewriting: Duration,
    /// It went as it came: this is what would have become of it.
    pub(crate) is_dry_run: bool,
}

/// How a page loads a resource.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct LoadHints {
    /// The kind by its name, if the page does not state it.
    kind: Option<Kind>,
    by_cors: bool,
    referrer_scope: ReferrerScope,
}

impl LoadHints {
    /// As the page states that it will load it.
    pub(crate) fn from_page(kind: Option<PageKind>, by_cors: bool) -> Self {
        let kind = match kind {
            Some(PageKind::Stylesheet) => Some(Kind::Style),
            Some(PageKind::Script) => Some(Kind::Script),
            Some(PageKind::Font) => Some(Kind::Font),
            Some(PageKind::Image) => Some(Kind::Image),
            Some(PageKind::Media) => Some(Kind::Media),
            Some(PageKind::Document | PageKind::Fetch | PageKind::Other) | None => None,
        };
        Self {
            kind,
            by_cors,
            ..Self::default()
        }
    }
}

/// The state of prefetching.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    /// The `Accept` of the later request.
    accept_history: AcceptHistory,
    pub(crate) backoff: PrefetchBackoff,
    pub(crate) seen: PrefetchSeen,
    limits: PrefetchLimits,
}

/// The result of an attempt to prefetch a resource.
enum PrefetchAttempt {
    /// It is on its way now.
    Started,
    /// It is in memory; `varies` if other headers may select another variant.
    AlreadyStored { varies: bool },
    /// Neither: it is on its way already, is of no use, or is one too many.
    Skipped,
}

impl Prefetcher {
    pub(crate) fn new(config: &LearnConfig) -> Self {
        Self {
            accept_history: AcceptHistory::default(),
            backoff: PrefetchBackoff::new(),
            seen: PrefetchSeen::new(),
            limits: PrefetchLimits::new(config),
        }
    }

    /// The prefetches left for the request that led to `wanted`.
    pub(crate) fn budget(&self, wanted: &ProxyRequest) -> PrefetchBudget {
        match &wanted.prefetch_step {
            Some(step) => step.budget.clone(),
            None => self.limits.budget(),
        }
    }

    /// A client requested `wanted`, which is not stored.
    pub(crate) fn record_accept(&self, wanted: &ProxyRequest) {
        let said = wanted.client_headers();
        let accept = said.get(header::ACCEPT).map(HeaderValue::as_bytes);
        let is_page = accept.is_none_or(|accept| accept.starts_with(b"text/html"));
        if wanted.ask.method != Method::GET || is_page {
            return;
        }
        let kind = match said.contains_key("sec-fetch-dest") {
            true => wanted.kind(),
            false => Some(kind_by_path(wanted.ask.uri.path())),
        };
        if let Some(kind) = kind {
            self.accept_history.record(said, kind);
        }
    }
}

impl Proxy {
    /// The cache state of `uri`, of the site's own origin, for a client that sent `page` and will load it as `load`.
    pub(crate) fn push_candidate_state(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
    ) -> CandidateState {
        let Some(wanted) = self.subresource_request(site, page, uri, load) else {
            return CandidateState::Unavailable;
        };
        match self.lookup_fresh(&wanted) {
            Some(object) => CandidateState::Available {
                bytes: usize::try_from(object.body().len()).unwrap_or(usize::MAX),
                kind: kind_of(object.stored().headers()),
            },
            // It cannot be pushed, but may be hinted.
            None => CandidateState::Available {
                bytes: usize::MAX,
                kind: PageKind::Other,
            },
        }
    }

    /// The kind of the resource at `uri`, if it is the site's own, without a query, and in the cache as public: a sheet, script, font or
    /// image. A page that was requested as `page` will request it as `load`.
    pub(crate) fn public_resource_kind(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
    ) -> Option<PageKind> {
        let wanted = self.subresource_request(site, page, uri, load)?;
        if wanted.moved.is_some() || uri.query().is_some() {
            return None;
        }
        let object = self.lookup_fresh(&wanted)?;
        let stored = object.stored();
        let is_shown = stored.status() == StatusCode::OK && is_public(stored);
        let kind = kind_of(stored.served());
        let is_part = matches!(
            kind,
            PageKind::Stylesheet | PageKind::Script | PageKind::Font | PageKind::Image
        );
        (is_shown && is_part).then_some(kind)
    }

    /// The answer that is pushed as `planned`.
    pub(crate) fn push_response(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        planned: &PlannedPush,
    ) -> Option<Response<Body>> {
        let load = LoadHints::from_page(Some(planned.kind), planned.by_cors);
        let wanted = self.subresource_request(site, page, &planned.uri, load)?;
        let object = self.lookup_fresh(&wanted)?;
        let response = self.respond_hit(&wanted, &object, self.wall_now());
        (response.status() == StatusCode::OK).then_some(response)
    }

    /// The request for `uri` that the client will send for the page that it requested as `page`.
    fn subresource_request(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
    ) -> Option<ProxyRequest> {
        let mut asked = Request::new(()).into_parts().0;
        asked.uri.clone_from(uri);
        asked.version = page.version;
        let asks = PrefetchOrigin::of(site, page, uri);
        if let Some(arrival) = page.extensions.get::<RequestInfo>() {
            asked.extensions.insert(*arrival);
        }
        for name in [
            header::ACCEPT_ENCODING,
            header::ACCEPT_LANGUAGE,
            header::USER_AGENT,
        ] {
            if let Some(value) = page.headers.get(&name) {
                asked.headers.insert(name, value.clone());
            }
        }
        let kind = load.kind.unwrap_or_else(|| kind_by_path(uri.path()));
        if let Some(accept) = self.prefetcher.accept_history.lookup(&page.headers, kind) {
            asked.headers.insert(header::ACCEPT, accept);
        }
        let is_told = match load.referrer_scope {
            ReferrerScope::None => false,
            ReferrerScope::SameSite => {
                !site.rules.is_proxied_target(uri.path()) && !asks.is_cross_origin
            }
            ReferrerScope::All => true,
        };
        if is_told {
            let referer = HeaderValue::from_str(&format!("{}/", asks.origin)).ok()?;
            asked.headers.insert(header::REFERER, referer);
        }
        let by_cors = load.by_cors || kind == Kind::Font;
        if by_cors && asks.is_cross_origin {
            let origin = HeaderValue::from_str(asks.origin).ok()?;
            asked.headers.insert(header::ORIGIN, origin);
        }
        if page.headers.contains_key("sec-fetch-dest") {
            let destination = match kind {
                Kind::Style => "style",
                Kind::Script => "script",
                Kind::Font => "font",
                Kind::Image => "image",
                Kind::Media => "video",
                Kind::Document => "iframe",
                Kind::Worker => "worker",
            };
            let mode = match by_cors {
                true => "cors",
                false => "no-cors",
            };
            let headers = &mut asked.headers;
            headers.insert("sec-fetch-dest", HeaderValue::from_static(destination));
            headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
            let from = match asks.is_cross_origin {
                true => "cross-site",
                false => "same-origin",
            };
            headers.insert("sec-fetch-site", HeaderValue::from_static(from));
        }
        ProxyRequest::read(site.clone(), asks.authority.to_owned(), asked).ok()
    }

    /// Loads into memory what a page or a sheet, the answer to `wanted`, names: its client will request that. `looked_for` is the number of
    /// lookups left, without those that are never prefetched. Returns the targets that are now being loaded, from origin, disk or shared
    /// tier.
    pub(crate) fn prefetch_references(
        self: &Arc<Self>,
        wanted: &ProxyRequest,
        budget: &PrefetchBudget,
        looked_for: &mut usize,
        named: &[Reference],
    ) -> Vec<String> {
        let mut begun = Vec::new();
        let steps = wanted.prefetch_step.as_ref().map_or(0, |step| step.depth);
        if !self.learn.prefetch || steps >= MAX_PREFETCH_DEPTH {
            return begun;
        }
        let Some(home) = wanted.client_origin() else {
            return begun;
        };
        let mut asked = Request::new(()).into_parts().0;
        asked.headers = wanted.subresource_headers();
        if let Some(arrival) = wanted.arrival {
            asked.extensions.insert(arrival);
        }
        if let Ok(host) = HeaderValue::from_str(&wanted.authority) {
            asked.headers.insert(header::HOST, host);
        }
        let now = self.runtime.now();
        let seeker = PrefetchContext::of(wanted, &asked.headers);
        for reference in named {
            let (site, kind) = (&wanted.site, reference.kind);
            let path = match reference.outcome {
                // A browser loads a frame when it becomes visible, and a film when the user plays it.
                _ if matches!(kind, Kind::Media | Kind::Document) => None,
                // The browser chooses one of several candidates, or the reference beside them.
                _ if reference.is_candidate => None,
                // A pinned sheet stays at its host or is requested unchanged, but is fetched: so it is known for the next page.
                Err(SkipReason::Integrity) => proxied_path(site, reference, &home),
                // A named host has nothing to do with the site's own resources.
                Err(SkipReason::SameSite) if wanted.is_alias() => None,
                _ => page_resources::path_at_origin(reference, &home),
            };
            let Some(path) = path else { continue };
            let Some(left) = looked_for.checked_sub(1) else {
                break;
            };
            *looked_for = left;
            let load = LoadHints {
                kind: Some(kind),
                by_cors: reference.by_cors,
                referrer_scope: reference.referrer_scope,
            };
            let numbers = seeker.keys(&path, &load);
            if self.prefetcher.seen.has(numbers, now) {
                continue;
            }
            let uri = path.parse().ok();
            let next = uri.and_then(|uri| self.subresource_request(site, &asked, &uri, load));
            let Some(mut next) = next else { continue };
            next.span_context.clone_from(&wanted.span_context);
            match self.start_prefetch(next, steps + 1, budget) {
                PrefetchAttempt::Started => begun.push(path),
                PrefetchAttempt::AlreadyStored { varies } => {
                    self.prefetcher.seen.record(numbers, varies, now);
                }
                PrefetchAttempt::Skipped => {}
            }
        }
        begun
    }

    /// Records a page that was read to its end, and its result.
    pub(crate) fn record_page(&self, wanted: &ProxyRequest, done: FinishedPage<'_>) {
        let Some(url) = wanted.url() else {
            return;
        };
        let (mut report, named, is_shared) = (done.report, done.references, done.is_shared);
        // An error page does not show what the next answer to the same request contains.
        let is_page = done.status == StatusCode::OK;
        let own = wanted.client_url().filter(|_| !wanted.is_alias());
        if let (None, Some(seen)) = (report.left, own) {
            let guarded = std::mem::take(&mut report.guarded);
            let pages = &wanted.site.pages;
            match is_page {
                true => pages.record_page(&seen, guarded, report.tells),
                false => {
                    let is_quiet = report.tells == ReferrerScope::SameSite;
                    pages.record_head(
                        || Some(seen),
                        PagePolicy {
                            csp_guard: guarded,
                            hides_referrer: is_quiet,
                        },
                    );
                }
            }
        }
        let counters = &self.counters;
        let (became, moved, named_so) = match done.is_dry_run {
            true => ("tried", "would-move", "would-name"),
            false => ("rewritten", "moved", "named"),
        };
        counters.count(
            CounterFamily::Pages,
            report.left.map_or(became, PageSkipReason::name),
        );
        let by_path = report.moved - report.named;
        counters.add(CounterFamily::References, moved, by_path as u64);
        if report.named > 0 {
            counters.add(CounterFamily::References, named_so, report.named as u64);
        }
        for (reason, count) in &report.left_because {
            counters.add(CounterFamily::References, reason, *count as u64);
        }
        tracing::debug!(%url, moved = report.moved, left = report.unchanged_count(), "a page came by");
        let seen = wanted
            .client_url()
            .filter(|_| is_page && !wanted.is_alias());
        if let (Some(stored), Some(home), Some(seen)) = (done.public, wanted.client_origin(), seen)
        {
            let along = if done.is_dry_run { &[] } else { named };
            let variant = stored.variant_of(&wanted.ask.headers);
            let reader = DocumentContext {
                home: &home,
                rules: wanted.site.rules.tag(),
            };
            let companions = &self.resources;
            companions.record_page(seen.as_str(), &variant, reader, along);
        }
        let page = page_reports::RewrittenPage {
            url: url.as_str(),
            at: self.wall_now(),
            is_everyones: is_shared,
            rewriting: done.rewriting,
            named,
            fetched_ahead: done.prefetched,
            is_dry_run: done.is_dry_run,
        };
        self.reports.record(&page, report);
    }

    /// A page is passed on as it is.
    pub(crate) fn record_skipped_page(
        &self,
        wanted: &ProxyRequest,
        why: PageSkipReason,
        stored: Option<&Stored>,
        status: StatusCode,
    ) {
        let done = FinishedPage {
            report: PageReport::skipped(why),
            status,
            references: &[],
            is_shared: stored.is_some(),
            public: stored.filter(|stored| is_public(stored)),
            prefetched: &[],
            rewriting: Duration::ZERO,
            is_dry_run: false,
        };
        self.record_page(wanted, done);
    }

    /// Loads `wanted` into memory for a later request, unless it is there, was of no use or is being fetched. It is fetched, and counted
    /// so, only if neither the disk nor the shared tier has it.
    fn start_prefetch(
        self: &Arc<Self>,
        mut wanted: ProxyRequest,
        number: u8,
        budget: &PrefetchBudget,
    ) -> PrefetchAttempt {
        let policy = self.policy(wanted.origin_kind());
        let variants = self.memory.lookup(&wanted.key);
        let variants = variants.as_deref().unwrap_or_default();
        let found = lookup::lookup(policy, &wanted.ask, variants, self.wall_now());
        if !matches!(found, Lookup::Miss(_)) {
            let varies = variants
                .iter()
                .any(|variant| variant.stored().selecting_names().next().is_some());
            return PrefetchAttempt::AlreadyStored { varies };
        }
        if self.prefetcher.backoff.has(&wanted.key, self.runtime.now()) {
            self.counters.count(CounterFamily::Preloads, "futile");
            return PrefetchAttempt::Skipped;
        }
        let Some(place) = self.prefetcher.limits.try_acquire() else {
            self.counters.count(CounterFamily::Limits, "prefetches");
            return PrefetchAttempt::Skipped;
        };
        let seat = self
            .coalescer
            .join(CoalesceKey::of(&wanted.key), self.runtime.now());
        let CoalesceRole::Leader(leader) = seat else {
            return PrefetchAttempt::Skipped;
        };
        if !budget.take() {
            self.counters
                .count(CounterFamily::Limits, "prefetch_per_page");
            return PrefetchAttempt::Skipped;
        }
        wanted.prefetch_step = Some(PrefetchStep {
            depth: number,
            budget: budget.clone(),
            _permit: place,
        });
        let proxy = self.clone();
        self.runtime.spawn(Box::pin(async move {
            if proxy.promote(&wanted).await {
                return drop(leader);
            }
            proxy.counters.count(CounterFamily::Preloads, "fetched");
            let key = wanted.key.clone();
            let fetch = Fetch::new(&proxy, wanted, None, Some(leader), Forward::UriMiss);
            let got = fetch.for_cache().run(Body::empty()).await;
            proxy
                .prefetcher
                .backoff
                .record(&key, &got, proxy.runtime.now());
        }));
        PrefetchAttempt::Started
    }
}

/// How a browser with a page requests what the page names.
struct PrefetchOrigin<'a> {
    /// The host that it contacts.
    authority: &'a str,
    /// The origin of the page.
    origin: &'a str,
    /// The page's origin differs from that of the resource.
    is_cross_origin: bool,
}

impl<'a> PrefetchOrigin<'a> {
    /// For `uri`, which the page requested as `page` names.
    fn of(site: &'a Site, page: &'a request::Parts, uri: &'a Uri) -> Self {
        let at = request_authority(page).unwrap_or(&site.name);
        let from = site.named(at).map(HostAlias::origin);
        let authority = uri.authority().map(Authority::as_str);
        let named = authority.and_then(|authority| Some((authority, site.named(authority)?)));
        Self {
            authority: named.map_or(at, |(authority, _)| authority),
            origin: from.unwrap_or(site.rules.site_origin()),
            is_cross_origin: named.is_some_and(|(_, named)| from != Some(named.origin())),
        }
    }
}

/// Where what `reference` names is served: where it would be moved to, or where it is, if that is at `home`.
fn proxied_path(site: &Site, reference: &Reference, home: &url::Origin) -> Option<String> {
    let url = url::Url::parse(&reference.url).ok()?;
    match site
        .rules
        .verdict(&url, reference.kind, ReferenceSource::Site)
    {
        Verdict::Rewrite(path) => Some(path),
        Verdict::Skip(SkipReason::SameSite) if url.origin() == *home => {
            Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
        }
        Verdict::Skip(_) => None,
    }
}

/// The kind by the path of a moved resource, if nothing else states it.
fn kind_by_path(path: &str) -> Kind {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "css" => Kind::Style,
        "js" | "mjs" => Kind::Script,
        "woff" | "woff2" | "ttf" | "otf" | "eot" => Kind::Font,
        "mp4" | "webm" | "mp3" | "ogg" => Kind::Media,
        _ => Kind::Image,
    }
}

fn kind_of(headers: &http::HeaderMap) -> PageKind {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| PageKind::from_content_type(kind.to_str().ok()?));
    kind.unwrap_or(PageKind::Other)
}
