//! What one session has had so far, and which pages it looks at.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;

/// URLs that are remembered of a session; with more, nothing is pushed in it any more.
const REMEMBERED_URLS: usize = 4096;
/// Pages of a session that requests may refer to.
const REMEMBERED_PAGES: usize = 8;
/// Things after one page that are told apart.
const REMEMBERED_NEEDS: usize = 256;

/// The memory of one session.
#[derive(Debug, Default)]
pub(crate) struct Visit {
    /// Asked for, or pushed.
    had: BTreeSet<String>,
    pages: VecDeque<View>,
}

/// One page that was looked at.
#[derive(Debug)]
struct View {
    url: String,
    since: Instant,
    /// What was asked for after it.
    asked: BTreeSet<String>,
}

impl Visit {
    /// Notes what the client asked for, or was sent.
    pub(crate) fn note(&mut self, url: &str) {
        if self.had.len() < REMEMBERED_URLS {
            self.had.insert(url.to_owned());
        }
    }

    /// Whether the client may have it already.
    pub(crate) fn has(&self, url: &str) -> bool {
        self.had.len() >= REMEMBERED_URLS || self.had.contains(url)
    }

    /// A page is answered.
    pub(crate) fn view(&mut self, now: Instant, url: &str) {
        if self.pages.len() >= REMEMBERED_PAGES {
            self.pages.pop_front();
        }
        self.pages.push_back(View {
            url: url.to_owned(),
            since: now,
            asked: BTreeSet::new(),
        });
    }

    /// `url` is asked for with `referer`: whether that page was looked at in the last `window`, and this is
    /// the first time since that it leads there.
    pub(crate) fn follows(
        &mut self,
        now: Instant,
        window: Duration,
        referer: &str,
        url: &str,
    ) -> bool {
        let view = self.pages.iter_mut().rev().find(|view| view.url == referer);
        view.is_some_and(|view| {
            now.saturating_since(view.since) <= window
                && view.asked.len() < REMEMBERED_NEEDS
                && view.asked.insert(url.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_thing_follows_its_page_once_and_within_the_window() {
        let window = Duration::from_secs(10);
        let mut visit = Visit::default();
        visit.view(at(0), "/page");
        assert!(visit.follows(at(10), window, "/page", "/a"));
        assert!(!visit.follows(at(10), window, "/page", "/a"), "once a view");
        assert!(!visit.follows(at(10), window, "/other", "/b"));
        visit.view(at(20), "/page");
        assert!(visit.follows(at(20), window, "/page", "/a"));
        assert!(!visit.follows(at(31), window, "/page", "/b"), "too late");
        for page in 0..REMEMBERED_PAGES {
            visit.view(at(20), &page.to_string());
        }
        assert!(
            !visit.follows(at(20), window, "/page", "/c"),
            "a page too many since"
        );
        for need in 0..=REMEMBERED_NEEDS {
            let follows = visit.follows(at(20), window, "7", &need.to_string());
            assert_eq!(follows, need < REMEMBERED_NEEDS, "{need}");
        }
    }

    #[test]
    fn who_had_too_much_to_remember_has_everything() {
        let mut visit = Visit::default();
        for n in 0..REMEMBERED_URLS {
            assert!(!visit.has("x"), "{n}");
            visit.note(&n.to_string());
        }
        assert!(visit.has("x"));
        visit.note("one more");
        assert_eq!(visit.had.len(), REMEMBERED_URLS);
    }
}
