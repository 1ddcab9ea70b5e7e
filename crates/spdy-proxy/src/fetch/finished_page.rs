//! Records the results of a page that has passed to its end: in its site's policies, in counters and in reports.

use std::time::Duration;

use http::StatusCode;
use spdy_cache::stored::Stored;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_modules::PageModules;
use spdy_rewrite::reference::page_report::{PageReport, PageSkipReason};
use spdy_rewrite::referrer::ReferrerScope;

use crate::cache::public_response::is_public;
use crate::fetch::context::FetchContext;
use crate::request::proxy_request::ProxyRequest;
use crate::sites::page_policies::PagePolicy;
use crate::telemetry::counters::CounterFamily;
use crate::telemetry::page_reports;

/// A page that passed to its end, and the result of rewriting it.
pub(crate) struct FinishedPage<'a> {
    pub(crate) report: PageReport,
    pub(crate) status: StatusCode,
    /// The references in it, up to a limit.
    pub(crate) references: &'a [Reference],
    /// It is stored, so that other requests may use it.
    pub(crate) is_shared: bool,
    /// The head of the page, if it is public: stored, or the same for all requests that wait for it.
    pub(crate) public: Option<&'a Stored>,
    /// Targets of what was prefetched for it: fetched, or loaded from the disk or the shared tier.
    pub(crate) prefetched: &'a [String],
    /// The time of rewriting.
    pub(crate) rewriting: Duration,
    /// It was not changed: these are the results that it would have had.
    pub(crate) is_dry_run: bool,
}

/// Records a page that was read to its end, and its result.
pub(crate) fn record(context: &FetchContext, request: &ProxyRequest, done: FinishedPage<'_>) {
    let Some(url) = request.url() else {
        return;
    };
    let (mut report, references, is_shared) = (done.report, done.references, done.is_shared);
    // An error page does not show the policy of the next response to the same request.
    let is_page = done.status == StatusCode::OK;
    let own = request.client_url().filter(|_| !request.is_alias());
    if let (None, Some(page_url)) = (report.skip_reason, own) {
        let guarded = std::mem::take(&mut report.guarded);
        let pages = &request.site.pages;
        match is_page {
            true => pages.record_page(&page_url, guarded, report.referrer_scope),
            false => {
                let hides_referrer = report.referrer_scope == ReferrerScope::SameSite;
                pages.record_head(
                    || Some(page_url),
                    PagePolicy {
                        csp_guard: guarded,
                        hides_referrer,
                    },
                );
            }
        }
    }
    let counters = &context.telemetry.counters;
    let (page_label, proxied_label, alias_label) = match done.is_dry_run {
        true => ("dry-run", "would-proxy", "would-alias"),
        false => ("rewritten", "proxied", "aliased"),
    };
    counters.count(
        CounterFamily::Pages,
        report.skip_reason.map_or(page_label, PageSkipReason::name),
    );
    let proxied_by_path = report.proxied - report.aliased;
    counters.add(
        CounterFamily::References,
        proxied_label,
        proxied_by_path as u64,
    );
    if report.aliased > 0 {
        counters.add(
            CounterFamily::References,
            alias_label,
            report.aliased as u64,
        );
    }
    for (reason, count) in &report.skipped_by_reason {
        counters.add(CounterFamily::References, reason, *count as u64);
    }
    tracing::debug!(%url, proxied = report.proxied, skipped = report.unchanged_count(), "finished a page");
    if let (Some(stored), true) = (done.public, is_page && !request.is_alias()) {
        let (preloadable, modules) = match done.is_dry_run {
            true => (&[][..], PageModules::default()),
            false => (references, std::mem::take(&mut report.modules)),
        };
        let observer = &context.observer;
        observer.page_finished(request, stored, preloadable, modules);
    }
    let page = page_reports::RewrittenPage {
        url: url.as_str(),
        at: context.clock.wall_now(),
        is_public: is_shared,
        rewriting: done.rewriting,
        named: references,
        prefetched: done.prefetched,
        is_dry_run: done.is_dry_run,
    };
    context.pages.reports.record(&page, report);
}

/// Records a page that is passed on without a change.
pub(crate) fn record_skipped(
    context: &FetchContext,
    request: &ProxyRequest,
    reason: PageSkipReason,
    stored: Option<&Stored>,
    status: StatusCode,
) {
    let done = FinishedPage {
        report: PageReport::skipped(reason),
        status,
        references: &[],
        is_shared: stored.is_some(),
        public: stored.filter(|stored| is_public(stored)),
        prefetched: &[],
        rewriting: Duration::ZERO,
        is_dry_run: false,
    };
    record(context, request, done);
}
