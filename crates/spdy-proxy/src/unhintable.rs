//! What pages load in a way that no hint says: they are told nothing of it beforehand, for a browser would load it twice.
//!
//! It is learned of every page that comes by, of one client's alone too: so only digests are kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pages of which that is remembered, the latest.
const PAGES: usize = 1024;
/// Things of one page, the first in it.
const THINGS_PER_PAGE: usize = 64;

/// Things of all pages.
#[derive(Debug, Default)]
pub(crate) struct Unhintable(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Digests of URLs: of a page's, and of its things'.
    pages: BTreeMap<u64, BTreeSet<u64>>,
    order: VecDeque<u64>,
}

impl Unhintable {
    /// All of the page at `page` came by, and it loads these `things` so.
    pub(crate) fn note<'t>(&self, page: &str, things: impl Iterator<Item = &'t str>) {
        let things: BTreeSet<u64> = things.take(THINGS_PER_PAGE).map(digest).collect();
        let page = digest(page);
        let mut known = self.lock();
        if things.is_empty() {
            if known.pages.remove(&page).is_some() {
                known.order.retain(|other| *other != page);
            }
            return;
        }
        if known.pages.insert(page, things).is_some() {
            return;
        }
        known.order.push_back(page);
        if known.order.len() > PAGES
            && let Some(oldest) = known.order.pop_front()
        {
            known.pages.remove(&oldest);
        }
    }

    /// Whether the page at `page` loads what is at `thing` so.
    pub(crate) fn has(&self, page: &str, thing: &str) -> bool {
        let known = self.lock();
        let things = known.pages.get(&digest(page));
        things.is_some_and(|things| things.contains(&digest(thing)))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn it_is_so_of_what_a_page_loads_so_until_that_says_otherwise() {
        let all = Unhintable::default();
        all.note("/", ["/a.js", "/b.js"].into_iter());
        assert!(all.has("/", "/a.js") && all.has("/", "/b.js"));
        assert!(!all.has("/other", "/a.js") && !all.has("/", "/c.js"));
        all.note("/", ["/b.js"].into_iter());
        assert!(!all.has("/", "/a.js") && all.has("/", "/b.js"));
        all.note("/", std::iter::empty());
        assert!(!all.has("/", "/b.js"));
    }

    #[test]
    fn of_so_many_pages_it_is_remembered_and_of_so_many_things_of_each() {
        let all = Unhintable::default();
        for page in 0..=PAGES {
            for _ in 0..2 {
                all.note(&page.to_string(), ["/a.js"].into_iter());
            }
        }
        assert!(!all.has("0", "/a.js"), "one too many");
        assert!(all.has("1", "/a.js"));
        // One that changes its mind takes one place.
        for _ in 0..PAGES {
            all.note("1", std::iter::empty());
            all.note("1", ["/a.js"].into_iter());
        }
        assert!(all.has("2", "/a.js"));
        let things: Vec<_> = (0..=THINGS_PER_PAGE).map(|at| at.to_string()).collect();
        all.note("1", things.iter().map(String::as_str));
        assert!(all.has("1", &things[THINGS_PER_PAGE - 1]));
        assert!(!all.has("1", &things[THINGS_PER_PAGE]), "one too many");
    }
}
