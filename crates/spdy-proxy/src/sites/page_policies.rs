//! Policies of a site's pages that apply to later requests: whose scripts and sheets may not be served under the site's name, and which
//! pages are hidden from other hosts.
//!
//! ```text
//!  head of a page ───────┐               ┌──▶ a script or sheet is requested: redirected to its host (spdy-rewrite/csp/guard.rs)
//!  policies in its text ─┼─▶ remembered ─┴──▶ a proxied resource is requested with a Referer: its host gets no Referer
//!        a page is stored ┴─▶ a note with it ──▶ the same after a restart, and on another machine
//! ```
//!
//! After a restart or a change of the rules, policies are learned again from each served page: from its head on arrival, from its text when
//! its end has been rewritten, and from the note of a stored page.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use spdy_rewrite::csp::guard::CspGuard;
use spdy_rewrite::kind::Kinds;
use spdy_rewrite::referrer::ReferrerScope;
use spdy_rewrite::rules::Rules;
use url::Url;

/// The number of pages that are hidden from other hosts, the latest.
const MAX_HIDDEN_REFERRERS: usize = 4096;

/// The first word of the note of what may be a page.
const PAGE: &str = "page";
/// The word in a note of a page that is hidden from other hosts.
const HIDES_REFERRER: &str = "quiet";

/// The policies of one page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct PagePolicy {
    /// Whose scripts and sheets may not be served under the site's name.
    pub(crate) csp_guard: CspGuard,
    /// No other host may see its URL.
    pub(crate) hides_referrer: bool,
}

impl PagePolicy {
    /// The policies in its head.
    pub(crate) fn from_head(rules: &Rules, page: &Url, headers: &HeaderMap) -> Self {
        Self {
            csp_guard: CspGuard::from_head(rules, page, headers),
            hides_referrer: ReferrerScope::from_headers(headers) == ReferrerScope::SameSite,
        }
    }

    /// The note stored with the page, as `page quiet 0 3-style`. A stored page is served without parsing its head and text again.
    pub(crate) fn note(&self) -> Vec<u8> {
        let mut note = PAGE.to_owned();
        if self.hides_referrer {
            note.extend([" ", HIDES_REFERRER]);
        }
        for word in self.csp_guard.tokens() {
            note.extend([" ", &word]);
        }
        note.into_bytes()
    }

    /// Parses the first line of a note; `None` if it is not the note of a page.
    pub(crate) fn parse_note(note: &[u8]) -> Option<Self> {
        let note = note.split(|byte| *byte == b'\n').next()?;
        let mut words = std::str::from_utf8(note).ok()?.split(' ').peekable();
        words.next().filter(|word| *word == PAGE)?;
        let is_quiet = words.next_if_eq(&HIDES_REFERRER).is_some();
        let guarded = CspGuard::parse(words)?;
        Some(Self {
            csp_guard: guarded,
            hides_referrer: is_quiet,
        })
    }

    fn is_empty(&self) -> bool {
        self.csp_guard.is_empty() && !self.hides_referrer
    }
}

/// The page policies of a site.
#[derive(Debug, Default)]
pub struct PagePolicies(Mutex<SitePolicy>);

#[derive(Clone, Debug, Default)]
struct SitePolicy {
    guarded: CspGuard,
    /// Digests of URLs, since a URL may be private to one client.
    quiet: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl PagePolicies {
    fn lock(&self) -> MutexGuard<'_, SitePolicy> {
        self.0.lock()
    }

    /// Records the policy in the head of a response of the site's own origin. `page` returns the URL that browsers have for it, if it is known.
    pub(crate) fn record_head(&self, page: impl FnOnce() -> Option<Url>, policy: PagePolicy) {
        if policy.is_empty() {
            return; // most pages, each time they are served
        }
        let mut state = self.lock();
        state.guarded.extend(policy.csp_guard);
        if let (true, Some(page)) = (policy.hides_referrer, page()) {
            state.add_hidden_referrer(&page);
        }
    }

    /// Records the policy of a page that was read to its end.
    pub(crate) fn record_page(&self, page: &Url, guarded: CspGuard, referrer_scope: ReferrerScope) {
        let mut state = self.lock();
        state.guarded.extend(guarded);
        match referrer_scope {
            ReferrerScope::SameSite => state.add_hidden_referrer(page),
            ReferrerScope::None | ReferrerScope::All => state.forget(page),
        }
    }

    /// The kinds as which the resource at `url`, at its own host, is not served under the site's name.
    #[must_use]
    pub fn guarded_kinds(&self, rules: &Rules, url: &Url) -> Kinds {
        self.lock().guarded.guarded_kinds(rules, url)
    }

    /// Whether the page at `referer` is hidden from other hosts.
    pub(crate) fn hides_referrer(&self, referer: &str) -> bool {
        self.lock().quiet.contains(&digest(referer))
    }

    /// Copies the policies of `other`, of the same site under the same rules.
    pub(crate) fn copy_from(&self, other: &Self) {
        let state = other.lock().clone();
        *self.lock() = state;
    }
}

impl SitePolicy {
    fn forget(&mut self, page: &Url) {
        let digest = digest(&page[..url::Position::AfterQuery]);
        if self.quiet.remove(&digest) {
            self.order.retain(|other| *other != digest);
        }
    }

    fn add_hidden_referrer(&mut self, page: &Url) {
        let digest = digest(&page[..url::Position::AfterQuery]);
        if !self.quiet.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > MAX_HIDDEN_REFERRERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.quiet.remove(&oldest);
        }
    }
}

fn digest(url: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    url.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_note_round_trips_and_other_notes_are_ignored() {
        for (is_quiet, note) in [
            (false, "page"),
            (true, "page quiet"),
            (false, "page 0 12"),
            (true, "page quiet 3-style 3"),
            (false, "page 1-style from:'self' from:'self',https://a.test"),
        ] {
            let policy = PagePolicy::parse_note(note.as_bytes()).expect("a note");
            assert_eq!(policy.hides_referrer, is_quiet, "{note}");
            assert_eq!(policy.note(), note.as_bytes());
        }
        for other in [
            "",
            "pages",
            "page  1",
            "page -1",
            "page 1 quiet",
            "page x",
            "page 1-font",
            "page -style",
        ] {
            assert_eq!(PagePolicy::parse_note(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(PagePolicy::parse_note(b"page \xff"), None);
    }

    #[test]
    fn hidden_referrer_pages_are_limited() {
        let policies = PagePolicies::default();
        let page = |at: usize| Url::parse(&format!("https://www.site.test/{at}?x")).expect("a URL");
        for at in 0..=MAX_HIDDEN_REFERRERS {
            policies.record_page(&page(at), CspGuard::default(), ReferrerScope::SameSite);
            policies.record_page(&page(at), CspGuard::default(), ReferrerScope::SameSite);
        }
        assert!(!policies.hides_referrer(page(0).as_str()), "one too many");
        assert!(policies.hides_referrer(page(1).as_str()));
        // A stored page is served again and again, and counts once.
        let policy = PagePolicy {
            hides_referrer: true,
            ..PagePolicy::default()
        };
        for _ in 0..MAX_HIDDEN_REFERRERS {
            policies.record_head(|| Some(page(MAX_HIDDEN_REFERRERS)), policy.clone());
        }
        assert!(policies.hides_referrer(page(1).as_str()));
        let heir = PagePolicies::default();
        heir.copy_from(&policies);
        assert!(heir.hides_referrer(page(MAX_HIDDEN_REFERRERS).as_str()));
        policies.record_page(&page(1), CspGuard::default(), ReferrerScope::All);
        assert!(
            !policies.hides_referrer(page(1).as_str()),
            "it says otherwise now"
        );
        // A page that changes its policy takes one entry.
        for _ in 0..MAX_HIDDEN_REFERRERS {
            policies.record_page(&page(1), CspGuard::default(), ReferrerScope::SameSite);
            policies.record_page(&page(1), CspGuard::default(), ReferrerScope::All);
        }
        assert!(policies.hides_referrer(page(2).as_str()));
    }
}
