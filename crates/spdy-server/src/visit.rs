//! What one session has had so far, and which pages it looks at.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;

/// URLs that are remembered of a session; with more, nothing is pushed in it any more.
const REMEMBERED_URLS: usize = 4096;
/// Bytes of all of them, likewise, and of what is remembered of pages: a URL may be as long as a head.
const REMEMBERED_BYTES: usize = 256 * 1024;
/// Pages of a session that requests may refer to.
const REMEMBERED_PAGES: usize = 8;
/// Things after one page that are told apart.
const REMEMBERED_NEEDS: usize = 256;

/// The memory of one session.
#[derive(Debug, Default)]
pub struct Visit {
    /// Asked for, or pushed.
    had: BTreeSet<String>,
    /// Bytes of them.
    had_bytes: usize,
    /// They were more than are remembered; none is any more.
    had_too_much: bool,
    pages: VecDeque<View>,
    /// Bytes of the URLs in them.
    page_bytes: usize,
}

/// One page that was looked at.
#[derive(Debug)]
struct View {
    url: String,
    since: Instant,
    /// What was asked for after it.
    asked: BTreeSet<String>,
}

impl View {
    fn bytes(&self) -> usize {
        self.url.len() + self.asked.iter().map(String::len).sum::<usize>()
    }
}

impl Visit {
    /// Notes what the client asked for, or was sent; whether that is new.
    pub fn note(&mut self, url: &str) -> bool {
        if self.has(url) {
            return false;
        }
        if self.had.len() >= REMEMBERED_URLS || self.had_bytes + url.len() > REMEMBERED_BYTES {
            self.had_too_much = true;
            self.had.clear();
            return false;
        }
        self.had_bytes += url.len();
        self.had.insert(url.to_owned())
    }

    /// Whether the client may have it already.
    #[must_use]
    pub fn has(&self, url: &str) -> bool {
        self.had_too_much || self.had.contains(url)
    }

    /// A page is answered.
    pub fn view(&mut self, now: Instant, url: &str) {
        if self.pages.len() >= REMEMBERED_PAGES {
            let oldest = self.pages.pop_front();
            self.page_bytes -= oldest.map_or(0, |view| view.bytes());
        }
        if self.page_bytes + url.len() > REMEMBERED_BYTES {
            return;
        }
        self.page_bytes += url.len();
        self.pages.push_back(View {
            url: url.to_owned(),
            since: now,
            asked: BTreeSet::new(),
        });
    }

    /// `url` is asked for with `referer`: whether that page was looked at in the last `window`, and this is
    /// the first time since that it leads there.
    pub fn follows(&mut self, now: Instant, window: Duration, referer: &str, url: &str) -> bool {
        let Some(view) = self.pages.iter_mut().rev().find(|view| view.url == referer) else {
            return false;
        };
        let follows = now.saturating_since(view.since) <= window
            && view.asked.len() < REMEMBERED_NEEDS
            && self.page_bytes + url.len() <= REMEMBERED_BYTES
            && view.asked.insert(url.to_owned());
        self.page_bytes += if follows { url.len() } else { 0 };
        follows
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
        assert!(!visit.has("x"));
        visit.note("one more");
        assert!(visit.has("x"));
        assert_eq!(visit.had.len(), 0);
    }

    /// A URL of 60 KiB is some hundred bytes on the wire, and 4096 of them were 240 MiB here.
    #[test]
    fn long_urls_are_remembered_up_to_so_many_bytes_together() {
        let long = |n: usize| format!("/{n:04}{}", "a".repeat(60_000));
        let window = Duration::from_secs(10);
        let mut visit = Visit::default();
        for n in 0..4 {
            visit.note(&long(n));
            visit.note(&long(n));
            assert!(!visit.has("x"), "{n}");
        }
        visit.note(&long(4));
        assert!(visit.has("x"), "one past the limit");
        assert_eq!(visit.had.len(), 0);

        let mut visit = Visit::default();
        for n in 0..2 * REMEMBERED_PAGES {
            visit.view(at(0), &n.to_string());
            let needs =
                (0..20).filter(|need| visit.follows(at(0), window, &n.to_string(), &long(*need)));
            let has_room = n % REMEMBERED_PAGES == 0; // the page that fills it goes when it is the oldest
            assert_eq!(needs.count(), if has_room { 4 } else { 0 }, "page {n}");
            let held = visit.pages.iter().map(View::bytes).sum::<usize>();
            assert_eq!(visit.page_bytes, held);
            assert!(held <= REMEMBERED_BYTES);
        }
    }
}
