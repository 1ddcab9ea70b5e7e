//! Prefetches the resources that a page or a sheet references, with the headers of the later request.
//!
//! A client that requested a page will request the resources of the page with the same headers. So the prefetcher sends the same requests
//! without the cookies, and stores the responses in the cache. The number of prefetches of a page and their depth are limited
//! (prefetch/limits.rs).

use std::sync::Arc;

use http::{HeaderValue, Method, Request, Uri, header, request};
use spdy_cache::cache_status::Forward;
use spdy_cache::lookup::{self, Lookup};
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::rules::verdict::{ReferenceSource, SkipReason, Verdict};

use crate::cache::coalescer::CoalesceRole;
use crate::cache::shared_response::CoalesceKey;
use crate::config::learn::LearnConfig;
use crate::fetch::background::BackgroundFetch;
use crate::fetch::context::FetchContext;
use crate::fetch::page_observer::PagePrefetches;
use crate::prefetch::accept_history::AcceptHistory;
use crate::prefetch::document_references::path_at_origin;
use crate::prefetch::history::PrefetchHistory;
use crate::prefetch::limits::PrefetchLimits;
use crate::prefetch::module_imports::ModuleReads;
use crate::prefetch::page_resources::PageResources;
use crate::prefetch::recent_lookups::PrefetchContext;
use crate::prefetch::subresource_request::{LoadHints, kind_by_path, subresource_request};
use crate::request::prefetch_step::{PrefetchBudget, PrefetchStep};
use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::rewrite_facts::RewriteFacts;
use crate::sites::site::Site;
use crate::telemetry::counters::CounterFamily;

/// Maximum number of references of one page or sheet that are looked up for a prefetch. Most resources of a page that was served before are
/// stored.
pub(crate) const MAX_PREFETCH_LOOKUPS: usize = 1024;
/// The longest chain of prefetches: a page's sheet, the sheet that it imports, and its images. An endless chain of imports is not followed.
const MAX_PREFETCH_DEPTH: u8 = 3;

/// The state of prefetching.
#[derive(Debug)]
pub(crate) struct Prefetcher {
    is_enabled: bool,
    /// The `Accept` of the later request.
    accept_history: AcceptHistory,
    history: Arc<PrefetchHistory>,
    limits: PrefetchLimits,
    pub(super) module_reads: ModuleReads,
    pub(crate) resources: Arc<PageResources>,
}

/// The result of an attempt to prefetch a resource.
enum PrefetchAttempt {
    /// The fetch was started.
    Started,
    /// It is in memory; `varies` if other headers may select another variant.
    AlreadyStored { varies: bool },
    /// Neither: a fetch is in progress already, it would be useless, or a limit is reached.
    Skipped,
}

impl Prefetcher {
    pub(crate) fn new(config: &LearnConfig, history: Arc<PrefetchHistory>) -> Self {
        Self {
            is_enabled: config.prefetch,
            accept_history: AcceptHistory::default(),
            history,
            limits: PrefetchLimits::new(config),
            module_reads: ModuleReads::default(),
            resources: Arc::default(),
        }
    }

    /// The prefetches left for the request that led to `request`.
    pub(crate) fn budget(&self, request: &ProxyRequest) -> PrefetchBudget {
        match &request.prefetch_step {
            Some(step) => step.budget.clone(),
            None => self.limits.budget(),
        }
    }

    /// Records the `Accept` of `request`, a client's request for a resource that is not stored.
    pub(crate) fn record_accept(&self, request: &ProxyRequest) {
        let client_headers = request.client_headers();
        let accept = client_headers
            .get(header::ACCEPT)
            .map(HeaderValue::as_bytes);
        let is_page = accept.is_none_or(|accept| accept.starts_with(b"text/html"));
        if request.head.method != Method::GET || is_page {
            return;
        }
        let kind = match client_headers.contains_key("sec-fetch-dest") {
            true => request.kind(),
            false => Some(kind_by_path(request.head.uri.path())),
        };
        if let Some(kind) = kind {
            self.accept_history.record(client_headers, kind);
        }
    }

    /// The request for `uri` that the client will send for the page that it requested as `page`.
    pub(super) fn subresource_request(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        load: LoadHints,
    ) -> Option<ProxyRequest> {
        subresource_request(&self.accept_history, site, page, uri, load)
    }

    /// Loads into memory the resources that a page or a sheet, the response to `request`, references: its client will request them. References that
    /// are never prefetched do not count as lookups. Adds the targets that are now being loaded, from origin, disk or shared tier, to
    /// `prefetches`.
    pub(super) fn prefetch_references(
        &self,
        context: &Arc<FetchContext>,
        request: &ProxyRequest,
        prefetches: &mut PagePrefetches,
        references: &[Reference],
    ) {
        let steps = request.prefetch_step.as_ref().map_or(0, |step| step.depth);
        if !self.is_enabled || steps >= MAX_PREFETCH_DEPTH {
            return;
        }
        let Some(origin) = request.client_origin() else {
            return;
        };
        let mut head = Request::new(()).into_parts().0;
        head.headers = request.subresource_headers();
        if let Some(arrival) = request.arrival {
            head.extensions.insert(arrival);
        }
        if let Ok(host) = HeaderValue::from_str(&request.authority) {
            head.headers.insert(header::HOST, host);
        }
        let now = context.clock.now();
        let client = PrefetchContext::of(request, &head.headers);
        for reference in references {
            let (site, kind) = (&request.site, reference.kind);
            let path = match reference.outcome {
                // A browser loads a frame when it becomes visible, and media when the user plays it.
                _ if matches!(kind, Kind::Media | Kind::Document) => None,
                // The browser chooses one of several candidates, or the reference beside them.
                _ if reference.is_candidate => None,
                // A pinned sheet stays at its host or is requested unchanged, but is fetched: so its result is known for the next page.
                Err(SkipReason::Integrity) => proxied_path(site, reference, &origin),
                // A page of an alias is not related to the site's own resources.
                Err(SkipReason::SameSite) if request.is_alias() => None,
                _ => path_at_origin(reference, &origin),
            };
            let Some(path) = path else { continue };
            let Some(remaining) = prefetches.remaining_lookups.checked_sub(1) else {
                break;
            };
            prefetches.remaining_lookups = remaining;
            let load = LoadHints {
                kind: Some(kind),
                by_cors: reference.by_cors,
                referrer_scope: reference.referrer_scope,
            };
            let keys = client.keys(&path, &load);
            if self.history.recent_lookups.has(keys, now) {
                continue;
            }
            let uri = path.parse().ok();
            let next = uri.and_then(|uri| self.subresource_request(site, &head, &uri, load));
            let Some(mut next) = next else { continue };
            next.span_context.clone_from(&request.span_context);
            match self.start(context, next, steps + 1, &prefetches.budget) {
                PrefetchAttempt::Started => prefetches.started.push(path),
                PrefetchAttempt::AlreadyStored { varies } => {
                    self.history.recent_lookups.record(keys, varies, now);
                }
                PrefetchAttempt::Skipped => {}
            }
        }
    }

    /// Prefetches the sheets that are pinned by a page stored with `note` and have no known result.
    pub(crate) fn prefetch_pinned(
        &self,
        context: &Arc<FetchContext>,
        request: &ProxyRequest,
        note: &[u8],
    ) {
        if RewriteFacts::note_lines(note).is_empty() {
            return;
        }
        let unknown: Vec<Reference> = RewriteFacts::parse(note).unknown_stylesheets().collect();
        if unknown.is_empty() {
            return;
        }
        let mut prefetches = PagePrefetches {
            budget: self.budget(request),
            remaining_lookups: unknown.len(),
            started: Vec::new(),
        };
        self.prefetch_references(context, request, &mut prefetches, &unknown);
    }

    /// Loads `request` into memory for a later request, unless it is in memory, was useless before, or is being fetched. It is fetched, and
    /// counted as fetched, only if neither the disk nor the shared tier has it.
    fn start(
        &self,
        context: &Arc<FetchContext>,
        mut request: ProxyRequest,
        depth: u8,
        budget: &PrefetchBudget,
    ) -> PrefetchAttempt {
        let (cache, counters) = (&context.cache, &context.telemetry.counters);
        let policy = cache.policy(request.origin_kind());
        let variants = cache.memory.lookup(&request.key);
        let variants = variants.as_deref().unwrap_or_default();
        let now = context.clock.wall_now();
        let lookup = lookup::lookup(policy, &request.head, variants, now);
        if !matches!(lookup, Lookup::Miss(_)) {
            let varies = variants
                .iter()
                .any(|variant| variant.stored().selecting_names().next().is_some());
            return PrefetchAttempt::AlreadyStored { varies };
        }
        if self.history.backoff.has(&request.key, context.clock.now()) {
            counters.count(CounterFamily::Preloads, "backoff");
            return PrefetchAttempt::Skipped;
        }
        let Some(permit) = self.limits.try_acquire() else {
            counters.count(CounterFamily::Limits, "prefetches");
            return PrefetchAttempt::Skipped;
        };
        let role = cache
            .coalescer
            .join(CoalesceKey::of(&request.key), context.clock.now());
        let CoalesceRole::Leader(leader) = role else {
            return PrefetchAttempt::Skipped;
        };
        if !budget.take() {
            counters.count(CounterFamily::Limits, "prefetch_per_page");
            return PrefetchAttempt::Skipped;
        }
        request.prefetch_step = Some(PrefetchStep {
            depth,
            budget: budget.clone(),
            _permit: permit,
        });
        let (history, context) = (self.history.clone(), context.clone());
        let runtime = context.clock.runtime.clone();
        runtime.spawn(Box::pin(async move {
            if context.promote(&request).await {
                return drop(leader);
            }
            let counters = &context.telemetry.counters;
            counters.count(CounterFamily::Preloads, "prefetched");
            let key = request.key.clone();
            let fetch = BackgroundFetch::new(&context, request, None, leader, Forward::UriMiss);
            let result = fetch.run().await;
            history.backoff.record(&key, result, context.clock.now());
        }));
        PrefetchAttempt::Started
    }
}

/// The path at which the resource of `reference` is served: its proxied path, or its own path if it is at `home`.
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
