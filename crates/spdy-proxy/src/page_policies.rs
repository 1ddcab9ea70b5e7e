//! What the pages of a site said that goes for what is asked for after them: whose scripts may not come under the site's name, and
//! which pages nobody is to hear of.
//!
//! ```text
//!  head of a page, kept or not ──┐             ┌──▶ a script is asked for: sent on to its host (spdy-rewrite/guarded.rs)
//!  policies in its text ─────────┴▶ remembered ┴──▶ a moved thing is asked for with a Referer: its host hears nothing of the page
//! ```
//!
//! It is learned anew when the program is started again or its rules are others: from heads as pages are served, from a page's text when
//! the end of that has been rewritten. So of a page that says it in its text alone, and is served out of a disk or the tier that machines
//! share, nothing is known until it is rewritten here.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::HeaderMap;
use spdy_rewrite::guarded::Guarded;
use spdy_rewrite::referrer::Tells;
use spdy_rewrite::rules::Rules;
use url::Url;

/// Pages of which it is remembered that no other host is to hear of them, the latest.
const QUIET_PAGES: usize = 4096;

/// What is remembered of a site.
#[derive(Debug, Default)]
pub struct PagePolicies(Mutex<Known>);

#[derive(Clone, Debug, Default)]
struct Known {
    guarded: Guarded,
    /// Digests of URLs: one may be somebody's alone.
    quiet: BTreeSet<u64>,
    order: VecDeque<u64>,
}

impl PagePolicies {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The site's own answer for `page`, as browsers name it, is sent with this head.
    pub(crate) fn note_head(&self, rules: &Rules, page: &Url, headers: &HeaderMap) {
        let guarded = Guarded::by_head(rules, page, headers);
        let tells = Tells::by_head(headers);
        let mut known = self.lock();
        known.guarded.extend(guarded);
        if tells == Tells::Site {
            known.keep_quiet(page);
        }
    }

    /// All of a page came by, and this is what it said.
    pub(crate) fn note_page(&self, page: &Url, guarded: Guarded, tells: Tells) {
        let mut known = self.lock();
        known.guarded.extend(guarded);
        match tells {
            Tells::Site => known.keep_quiet(page),
            Tells::Nobody | Tells::Everyone => known.forget(page),
        }
    }

    /// Whether scripts at `url`, in its own place, are not served under the site's name.
    #[must_use]
    pub fn guards(&self, rules: &Rules, url: &Url) -> bool {
        self.lock().guarded.has(rules, url)
    }

    /// Whether no other host is to hear of the page at `referer`.
    pub(crate) fn is_quiet(&self, referer: &str) -> bool {
        self.lock().quiet.contains(&digest(referer))
    }

    /// Knows what `other` did, of the same site under the same rules.
    pub(crate) fn take_over(&self, other: &Self) {
        let known = other.lock().clone();
        *self.lock() = known;
    }
}

impl Known {
    fn forget(&mut self, page: &Url) {
        let digest = digest(&page[..url::Position::AfterQuery]);
        if self.quiet.remove(&digest) {
            self.order.retain(|other| *other != digest);
        }
    }

    fn keep_quiet(&mut self, page: &Url) {
        let digest = digest(&page[..url::Position::AfterQuery]);
        if !self.quiet.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > QUIET_PAGES
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
    fn of_so_many_pages_it_is_remembered_that_nobody_hears_of_them() {
        let policies = PagePolicies::default();
        let page = |at: usize| Url::parse(&format!("https://www.site.test/{at}?x")).expect("a URL");
        for at in 0..=QUIET_PAGES {
            policies.note_page(&page(at), Guarded::default(), Tells::Site);
            policies.note_page(&page(at), Guarded::default(), Tells::Site);
        }
        assert!(!policies.is_quiet(page(0).as_str()), "one too many");
        assert!(policies.is_quiet(page(1).as_str()));
        let heir = PagePolicies::default();
        heir.take_over(&policies);
        assert!(heir.is_quiet(page(QUIET_PAGES).as_str()));
        policies.note_page(&page(1), Guarded::default(), Tells::Everyone);
        assert!(
            !policies.is_quiet(page(1).as_str()),
            "it says otherwise now"
        );
        // One that changes its mind takes one place.
        for _ in 0..QUIET_PAGES {
            policies.note_page(&page(1), Guarded::default(), Tells::Site);
            policies.note_page(&page(1), Guarded::default(), Tells::Everyone);
        }
        assert!(policies.is_quiet(page(2).as_str()));
    }
}
