//! What goes along with a page: pushed over SPDY, told by 103 over HTTP/2 and HTTP/3, by `Link` elsewhere.
//!
//! ```text
//! page's text, if everyone may have it ──▶ named, in its order ──┐
//! Referer of what clients ask for      ──▶ learned (spdy-server) ┴▶ wishes ──▶ plan (spdy-server/push_plan.rs)
//!                                                                               ├ in the cache, and fresh ──▶ push
//!                                                                               └ else ──▶ hint
//! ```
//!
//! Of a page that is one client's alone nothing is remembered but digests of what no hint can be at (`unhintable.rs`): what it names could
//! be his, too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spdy_clock::Instant;
use spdy_page::replica::Kind;
use spdy_rewrite::kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::verdict::Reason;
use spdy_server::learned::{Learned, LearningLimits};
use spdy_server::push_plan::Wish;

use crate::unhintable::Unhintable;

/// Pages of which it is remembered what they name.
const PAGES: usize = 1024;
/// Bytes of all URLs together.
const BYTES: usize = 4 * 1024 * 1024;

/// What pages bring along.
#[derive(Debug)]
pub struct Companions {
    named: Mutex<Named>,
    unhintable: Unhintable,
    learned: Mutex<Learned>,
}

/// Something that a page names: where it is asked for, and how.
#[derive(Clone, Debug)]
struct Thing {
    url: String,
    kind: Kind,
    by_cors: bool,
}

#[derive(Debug, Default)]
struct Named {
    pages: BTreeMap<String, Vec<Thing>>,
    order: VecDeque<String>,
    bytes: usize,
}

impl Named {
    fn forget_oldest(&mut self) -> bool {
        let Some(oldest) = self.order.pop_front() else {
            return false;
        };
        if let Some(things) = self.pages.remove(&oldest) {
            self.bytes -= weight(&oldest, &things);
        }
        true
    }
}

fn weight(page: &str, things: &[Thing]) -> usize {
    let bytes = |thing: &Thing| thing.url.len() + size_of::<Thing>();
    let urls: usize = things.iter().map(bytes).sum();
    page.len() + urls
}

impl Default for Companions {
    fn default() -> Self {
        Self {
            named: Mutex::default(),
            unhintable: Unhintable::default(),
            learned: Mutex::new(Learned::new(LearningLimits::default())),
        }
    }
}

impl Companions {
    /// The page that clients have at `url`, of `home`, and that everyone may have, names these. By another of the site's names it is another
    /// page: what it names in full is one's own origin, and the other's not.
    pub fn remember(&self, url: &str, home: &url::Origin, references: &[Reference]) {
        let things = references.iter().filter_map(|it| thing(it, home));
        let mut things: Vec<_> = things.collect();
        // A client wants first what it cannot draw without.
        things.sort_by_key(|thing| rank(thing.kind));
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = named.pages.remove(url) {
            named.bytes -= weight(url, &before);
            named.order.retain(|page| page != url);
        }
        let bytes = weight(url, &things);
        if things.is_empty() || bytes > BYTES {
            return;
        }
        while (named.bytes + bytes > BYTES || named.pages.len() >= PAGES) && named.forget_oldest() {
        }
        named.bytes += bytes;
        named.order.push_back(url.to_owned());
        named.pages.insert(url.to_owned(), things);
    }

    /// All that the page names that a client has at `url`, of `home`: it may be his alone, and yet he is told of nothing that it loads
    /// otherwise than a hint can say.
    pub fn note_modes(&self, url: &str, home: &url::Origin, references: &[Reference]) {
        let unhintable = references.iter().filter(|reference| reference.unhintable);
        let places: Vec<_> = unhintable.filter_map(|it| place_of(it, home)).collect();
        self.unhintable.note(url, places.iter().map(String::as_str));
    }

    /// What the page at `url` will be asked for: what clients were seen to want, else what it names.
    #[must_use]
    pub fn wishes(&self, now: Instant, url: &str) -> Vec<Wish> {
        let mut wishes = self.wished(now, url);
        for wish in &mut wishes {
            wish.unhintable = self.unhintable.has(url, &wish.url);
        }
        wishes
    }

    fn wished(&self, now: Instant, url: &str) -> Vec<Wish> {
        let mut learned = self.learned().wishes(now, url);
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        let things = named.pages.get(url).map_or(&[][..], Vec::as_slice);
        if learned.is_empty() {
            return things.iter().map(Thing::wish).collect();
        }
        // The page says how it loads what clients do not say it of.
        for wish in learned.iter_mut().filter(|wish| wish.kind.is_none()) {
            if let Some(thing) = things.iter().find(|thing| thing.url == wish.url) {
                *wish = thing.wish();
            }
        }
        learned
    }

    /// What was learned of what clients ask for.
    pub fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What of a reference is answered here: its path at `home`, or where it was moved. What is the site's by another name is asked for by
/// that.
pub(crate) fn place_of(reference: &Reference, home: &url::Origin) -> Option<String> {
    let own = match &reference.outcome {
        Ok(place) if place.starts_with('/') || reference.is_named() => return Some(place.clone()),
        Ok(place) => place,
        Err(Reason::Own) => &reference.url,
        Err(_) => return None,
    };
    let url = url::Url::parse(own).ok()?;
    (url.origin() == *home).then_some(())?;
    Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

impl Thing {
    fn wish(&self) -> Wish {
        Wish {
            url: self.url.clone(),
            kind: Some(self.kind),
            by_cors: self.by_cors,
            may_push: true,
            ..Wish::default()
        }
    }
}

fn thing(reference: &Reference, home: &url::Origin) -> Option<Thing> {
    let kind = match reference.kind {
        kind::Kind::Style => Kind::Stylesheet,
        kind::Kind::Script => Kind::Script,
        kind::Kind::Font => Kind::Font,
        // Which of several a client wants is its own choice, and nothing waits for it.
        kind::Kind::Image | kind::Kind::Media | kind::Kind::Document | kind::Kind::Worker => {
            return None;
        }
    };
    Some(Thing {
        url: place_of(reference, home)?,
        kind,
        by_cors: reference.by_cors,
    })
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Stylesheet => 0,
        Kind::Script | Kind::Font => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use spdy_rewrite::referrer::Tells;
    use spdy_server::learned::Loaded;

    use super::*;

    const PAGE: &str = "https://www.site.test/";

    fn own(path: &str, kind: kind::Kind, unhintable: bool) -> Reference {
        Reference {
            url: format!("https://www.site.test{path}"),
            kind,
            by_cors: true,
            unhintable,
            is_candidate: false,
            tells: Tells::Everyone,
            outcome: Err(Reason::Own),
        }
    }

    /// The paths of what the page is to be asked for, and whether it may be hinted at.
    fn wishes(companions: &Companions) -> Vec<(String, bool)> {
        let wishes = companions.wishes(Instant::ZERO, PAGE).into_iter();
        wishes.map(|wish| (wish.url, !wish.unhintable)).collect()
    }

    #[test]
    fn what_a_page_pins_or_loads_with_cookies_is_not_hinted_at_whoever_says_that_it_is_wanted() {
        let home = url::Url::parse(PAGE).unwrap().origin();
        let references = [
            own("/plain.js", kind::Kind::Script, false),
            own("/pinned.js", kind::Kind::Script, true),
            own("/with-cookies.png", kind::Kind::Image, true),
        ];
        let companions = Companions::default();
        companions.remember(PAGE, &home, &references);
        companions.note_modes(PAGE, &home, &references);
        let is = |path: &str, may_hint| (path.to_owned(), may_hint);
        let named = [is("/plain.js", true), is("/pinned.js", false)];
        assert_eq!(wishes(&companions), named);

        // What clients ask for after a page that is theirs alone.
        let companions = Companions::default();
        let paths = ["/plain.js", "/pinned.js", "/with-cookies.png"];
        for _ in 0..LearningLimits::default().min_views {
            let mut learned = companions.learned();
            learned.viewed(Instant::ZERO, PAGE);
            for url in paths {
                let (kind, by_cors) = (Some(Kind::Script), Some(true));
                let loaded = Loaded { url, kind, by_cors };
                learned.asked(Instant::ZERO, PAGE, &loaded);
            }
        }
        companions.note_modes(PAGE, &home, &references);
        let may_hint = [true, false, false];
        let learned: Vec<_> = std::iter::zip(paths, may_hint)
            .map(|(path, may)| is(path, may))
            .collect();
        assert_eq!(wishes(&companions), learned);
        companions.note_modes(PAGE, &home, &[]);
        assert!(wishes(&companions).iter().all(|(_, may_hint)| *may_hint));
    }
}
