//! Stores the latest report of each page, for a caller with the operator's token.
//!
//! ```text
//! a page is rewritten ───────▶ PageReports::record            one report for each page; the oldest are evicted
//! a client requests it ──────▶ PageReports::record_delivery   what was pushed and hinted with it
//! ```
//!
//! The report of a private page has numbers only, and the site's URL in place of the page's: the path and the references may be private. A
//! caller that knows the page's URL can request its numbers, but no report shows that URL.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_report::{HostCount, PageReport};
use url::Url;

use crate::telemetry::page_report::{
    PageCounts, PageSummary, PushedAndHinted, Report, reported_reference, weight,
};

/// The number of pages with a report.
pub const MAX_PAGES: usize = 256;

/// Approximate bytes of all reports.
pub const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Receives each report as it is recorded.
pub type PageObserver = Arc<dyn Fn(&Report) + Send + Sync>;

/// Reports of the latest pages.
#[derive(Default)]
pub struct PageReports {
    state: Mutex<PageReportsState>,
    observer: OnceLock<PageObserver>,
}

impl fmt::Debug for PageReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageReports")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct PageReportsState {
    /// By the URL that clients request; without a query if the page is private.
    pages: BTreeMap<String, Report>,
    /// Keys of `pages` by report time, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

/// A page that was rewritten, or only parsed in a dry run.
#[derive(Clone, Copy, Debug)]
pub struct RewrittenPage<'a> {
    /// The URL that clients request.
    pub url: &'a str,
    /// When it was rewritten.
    pub at: SystemTime,
    /// The page is public.
    pub is_public: bool,
    /// The time of rewriting.
    pub rewriting: Duration,
    /// The references in the page.
    pub named: &'a [Reference],
    /// Targets at the site that were prefetched into memory, from any tier or the origin.
    pub prefetched: &'a [String],
    /// Its rules were only tried in a dry run.
    pub is_dry_run: bool,
}

impl PageReports {
    fn lock(&self) -> MutexGuard<'_, PageReportsState> {
        self.state.lock()
    }

    /// Sets the observer of all further reports; only the first one counts.
    pub fn observe(&self, observer: PageObserver) {
        let _ = self.observer.set(observer);
    }

    /// Records the report of `page` with `counts`, in place of an earlier one.
    pub fn record(&self, page: &RewrittenPage<'_>, counts: PageReport) {
        let mut report = Report {
            url: page.url.to_owned(),
            at: httpdate::fmt_http_date(page.at),
            is_public: page.is_public,
            dry_run: page.is_dry_run,
            rewrite_ms: page.rewriting.as_secs_f64() * 1e3,
            counts,
            references: Vec::new(),
            prefetched: Vec::new(),
            last_delivery: None,
            weight: 0,
        };
        let mut key = page.url;
        if page.is_public {
            report.references = page.named.iter().filter_map(reported_reference).collect();
            report.prefetched = page.prefetched.to_vec();
        } else {
            key = key.split('?').next().unwrap_or_default();
            report.url = root(key);
            report.counts.hosts.clear();
            report.counts.removed_preconnects.clear();
        }
        if let Some(observer) = self.observer.get() {
            observer(&report);
        }
        self.lock().keep(key, report);
    }

    /// Records that the page at `url` was requested again and `resources` were pushed or hinted with it; ignored if the page has no report.
    pub fn record_delivery(&self, url: &str, resources: impl FnOnce() -> PushedAndHinted) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(report) = state.pages.get_mut(url).filter(|page| page.is_public) else {
            return;
        };
        let resources = resources();
        let before = report
            .last_delivery
            .as_ref()
            .map_or(0, PushedAndHinted::weight);
        state.bytes = state.bytes - before + resources.weight();
        report.weight = report.weight - before + resources.weight();
        report.last_delivery = Some(resources);
        state.make_room(0, 0);
    }

    /// The pages, the latest first.
    #[must_use]
    pub fn list(&self) -> Vec<PageSummary> {
        let state = self.lock();
        let pages = state.order.iter().rev();
        let reports = pages.filter_map(|url| state.pages.get(url));
        let summary = |report: &Report| PageSummary {
            url: report.url.clone(),
            at: report.at.clone(),
            is_public: report.is_public,
            dry_run: report.dry_run,
            skip_reason: report.counts.skip_reason,
            skip_message: report.counts.skip_reason.map(|reason| reason.to_string()),
            proxied: report.counts.proxied,
            skipped: report.counts.unchanged_count(),
        };
        reports.map(summary).collect()
    }

    /// The report of the page at `url`.
    #[must_use]
    pub fn of(&self, url: &str) -> Option<Report> {
        self.lock().pages.get(url).cloned()
    }

    /// The numbers of that report, if there is one.
    #[must_use]
    pub fn counts(&self, url: &str) -> Option<PageCounts> {
        let state = self.lock();
        // A private page is stored without its query.
        let path = url.split('?').next().unwrap_or_default();
        let report = state.pages.get(url).or_else(|| state.pages.get(path))?;
        Some(PageCounts {
            dry_run: report.dry_run,
            skip_reason: report.counts.skip_reason,
            proxied: report.counts.proxied,
            skipped: report.counts.unchanged_count(),
        })
    }

    /// How many references of the page at `url` to `origin` were proxied and skipped when it was last rewritten.
    pub(crate) fn host_counts(&self, url: &str, origin: &str) -> Option<HostCount> {
        let state = self.lock();
        state.pages.get(url)?.counts.hosts.get(origin).cloned()
    }

    /// The time that rewriting the page at `url` took the last time, in ms.
    #[must_use]
    pub fn rewriting_ms(&self, url: &str) -> Option<f64> {
        let state = self.lock();
        let report = state.pages.get(url)?;
        let is_rewritten = report.counts.skip_reason.is_none() && !report.dry_run;
        is_rewritten.then_some(report.rewrite_ms)
    }
}

impl PageReportsState {
    fn keep(&mut self, key: &str, mut report: Report) {
        report.weight = weight(key, &report);
        self.forget(key);
        if report.weight > MAX_BYTES {
            return;
        }
        self.make_room(1, report.weight);
        self.bytes += report.weight;
        self.order.push_back(key.to_owned());
        self.pages.insert(key.to_owned(), report);
    }

    /// Removes the oldest reports, until there is room for this many more pages and bytes.
    fn make_room(&mut self, pages: usize, bytes: usize) {
        while self.bytes + bytes > MAX_BYTES || self.pages.len() + pages > MAX_PAGES {
            let Some(oldest) = self.order.front().cloned() else {
                break;
            };
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, url: &str) {
        if let Some(report) = self.pages.remove(url) {
            self.bytes -= report.weight;
            self.order.retain(|listed| listed != url);
        }
    }
}

/// The root of the site of a page at `url`.
fn root(url: &str) -> String {
    let root = Url::parse(url).and_then(|url| url.join("/"));
    root.map(String::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use spdy_rewrite::kind::Kind;
    use spdy_rewrite::referrer::ReferrerScope;
    use spdy_rewrite::rules::verdict::SkipReason;

    use super::*;

    fn page<'a>(url: &'a str, named: &'a [Reference]) -> RewrittenPage<'a> {
        RewrittenPage {
            url,
            at: SystemTime::UNIX_EPOCH,
            is_public: true,
            rewriting: Duration::from_millis(2),
            named,
            prefetched: &[],
            is_dry_run: false,
        }
    }

    fn reference(url: &str, outcome: Result<String, SkipReason>) -> Reference {
        Reference {
            is_candidate: false,
            url: url.to_owned(),
            kind: Kind::Image,
            by_cors: false,
            cannot_preload: false,
            referrer_scope: ReferrerScope::All,
            outcome,
        }
    }

    #[test]
    fn report_lists_rewritten_and_unchanged_references_of_other_hosts() {
        let reports = PageReports::default();
        let named = [
            reference("https://a.test/x", Ok("/.spdy/1/-/s/a.test/x".to_owned())),
            reference("https://site.test/own", Err(SkipReason::SameSite)),
            reference("https://b.test/y", Err(SkipReason::OptOut)),
        ];
        reports.record(&page("https://site.test/", &named), PageReport::default());
        let report = reports.of("https://site.test/").unwrap();
        let references: Vec<_> = report
            .references
            .iter()
            .map(|references| (&references.url[..], references.reason))
            .collect();
        assert_eq!(
            references,
            [
                ("https://a.test/x", None),
                ("https://b.test/y", Some("opt-out"))
            ]
        );
        assert_eq!(reports.rewriting_ms("https://site.test/"), Some(2.0));
        assert_eq!(reports.rewriting_ms("https://site.test/other"), None);
    }

    #[test]
    fn report_of_private_page_has_no_urls() {
        let reports = PageReports::default();
        let named = [reference(
            "https://a.test/personal",
            Ok("/moved".to_owned()),
        )];
        let ahead = ["/personal".to_owned()];
        let private = RewrittenPage {
            is_public: false,
            prefetched: &ahead,
            ..page("https://site.test/reset/secret?token=1", &named)
        };
        let mut counts = PageReport::default();
        counts.proxied = 1;
        counts
            .removed_preconnects
            .push("https://a.test/?personal".to_owned());
        let host = ("https://personal.a.test".to_owned(), HostCount::default());
        counts.hosts.extend([host]);
        reports.record(&private, counts);
        reports.record_delivery("https://site.test/reset/secret", || PushedAndHinted {
            pushed: vec!["/personal".to_owned()],
            hinted: Vec::new(),
        });
        assert!(
            reports
                .of("https://site.test/reset/secret?token=1")
                .is_none()
        );
        let report = reports.of("https://site.test/reset/secret").unwrap();
        assert_eq!(
            (&report.url[..], report.counts.proxied),
            ("https://site.test/", 1)
        );
        for text in [
            serde_json::to_string(&report).unwrap(),
            serde_json::to_string(&reports.list()).unwrap(),
        ] {
            let private_word = ["personal", "token", "secret"];
            let private_word = private_word
                .into_iter()
                .find(|&private_word| text.contains(private_word));
            assert_eq!(private_word, None, "{text}");
        }
    }

    #[test]
    fn pushed_and_hinted_urls_count_towards_the_byte_limit() {
        let reports = PageReports::default();
        let url = |number: usize| format!("https://site.test/{number}");
        for number in 0..2 {
            reports.record(&page(&url(number), &[]), PageReport::default());
        }
        let delivery = |bytes: usize| PushedAndHinted {
            pushed: vec!["x".repeat(bytes)],
            hinted: Vec::new(),
        };
        for bytes in [1000, 10, MAX_BYTES / 2] {
            reports.record_delivery(&url(0), || delivery(bytes));
            let state = reports.lock();
            let weights = state.pages.iter().map(|(key, report)| weight(key, report));
            assert_eq!(weights.sum::<usize>(), state.bytes, "{bytes}");
            assert_eq!(state.pages.len(), 2, "{bytes}");
        }
        assert_eq!(
            reports.of(&url(0)).unwrap().last_delivery,
            Some(delivery(MAX_BYTES / 2))
        );
        assert_eq!(reports.list()[0].url, url(1), "it is as old as it was");
        reports.record_delivery(&url(1), || delivery(MAX_BYTES / 2));
        assert!(reports.of(&url(0)).is_none() && reports.of(&url(1)).is_some());
    }

    #[test]
    fn only_the_latest_pages_are_kept_within_limits() {
        let reports = PageReports::default();
        let url = |number: usize| format!("https://site.test/{number}");
        for number in 0..MAX_PAGES {
            reports.record(&page(&url(number), &[]), PageReport::default());
        }
        assert_eq!(reports.list().len(), MAX_PAGES);
        // A page that is requested again becomes the youngest, though nothing else changed.
        reports.record(&page(&url(0), &[]), PageReport::default());
        reports.record(&page(&url(MAX_PAGES), &[]), PageReport::default());
        assert_eq!(reports.list().len(), MAX_PAGES);
        assert!(reports.of(&url(0)).is_some() && reports.of(&url(1)).is_none());
        assert_eq!(reports.list()[0].url, url(MAX_PAGES));

        let long = "x".repeat(MAX_BYTES / 8);
        let named = [reference(&long, Err(SkipReason::OptOut))];
        for number in 0..8 {
            reports.record(&page(&url(number), &named), PageReport::default());
        }
        let state = reports.lock();
        assert!(state.bytes <= MAX_BYTES, "{} bytes", state.bytes);
        let sum: usize = state.pages.values().map(|report| report.weight).sum();
        assert_eq!((sum, state.order.len()), (state.bytes, state.pages.len()));
        assert!(state.pages.contains_key(&url(7)) && !state.pages.contains_key(&url(0)));
        drop(state);
        let longer = "x".repeat(MAX_BYTES + 1);
        let named = [reference(&longer, Err(SkipReason::OptOut))];
        reports.record(&page(&url(7), &named), PageReport::default());
        assert!(reports.of(&url(7)).is_none());
    }
}
