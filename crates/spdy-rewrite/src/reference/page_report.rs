//! The report of a rewritten page: how many references were rewritten, which were skipped and why, and by host.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::csp::guard::CspGuard;
use crate::limits::{MAX_REFERENCES, MAX_REPORTED_HOSTS};
use crate::reference::Reference;
use crate::reference::page_modules::PageModules;
use crate::referrer::ReferrerScope;
use crate::rules::verdict::SkipReason;

/// Why a page, or a style sheet, is passed on unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PageSkipReason {
    /// It is of another type than HTML.
    #[error("the response is not HTML")]
    NotHtml,
    /// It has `Cache-Control: no-transform` (RFC 9111 §5.2.2.6).
    #[error("Cache-Control has no-transform")]
    NoTransform,
    /// The rules exclude it.
    #[error("the page is listed in pages_left")]
    OptOut,
    /// It has a content coding.
    #[error("the page has a content coding that cannot be decoded")]
    ContentCoding,
    /// It is only a part of a page.
    #[error("the response is partial content")]
    Partial,
    /// Its policy removes its origin, so that resources under the site's name would be cross-origin for it.
    #[error("Content-Security-Policy puts the page in a sandbox without an origin")]
    Sandboxed,
    /// Its encoding is not a superset of ASCII.
    #[error("the page's encoding is not a superset of ASCII")]
    Encoding,
    /// A tag or a comment exceeded the limit; the page was rewritten up to there.
    #[error("a tag or comment of the page is longer than the limit")]
    TooLong,
}

impl PageSkipReason {
    /// The name for metrics and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotHtml => "not-html",
            Self::NoTransform => "no-transform",
            Self::OptOut => "opt-out",
            Self::ContentCoding => "content-coding",
            Self::Partial => "partial",
            Self::Sandboxed => "sandboxed",
            Self::Encoding => "encoding",
            Self::TooLong => "too-long",
        }
    }
}

/// Counts of the references to one host.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct HostCount {
    /// References that were rewritten to proxied URLs.
    pub proxied: usize,
    /// References that were not rewritten.
    pub skipped: usize,
}

/// The result for a page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PageReport {
    /// Why the page was not rewritten, if so.
    pub skip_reason: Option<PageSkipReason>,
    /// References that were rewritten to proxied URLs.
    pub proxied: usize,
    /// How many of these are on an alias of their host.
    pub aliased: usize,
    /// References that were not rewritten, by the name of the reason. References to the site are not counted.
    pub skipped_by_reason: BTreeMap<&'static str, usize>,
    /// By origin of another host: up to [`MAX_REPORTED_HOSTS`].
    pub hosts: BTreeMap<String, HostCount>,
    /// Preconnect hints that were removed, by their URL.
    pub removed_preconnects: Vec<String>,
    /// True if an import map was inserted.
    pub import_map_added: bool,
    /// References that are not in the report, because it already had [`MAX_REFERENCES`].
    pub unreported: usize,
    /// Which hosts get a `Referer` from the page.
    #[serde(skip)]
    pub referrer_scope: ReferrerScope,
    /// Resources that the page's policy blocks, but would allow under the site's name.
    #[serde(skip)]
    pub guarded: CspGuard,
    /// Its import maps, and the imports of its inline modules.
    #[serde(skip)]
    pub modules: PageModules,
    #[serde(skip)]
    pending: Vec<Reference>,
}

impl PageReport {
    /// The report of a page that is not rewritten.
    pub fn skipped(reason: PageSkipReason) -> Self {
        Self {
            skip_reason: Some(reason),
            ..Self::default()
        }
    }

    /// Counts a reference, and stores it for the report.
    pub(crate) fn add(&mut self, reference: Reference) {
        match &reference.outcome {
            Ok(_) => {
                self.proxied += 1;
                self.aliased += usize::from(reference.is_alias());
                self.count(&reference.url, |host| host.proxied += 1);
            }
            Err(SkipReason::SameSite) => {}
            Err(reason) => self.count_unchanged(&reference.url, reason),
        }
        self.add_uncounted(reference);
    }

    /// Stores a reference for the report, without counting it.
    pub(crate) fn add_uncounted(&mut self, reference: Reference) {
        if self.pending.len() < MAX_REFERENCES {
            self.pending.push(reference);
        } else {
            self.unreported += 1;
        }
    }

    /// Counts a reference of a kind that is never rewritten, such as a frame.
    pub(crate) fn count_unchanged(&mut self, url: &str, reason: &SkipReason) {
        *self.skipped_by_reason.entry(reason.name()).or_default() += 1;
        self.count(url, |host| host.skipped += 1);
    }

    /// Counts one more reference to the host of `url`, unless the limit of hosts is reached.
    fn count(&mut self, url: &str, one_more: impl FnOnce(&mut HostCount)) {
        let origin = origin(url);
        if let Some(host) = self.hosts.get_mut(origin) {
            one_more(host);
        } else if self.hosts.len() < MAX_REPORTED_HOSTS {
            one_more(self.hosts.entry(origin.to_owned()).or_default());
        }
    }

    /// Reports a preconnect hint that was removed.
    pub(crate) fn add_removed_preconnect(&mut self, href: String) {
        if self.removed_preconnects.len() < MAX_REPORTED_HOSTS {
            self.removed_preconnects.push(href);
        }
    }

    /// The references that were found since they were last taken, in the order of the page.
    pub fn take_references(&mut self) -> Vec<Reference> {
        std::mem::take(&mut self.pending)
    }

    /// How many references were not rewritten, for any reason.
    pub fn unchanged_count(&self) -> usize {
        self.skipped_by_reason.values().sum()
    }
}

/// The origin of a URL as the URL standard writes it; the whole text if it is not a URL.
fn origin(url: &str) -> &str {
    // By bytes: searching for a text takes longer than the rest of a report.
    let bytes = url.as_bytes();
    let scheme = bytes.windows(3).position(|three| three == b"://");
    let authority = scheme.map_or(0, |at| at + 3);
    let end = bytes[authority..]
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    end.map_or(url, |at| &url[..authority + at])
}
