//! The report of one page: the results for its references, and what was prefetched, pushed and hinted with it.

use serde::Serialize;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_report::{PageReport, PageSkipReason};
use spdy_rewrite::rules::verdict::SkipReason;

/// Bytes that a URL counts in addition to its length, for its entry.
const URL_OVERHEAD_BYTES: usize = 96;

/// The report of a page.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The URL that clients request; the root of the site if the page is private.
    pub url: String,
    /// When it was rewritten, as an HTTP date.
    pub at: String,
    /// The page is public, so that the report may have URLs.
    pub is_public: bool,
    /// The rules were only tried (`dry_run`): the page was not changed, and these are the results that it would have had.
    pub dry_run: bool,
    /// Time for decoding and rewriting the page, in ms.
    pub rewrite_ms: f64,
    /// Counts of references by result, reason and host; or why the page was not rewritten.
    #[serde(flatten)]
    pub counts: PageReport,
    /// References to other hosts in the order of the page, up to a limit.
    pub references: Vec<ReportedReference>,
    /// What was prefetched into memory, as clients see it: fetched, or loaded from the disk or the shared tier.
    pub prefetched: Vec<String>,
    /// What was pushed or hinted with it for the latest request of a client.
    pub last_delivery: Option<PushedAndHinted>,
    #[serde(skip)]
    pub(super) weight: usize,
}

/// A reference to another host.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedReference {
    /// The full URL that it refers to.
    pub url: String,
    /// The kind of resource.
    pub kind: &'static str,
    /// The proxied URL; `None` if the reference was not rewritten.
    pub proxied_to: Option<String>,
    /// The name of the reason why it was not rewritten.
    pub reason: Option<&'static str>,
    /// The reason in words.
    pub message: Option<String>,
}

/// The resources that were pushed or hinted with a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PushedAndHinted {
    /// Pushed.
    pub pushed: Vec<String>,
    /// Hinted by 103 or Link.
    pub hinted: Vec<String>,
}

/// The results for the references of a page, in numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageCounts {
    /// The rules were only tried (`dry_run`): the page was not changed.
    pub dry_run: bool,
    /// Why the page was not rewritten, if so.
    pub skip_reason: Option<PageSkipReason>,
    /// References that were rewritten to proxied URLs.
    pub proxied: usize,
    /// References that were not rewritten.
    pub skipped: usize,
}

/// One line of the list of reports.
#[derive(Clone, Debug, Serialize)]
pub struct PageSummary {
    /// As [`Report::url`].
    pub url: String,
    /// As [`Report::at`].
    pub at: String,
    /// As [`Report::is_public`].
    pub is_public: bool,
    /// As [`Report::dry_run`].
    pub dry_run: bool,
    /// Why the page was not rewritten, if so.
    pub skip_reason: Option<PageSkipReason>,
    /// That reason in words.
    pub skip_message: Option<String>,
    /// References that were rewritten to proxied URLs.
    pub proxied: usize,
    /// References that were not rewritten.
    pub skipped: usize,
}

impl PushedAndHinted {
    pub(super) fn weight(&self) -> usize {
        urls_weight(&self.pushed) + urls_weight(&self.hinted)
    }
}

fn text_weight(text: &str) -> usize {
    text.len() + URL_OVERHEAD_BYTES
}

fn urls_weight(urls: &[String]) -> usize {
    urls.iter().map(|url| text_weight(url)).sum()
}

pub(super) fn weight(key: &str, report: &Report) -> usize {
    let references = report.references.iter().map(|reference| {
        let len = |text: &Option<String>| text.as_deref().map_or(0, str::len);
        text_weight(&reference.url) + len(&reference.proxied_to) + len(&reference.message)
    });
    let hosts = report.counts.hosts.keys().map(|host| text_weight(host));
    // The URL is twice in keys, and once in the report.
    2 * text_weight(key)
        + text_weight(&report.url)
        + references.sum::<usize>()
        + urls_weight(&report.prefetched)
        + urls_weight(&report.counts.removed_preconnects)
        + hosts.sum::<usize>()
        + report
            .last_delivery
            .as_ref()
            .map_or(0, PushedAndHinted::weight)
}

/// The entry for `reference`; `None` if it is of the site itself.
pub(super) fn reported_reference(reference: &Reference) -> Option<ReportedReference> {
    let (proxied_to, reason) = match &reference.outcome {
        Ok(path) => (Some(path.clone()), None),
        Err(SkipReason::SameSite) => return None,
        Err(reason) => (None, Some(reason)),
    };
    Some(ReportedReference {
        url: reference.url.clone(),
        kind: reference.kind.name(),
        proxied_to,
        reason: reason.map(SkipReason::name),
        message: reason.map(ToString::to_string),
    })
}
