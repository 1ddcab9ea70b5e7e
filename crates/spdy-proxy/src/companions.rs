//! What goes along with a page: pushed over SPDY, told by 103 over HTTP/2 and HTTP/3, by `Link` elsewhere.
//!
//! ```text
//! page's text, if everyone may have it ──▶ named, in its order ──┐
//! Referer of what clients ask for      ──▶ learned (spdy-server) ┴▶ wishes ──▶ plan (spdy-server/push_plan.rs)
//!                                                                               ├ in the cache, and fresh ──▶ push
//!                                                                               └ else ──▶ hint
//! ```
//!
//! Of a page that is one client's alone nothing is remembered: what it names could be his, too.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use spdy_clock::Instant;
use spdy_page::replica::Kind;
use spdy_rewrite::kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::verdict::Reason;
use spdy_server::learned::{Learned, LearningLimits};
use spdy_server::push_plan::Wish;

/// Pages of which it is remembered what they name.
const PAGES: usize = 1024;
/// Bytes of all URLs together.
const BYTES: usize = 4 * 1024 * 1024;

/// What pages bring along.
#[derive(Debug)]
pub struct Companions {
    named: Mutex<Named>,
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

    /// What the page at `url` will be asked for: what clients were seen to want, else what it names.
    #[must_use]
    pub fn wishes(&self, now: Instant, url: &str) -> Vec<Wish> {
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
    match &reference.outcome {
        Ok(place) => Some(place.clone()),
        Err(Reason::Own) => {
            let url = url::Url::parse(&reference.url).ok()?;
            (url.origin() == *home).then_some(())?;
            Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
        }
        Err(_) => None,
    }
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
