//! What goes along with a page: pushed over SPDY, told by 103 over HTTP/2 and HTTP/3, by `Link` over SPDY without pushes.
//!
//! ```text
//! text of a public page, and of public sheets ──▶ what it names ──────────────┐
//! Referer of what clients request, a vote of each network ──▶ learned.rs ─────┴▶ candidates ──▶ plan (push_plan.rs)
//!                                                                                 ├ in the cache, and fresh ──▶ push
//!                                                                                 └ else ──▶ hint
//! ```
//!
//! Sheets, scripts and fonts that the page names go along. What clients need beside goes along if the page or one of its sheets names exactly that URL; else the caller must find that it is in the
//! cache for everyone, and it has no query. So clients, which are not trusted, choose among things that are public, and add
//! nothing. Nothing is remembered of a page that is not public ([`public`](crate::public)): what it names could be one
//! client's alone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use spdy_clock::Instant;
use spdy_page::replica::Kind;
use spdy_rewrite::kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::verdict::Reason;
use spdy_server::learned::{Learned, LearningLimits, Loaded};
use spdy_server::push_plan::Wish;

/// Pages, and as many sheets, of which it is remembered what they name.
const TEXTS: usize = 1024;
/// Bytes of all URLs together, of pages and of sheets.
const BYTES: usize = 4 * 1024 * 1024;
/// Sheets that lead to one another, and those of one page in all.
const SHEETS_DEEP: usize = 3;
const SHEETS_PER_PAGE: usize = 64;

/// What pages bring along.
#[derive(Debug)]
pub struct Companions {
    texts: Mutex<Texts>,
    learned: Mutex<Learned>,
}

/// What may go along with a page.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// It, by its URL in full.
    pub wish: Wish,
    /// The page or one of its sheets names exactly this URL.
    pub is_named: bool,
}

#[derive(Debug, Default)]
struct Texts {
    pages: Named,
    sheets: Named,
}

/// Something that a page or a sheet names: where it is requested, and how.
#[derive(Clone, Debug)]
struct Thing {
    /// Path and query at the page's own origin; in full at its host's own name here.
    target: String,
    /// `None` if it is of no kind that goes along.
    kind: Option<Kind>,
    by_cors: bool,
    /// No hint says how the page loads it.
    unhintable: bool,
    /// Of a sheet: its URL in its own place, by which is known what it names.
    sheet: Option<String>,
}

/// What texts name, by the URL of each.
#[derive(Debug, Default)]
struct Named {
    texts: BTreeMap<String, Vec<Thing>>,
    order: VecDeque<String>,
    bytes: usize,
}

impl Named {
    fn note(&mut self, url: &str, things: Vec<Thing>) {
        self.forget(url);
        let bytes = weight(url, &things);
        if bytes > BYTES {
            return;
        }
        while self.bytes + bytes > BYTES || self.texts.len() >= TEXTS {
            let Some(oldest) = self.order.front().cloned() else {
                break;
            };
            self.forget(&oldest);
        }
        self.bytes += bytes;
        self.order.push_back(url.to_owned());
        self.texts.insert(url.to_owned(), things);
    }

    fn forget(&mut self, url: &str) {
        if let Some(before) = self.texts.remove(url) {
            self.bytes -= weight(url, &before);
            self.order.retain(|known| known != url);
        }
    }

    fn of(&self, url: &str) -> &[Thing] {
        self.texts.get(url).map_or(&[], Vec::as_slice)
    }
}

fn weight(url: &str, things: &[Thing]) -> usize {
    let bytes = |thing: &Thing| {
        let sheet = thing.sheet.as_ref().map_or(0, String::len);
        thing.target.len() + sheet + size_of::<Thing>()
    };
    let targets: usize = things.iter().map(bytes).sum();
    url.len() + targets
}

impl Texts {
    /// What is at `target`, if the page at `page` or one of its sheets names it.
    fn find(&self, page: &str, target: &str) -> Option<&Thing> {
        let mut layer = vec![self.pages.of(page)];
        let mut seen = BTreeSet::new();
        for _ in 0..=SHEETS_DEEP {
            let mut next = Vec::new();
            for thing in layer.into_iter().flatten() {
                if thing.target == target {
                    return Some(thing);
                }
                if let Some(sheet) = &thing.sheet
                    && seen.len() < SHEETS_PER_PAGE
                    && seen.insert(sheet)
                {
                    next.push(self.sheets.of(sheet));
                }
            }
            layer = next;
        }
        None
    }
}

impl Default for Companions {
    fn default() -> Self {
        Self {
            texts: Mutex::default(),
            learned: Mutex::new(Learned::new(LearningLimits::default())),
        }
    }
}

impl Companions {
    /// The public page at `url`, of `home`, names these. By another of the site's names it is another page: what it names in
    /// full is one's own origin, and the other's not.
    pub fn note_page(&self, url: &str, home: &url::Origin, references: &[Reference]) {
        self.texts().pages.note(url, things(references, home));
    }

    /// The public sheet at `url` in its own place names these, as pages of `home` see them.
    pub fn note_sheet(&self, url: &str, home: &url::Origin, references: &[Reference]) {
        self.texts().sheets.note(url, things(references, home));
    }

    /// The page at `url` is not public any more.
    pub fn forget_page(&self, url: &str) {
        self.texts().pages.forget(url);
    }

    /// Whether the page at `url` came by, and was public.
    #[must_use]
    pub fn knows(&self, url: &str) -> bool {
        self.texts().pages.texts.contains_key(url)
    }

    /// What may go along with the page at `page`, of `home`: first what it names and cannot be drawn without, then what else
    /// clients were seen to need.
    #[must_use]
    pub fn candidates(&self, now: Instant, home: &str, page: &str) -> Vec<Candidate> {
        let mut needed = self.learned().needed(now, page);
        let texts = self.texts();
        let mut own: Vec<_> = texts
            .pages
            .of(page)
            .iter()
            .filter(|it| goes_along(it))
            .collect();
        // A client wants first what it cannot draw without.
        own.sort_by_key(|thing| rank(thing.kind));
        let mut seen = BTreeSet::new();
        own.retain(|thing| seen.insert(thing.target.clone()));
        let mut candidates: Vec<_> = own.into_iter().map(|thing| thing.candidate(home)).collect();
        needed.retain(|wish| !seen.contains(&wish.url));
        if needed.is_empty() {
            return candidates;
        }
        for wish in needed {
            candidates.extend(match texts.find(page, &wish.url) {
                Some(thing) => thing.kind.is_some().then(|| thing.candidate(home)),
                None if wish.url.contains('?') => None,
                None => Some(Candidate {
                    wish: Wish {
                        url: [home, &wish.url].concat(),
                        ..wish
                    },
                    is_named: false,
                }),
            });
        }
        candidates
    }

    /// A client at `from` was answered with the public page at `page`, and told of these targets before.
    pub fn viewed(&self, now: Instant, from: Option<IpAddr>, page: &str, told: &[String]) {
        let told = told.iter().map(String::as_str);
        self.learned().viewed(now, from, page, told);
    }

    /// A client at `from` requested `loaded`, a target of `home`, and names `referer` as the page or sheet that it is for.
    pub fn requested(
        &self,
        now: Instant,
        from: Option<IpAddr>,
        home: &str,
        referer: &str,
        loaded: &Loaded<'_>,
    ) {
        let texts = self.texts();
        let mut learned = self.learned();
        let page = match texts.pages.texts.contains_key(referer) {
            true => Some(referer.to_owned()),
            // What a sheet names, browsers request with the sheet as their referrer.
            false => {
                let page = learned.viewed_by(now, from);
                let page = page
                    .zip(referer.strip_prefix(home))
                    .filter(|(page, sheet)| {
                        let thing = texts.find(page, sheet);
                        thing.is_some_and(|thing| thing.sheet.is_some())
                    });
                page.map(|(page, _)| page.to_owned())
            }
        };
        let Some(page) = page else {
            return;
        };
        // A query may ask for an action, or hold a secret: only what a public text names in full is learned with one.
        let may_learn = !loaded.url.contains('?') || texts.find(&page, loaded.url).is_some();
        if may_learn {
            learned.requested(now, from, &page, loaded);
        }
    }

    /// A client at `from` was pushed `target` with the page at `page`, and took all of it.
    pub fn excused(&self, from: Option<IpAddr>, page: &str, target: &str) {
        self.learned().excused(from, page, target);
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
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
    fn candidate(&self, home: &str) -> Candidate {
        Candidate {
            wish: Wish {
                // In full: alone, a path that begins with two slashes would name another host.
                url: match self.target.starts_with('/') {
                    true => [home, &self.target].concat(),
                    false => self.target.clone(),
                },
                kind: self.kind,
                by_cors: self.by_cors,
                unhintable: self.unhintable,
                may_push: true,
                ..Wish::default()
            },
            is_named: true,
        }
    }
}

/// What `references` name at `home`, each once.
fn things(references: &[Reference], home: &url::Origin) -> Vec<Thing> {
    let mut things: Vec<Thing> = Vec::new();
    let mut places = BTreeMap::new();
    for reference in references {
        let Some(target) = place_of(reference, home) else {
            continue;
        };
        let kind = match reference.kind {
            kind::Kind::Style => Some(Kind::Stylesheet),
            kind::Kind::Script => Some(Kind::Script),
            kind::Kind::Font => Some(Kind::Font),
            kind::Kind::Image => Some(Kind::Image),
            kind::Kind::Media | kind::Kind::Document | kind::Kind::Worker => None,
        };
        let sheet = || {
            let url = reference.url.split('#').next().unwrap_or_default();
            url.to_owned()
        };
        match places.get(&target) {
            Some(&at) => {
                let before: &mut Thing = &mut things[at];
                before.unhintable |= reference.unhintable;
            }
            None => {
                places.insert(target.clone(), things.len());
                things.push(Thing {
                    target,
                    kind,
                    by_cors: reference.by_cors,
                    unhintable: reference.unhintable,
                    sheet: (kind == Some(Kind::Stylesheet)).then(sheet),
                });
            }
        }
    }
    things
}

/// Whether a thing that a page names goes along before clients were seen to need it: not an image, of several of which a client chooses,
/// and for which nothing waits.
fn goes_along(thing: &Thing) -> bool {
    matches!(
        thing.kind,
        Some(Kind::Stylesheet | Kind::Script | Kind::Font)
    )
}

fn rank(kind: Option<Kind>) -> u8 {
    match kind {
        Some(Kind::Stylesheet) => 0,
        Some(Kind::Script | Kind::Font) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use spdy_rewrite::referrer::Tells;

    use super::*;

    const HOME: &str = "https://www.site.test";
    const PAGE: &str = "https://www.site.test/";

    fn own(target: &str, kind: kind::Kind, unhintable: bool) -> Reference {
        Reference {
            url: format!("{HOME}{target}"),
            kind,
            by_cors: true,
            unhintable,
            is_candidate: false,
            tells: Tells::Everyone,
            outcome: Err(Reason::Own),
        }
    }

    fn home() -> url::Origin {
        url::Url::parse(PAGE).unwrap().origin()
    }

    /// Four networks view the page and request these with that referrer.
    fn teach(companions: &Companions, referer: &str, targets: &[&str]) {
        for network in 0..4 {
            let from = Some(IpAddr::from([198, 51, network, 1]));
            companions.viewed(Instant::ZERO, from, PAGE, &[]);
            for target in targets {
                let loaded = Loaded::of(target, &Method::GET, &HeaderMap::new());
                let loaded = loaded.expect("it may be learned");
                companions.requested(Instant::ZERO, from, HOME, referer, &loaded);
            }
        }
    }

    /// URLs of what may go along, whether they are named, and whether they may be hinted at.
    fn candidates(companions: &Companions) -> Vec<(String, bool, bool)> {
        let candidates = companions.candidates(Instant::ZERO, HOME, PAGE).into_iter();
        let one = |it: Candidate| (it.wish.url, it.is_named, !it.wish.unhintable);
        candidates.map(one).collect()
    }

    fn is(target: &str, is_named: bool, may_hint: bool) -> (String, bool, bool) {
        (format!("{HOME}{target}"), is_named, may_hint)
    }

    #[test]
    fn what_a_page_pins_or_loads_with_cookies_is_not_hinted_at() {
        let companions = Companions::default();
        let references = [
            own("/plain.js", kind::Kind::Script, false),
            own("/pinned.js", kind::Kind::Script, true),
            own("/with-cookies.png", kind::Kind::Image, true),
        ];
        companions.note_page(PAGE, &home(), &references);
        let named = [is("/plain.js", true, true), is("/pinned.js", true, false)];
        assert_eq!(candidates(&companions), named);
        teach(
            &companions,
            PAGE,
            &["/plain.js", "/pinned.js", "/with-cookies.png"],
        );
        let all = [&named[..], &[is("/with-cookies.png", true, false)]].concat();
        assert_eq!(candidates(&companions), all);
        companions.note_page(PAGE, &home(), &[]);
        let unnamed = ["/plain.js", "/pinned.js", "/with-cookies.png"];
        assert_eq!(
            candidates(&companions),
            unnamed.map(|it| is(it, false, true))
        );
    }

    #[test]
    fn a_query_is_learned_only_if_the_page_or_its_sheet_names_it() {
        let companions = Companions::default();
        let style = own("/a.css?v=1", kind::Kind::Style, false);
        companions.note_page(PAGE, &home(), &[style]);
        let fonts = [own("/f.woff2?v=4.7", kind::Kind::Font, false)];
        let sheet = format!("{HOME}/a.css?v=1");
        companions.note_sheet(&sheet, &home(), &fonts);
        let planted = ["/logout?confirm=1", "/f.woff2?v=4.8", "/f.woff2?v=4.7"];
        teach(&companions, PAGE, &planted);
        let want = [
            is("/a.css?v=1", true, true),
            is("/f.woff2?v=4.7", true, true),
        ];
        assert_eq!(candidates(&companions), want);
    }

    #[test]
    fn what_a_sheet_of_the_page_names_is_learned_for_the_page() {
        let companions = Companions::default();
        let style = own("/a.css", kind::Kind::Style, false);
        companions.note_page(PAGE, &home(), &[style]);
        let import = [own("/b.css", kind::Kind::Style, false)];
        companions.note_sheet(&format!("{HOME}/a.css"), &home(), &import);
        let fonts = [own("/f.woff2?v=4.7", kind::Kind::Font, false)];
        companions.note_sheet(&format!("{HOME}/b.css"), &home(), &fonts);
        companions.note_sheet(&format!("{HOME}/other.css"), &home(), &fonts);
        let own = is("/a.css", true, true);
        teach(
            &companions,
            &format!("{HOME}/other.css"),
            &["/f.woff2?v=4.7"],
        );
        assert_eq!(
            candidates(&companions),
            std::slice::from_ref(&own),
            "no sheet of the page"
        );
        teach(&companions, &format!("{HOME}/b.css"), &["/f.woff2?v=4.7"]);
        let font = is("/f.woff2?v=4.7", true, true);
        assert_eq!(candidates(&companions), [own, font]);
    }

    #[test]
    fn nothing_is_learned_for_a_page_that_is_not_public() {
        let companions = Companions::default();
        teach(&companions, PAGE, &["/files/x.jpg"]);
        assert_eq!(candidates(&companions), []);
    }

    #[test]
    fn what_a_page_names_with_two_slashes_is_of_its_own_origin() {
        let companions = Companions::default();
        let odd = own("//other.test/x.js", kind::Kind::Script, false);
        companions.note_page(PAGE, &home(), &[odd]);
        assert_eq!(
            candidates(&companions),
            [is("//other.test/x.js", true, true)]
        );
    }

    #[test]
    fn pages_and_their_bytes_have_limits() {
        let home = home();
        let thing = |bytes: usize| {
            let target = format!("/{}", "a".repeat(bytes));
            [own(&target, kind::Kind::Script, false)]
        };
        let companions = Companions::default();
        for n in 0..=TEXTS {
            companions.note_page(&n.to_string(), &home, &thing(1));
        }
        assert!(!companions.knows("0"), "one past the limit");
        assert!(companions.knows("1"));
        companions.note_page("large", &home, &thing(BYTES - 1000));
        assert!(companions.knows("large") && !companions.knows("100"));
        companions.note_page("larger", &home, &thing(BYTES));
        assert!(!companions.knows("larger") && companions.knows("large"));
        companions.forget_page("large");
        let texts = companions.texts();
        assert_eq!(texts.pages.order.len(), texts.pages.texts.len());
        let weights = texts
            .pages
            .texts
            .iter()
            .map(|(url, things)| weight(url, things));
        assert_eq!(texts.pages.bytes, weights.sum::<usize>());
    }
}
