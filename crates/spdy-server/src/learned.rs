//! What clients ask for after a page, learned from `Referer`: a plan that nobody had to write.
//!
//! ```text
//! GET /page          200 text/html   a view of /page begins
//! GET /a.css         Referer: /page  asked, once a view, within `window`
//! (pushed whole)                     excused: nobody could ask for it
//!
//! needed, if   views - excused >= min_views   and   asked >= share of them
//! ```
//!
//! A push that is cancelled is not excused, so that what clients do not want falls out of the plan again. And
//! of every eight views one gets no pushes: who is sent a thing cannot show that he would not have asked for it,
//! so that without it three lying clients could have a thing sent to everybody for ever. A client is heard once
//! a session for each page (`visit.rs`).
//! Counts are halved as they grow: a site that changes is learned anew. No clock, no chance: time is an
//! argument, and equal histories give equal plans.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use spdy_clock::Instant;
use spdy_page::replica::Kind;

use crate::push_plan::Wish;

/// Limits and thresholds of what is learned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LearningLimits {
    /// Pages; for one more, the one that was not viewed for longest goes. Default 256.
    pub pages: usize,
    /// Things after one page; the first ones count. Default 64.
    pub needs_per_page: usize,
    /// Bytes of all URLs together; for one more, pages go. Default 1 MiB.
    pub bytes: usize,
    /// A page that was not viewed for so long is forgotten. Default 1 h.
    pub max_age: Duration,
    /// How long after its page a thing is asked for. Default 10 s.
    pub window: Duration,
    /// Views before anything is believed. Default 3.
    pub min_views: u32,
    /// Of a hundred views, those after which it was asked for. Default 80.
    pub share_percent: u32,
}

impl Default for LearningLimits {
    fn default() -> Self {
        Self {
            pages: 256,
            needs_per_page: 64,
            bytes: 1024 * 1024,
            max_age: Duration::from_secs(3600),
            window: Duration::from_secs(10),
            min_views: 3,
            share_percent: 80,
        }
    }
}

/// A thing that a client asked for, and how, as far as it says that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Loaded<'a> {
    /// Its URL.
    pub url: &'a str,
    /// As what it is loaded.
    pub kind: Option<Kind>,
    /// So that the page may read it (CORS), or not.
    pub by_cors: Option<bool>,
}

impl<'a> Loaded<'a> {
    /// What is at `url`, by the fields of the request for it: browsers of today say how they load it (Fetch Metadata).
    #[must_use]
    pub fn of(url: &'a str, headers: &HeaderMap) -> Self {
        let word = |name| headers.get(name).and_then(|word| word.to_str().ok());
        Self {
            url,
            kind: word("sec-fetch-dest").map(kind_of_destination),
            by_cors: word("sec-fetch-mode").map(|mode| mode == "cors"),
        }
    }
}

/// What a request's destination says (Fetch, *destination*).
fn kind_of_destination(destination: &str) -> Kind {
    match destination {
        "style" => Kind::Stylesheet,
        "script" => Kind::Script,
        "font" => Kind::Font,
        "image" => Kind::Image,
        "audio" | "video" | "track" => Kind::Media,
        "document" | "frame" | "iframe" | "embed" | "object" => Kind::Document,
        "empty" => Kind::Fetch,
        _ => Kind::Other,
    }
}

/// One of so many views is left to ask by itself.
const ASKS_ITSELF: u32 = 8;
/// Views after which all counts of a page are halved.
const HALVED_AT: u32 = 256;

/// What was learned, over all sessions.
#[derive(Debug)]
pub struct Learned {
    limits: LearningLimits,
    pages: BTreeMap<String, Page>,
    bytes: usize,
}

#[derive(Debug)]
struct Page {
    viewed: Instant,
    views: u32,
    /// In the order in which they were first asked for.
    needs: Vec<Need>,
}

#[derive(Debug)]
struct Need {
    url: String,
    /// How it was asked for by the last who said that.
    kind: Option<Kind>,
    by_cors: Option<bool>,
    asked: u32,
    excused: u32,
}

impl Page {
    /// Halves the counts and drops what comes to nothing; gives the bytes of that.
    fn halve(&mut self) -> usize {
        self.views /= 2;
        let mut dropped = 0;
        self.needs.retain_mut(|need| {
            (need.asked, need.excused) = (need.asked / 2, need.excused / 2);
            let stays = need.asked > 0 || need.excused > 0;
            dropped += if stays { 0 } else { need.url.len() };
            stays
        });
        dropped
    }
}

impl Learned {
    /// Nothing yet.
    #[must_use]
    pub fn new(limits: LearningLimits) -> Self {
        Self {
            limits,
            pages: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The limits it was made with.
    #[must_use]
    pub fn limits(&self) -> &LearningLimits {
        &self.limits
    }

    /// The page at `url` was answered.
    pub fn viewed(&mut self, now: Instant, url: &str) {
        if let Some(page) = self.pages.get_mut(url)
            && now.saturating_since(page.viewed) <= self.limits.max_age
        {
            page.viewed = now;
            page.views += 1;
            if page.views >= HALVED_AT {
                self.bytes -= page.halve();
            }
            return;
        }
        self.forget(url);
        if !self.make_room(now, url.len(), None) {
            return;
        }
        while self.pages.len() >= self.limits.pages.max(1) {
            self.forget_oldest(None);
        }
        self.bytes += url.len();
        let page = Page {
            viewed: now,
            views: 1,
            needs: Vec::new(),
        };
        self.pages.insert(url.to_owned(), page);
    }

    /// After the page at `page`, that was asked for; to be said once a view.
    pub fn asked(&mut self, now: Instant, page: &str, loaded: &Loaded<'_>) {
        let &Loaded { url, kind, by_cors } = loaded;
        let known = self.pages.get_mut(page).map(|page| &mut page.needs);
        let Some(needs) = known else {
            return;
        };
        if let Some(need) = needs.iter_mut().find(|need| need.url == url) {
            need.asked += 1;
            (need.kind, need.by_cors) = (kind.or(need.kind), by_cors.or(need.by_cors));
            return;
        }
        if needs.len() >= self.limits.needs_per_page || !self.make_room(now, url.len(), Some(page))
        {
            return;
        }
        if let Some(page) = self.pages.get_mut(page) {
            self.bytes += url.len();
            page.needs.push(Need {
                url: url.to_owned(),
                kind,
                by_cors,
                asked: 1,
                excused: 0,
            });
        }
    }

    /// With the page at `page`, `url` was pushed and taken to its end.
    pub fn excused(&mut self, page: &str, url: &str) {
        let needs = self.pages.get_mut(page).map(|page| &mut page.needs);
        let need = needs.and_then(|needs| needs.iter_mut().find(|need| need.url == url));
        if let Some(need) = need {
            need.excused += 1;
        }
    }

    /// What the page at `url` needs, as far as there is evidence.
    #[must_use]
    pub fn wishes(&self, now: Instant, url: &str) -> Vec<Wish> {
        let Some(page) = self.pages.get(url) else {
            return Vec::new();
        };
        let asks_itself = page.views % ASKS_ITSELF == ASKS_ITSELF - 1;
        if asks_itself || now.saturating_since(page.viewed) > self.limits.max_age {
            return Vec::new();
        }
        let is_needed = |need: &&Need| {
            let views = u64::from(page.views.saturating_sub(need.excused));
            views >= u64::from(self.limits.min_views)
                && u64::from(need.asked) * 100 >= views * u64::from(self.limits.share_percent)
        };
        let needs = page.needs.iter().filter(is_needed);
        needs
            .map(|need| Wish {
                url: need.url.clone(),
                kind: need.kind,
                by_cors: need.by_cors.unwrap_or_default(),
                may_push: true,
                ..Wish::default()
            })
            .collect()
    }

    /// Makes room for `bytes` more, at the cost of old pages but `keep`; `false` if there is none.
    fn make_room(&mut self, now: Instant, bytes: usize, keep: Option<&str>) -> bool {
        if bytes > self.limits.bytes {
            return false;
        }
        let max_age = self.limits.max_age;
        let gone = |page: &Page| now.saturating_since(page.viewed) > max_age;
        if self.bytes + bytes > self.limits.bytes {
            let old = self
                .pages
                .iter()
                .filter(|(url, page)| gone(page) && Some(&url[..]) != keep);
            let old: Vec<String> = old.map(|(url, _)| url.clone()).collect();
            old.iter().for_each(|url| self.forget(url));
        }
        while self.bytes + bytes > self.limits.bytes {
            if !self.forget_oldest(keep) {
                return false;
            }
        }
        true
    }

    /// Forgets the page that was not viewed for longest, but `keep`.
    fn forget_oldest(&mut self, keep: Option<&str>) -> bool {
        let others = self.pages.iter().filter(|(url, _)| Some(&url[..]) != keep);
        let oldest = others.min_by_key(|(_, page)| page.viewed);
        let Some(url) = oldest.map(|(url, _)| url.clone()) else {
            return false;
        };
        self.forget(&url);
        true
    }

    fn forget(&mut self, url: &str) {
        if let Some(page) = self.pages.remove(url) {
            let needs = page.needs.iter().map(|need| need.url.len()).sum::<usize>();
            self.bytes -= url.len() + needs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Of a client that does not say how it loads what.
    fn plainly(url: &str) -> Loaded<'_> {
        Loaded::of(url, &HeaderMap::new())
    }

    fn urls(learned: &Learned, now: Instant, page: &str) -> Vec<String> {
        let wishes = learned.wishes(now, page);
        wishes.into_iter().map(|wish| wish.url).collect()
    }

    #[test]
    fn what_most_views_ask_for_is_needed_after_enough_of_them() {
        let mut learned = Learned::new(LearningLimits::default());
        for view in 0..5 {
            assert_eq!(
                urls(&learned, at(view), "/").len(),
                usize::from(view >= 3),
                "{view}"
            );
            learned.viewed(at(view), "/");
            learned.asked(at(view), "/", &plainly("/always"));
            if view != 1 && view != 3 {
                learned.asked(at(view), "/", &plainly("/at-times"));
            }
        }
        assert_eq!(urls(&learned, at(5), "/"), ["/always"]);
        assert_eq!(urls(&learned, at(5), "/other"), [""; 0]);
    }

    #[test]
    fn a_push_that_was_taken_keeps_its_place_and_one_that_was_not_loses_it() {
        for (taken, want) in [(true, 1), (false, 0)] {
            let mut learned = Learned::new(LearningLimits::default());
            for view in 0..10 {
                learned.viewed(at(view), "/");
                if view < 4 {
                    learned.asked(at(view), "/", &plainly("/a"));
                } else if taken {
                    learned.excused("/", "/a");
                }
            }
            assert_eq!(urls(&learned, at(10), "/").len(), want, "taken: {taken}");
        }
    }

    /// Who was sent it was excused, so that what three views had said stayed true for ever.
    #[test]
    fn what_few_clients_made_up_falls_out_though_all_others_take_it() {
        let mut learned = Learned::new(LearningLimits::default());
        let mut pushed = [0, 0];
        for view in 0..100 {
            let sent = urls(&learned, at(view), "/");
            learned.viewed(at(view), "/");
            for (nth, url) in ["/needed", "/made-up"].into_iter().enumerate() {
                if sent.iter().any(|sent| sent == url) {
                    pushed[nth] += 1;
                    learned.excused("/", url);
                } else if nth == 0 || view < 3 {
                    learned.asked(at(view), "/", &plainly(url));
                }
            }
        }
        assert_eq!(
            pushed,
            [85, 4],
            "but every eighth; and until the first of those"
        );
    }

    #[test]
    fn a_page_that_nobody_views_is_forgotten_and_counts_stay_small() {
        let mut learned = Learned::new(LearningLimits::default());
        for view in 0..2000 {
            learned.viewed(at(view), "/");
            if view < 1000 {
                learned.asked(at(view), "/", &plainly("/before"));
            } else {
                learned.asked(at(view), "/", &plainly("/since"));
            }
        }
        assert_eq!(
            urls(&learned, at(2000), "/"),
            ["/since"],
            "the past counts less"
        );
        assert_eq!(urls(&learned, at(1999 + 3601), "/"), [""; 0]);
        learned.viewed(at(6000), "/");
        assert_eq!(learned.pages["/"].views, 1);
    }

    #[test]
    fn how_a_thing_is_loaded_is_learned_of_those_who_say_it() {
        let said = |dest, mode| {
            let fields = [("sec-fetch-dest", dest), ("sec-fetch-mode", mode)];
            let fields = fields.map(|(name, word): (_, &'static str)| {
                let name = http::HeaderName::from_static(name);
                (name, http::HeaderValue::from_static(word))
            });
            HeaderMap::from_iter(fields)
        };
        for (second, third, want) in [
            (None, None, (Some(Kind::Script), true)),
            (
                Some(said("script", "no-cors")),
                None,
                (Some(Kind::Script), false),
            ),
            (None, Some(said("empty", "cors")), (Some(Kind::Fetch), true)),
            (
                None,
                Some(said("worker", "same-origin")),
                (Some(Kind::Other), false),
            ),
        ] {
            let mut learned = Learned::new(LearningLimits::default());
            let views = [Some(said("script", "cors")), second, third];
            for fields in views.into_iter().map(Option::unwrap_or_default) {
                learned.viewed(at(0), "/");
                learned.asked(at(0), "/", &Loaded::of("/a", &fields));
            }
            let wish = learned.wishes(at(0), "/").remove(0);
            assert_eq!((wish.kind, wish.by_cors), want);
        }
    }

    #[test]
    fn pages_things_and_bytes_have_limits() {
        let limits = LearningLimits {
            pages: 2,
            needs_per_page: 2,
            bytes: 12,
            ..LearningLimits::default()
        };
        let mut learned = Learned::new(limits);
        learned.viewed(at(0), "/a");
        learned.viewed(at(1), "/b");
        learned.viewed(at(2), "/a");
        learned.viewed(at(3), "/c");
        let pages: Vec<_> = learned.pages.keys().collect();
        assert_eq!(
            pages,
            ["/a", "/c"],
            "the one that was not viewed for longest went"
        );
        for url in ["/1", "/2", "/3"] {
            learned.asked(at(3), "/c", &plainly(url));
        }
        assert_eq!(learned.pages["/c"].needs.len(), 2, "one past the limit");
        assert_eq!(learned.bytes, 8);
        learned.asked(at(3), "/a", &plainly("/four"));
        assert_eq!(learned.bytes, 7, "/c went for it: {learned:?}");
        learned.asked(at(3), "/a", &plainly("/seventeen bytes"));
        learned.viewed(at(4), "/a url of more than all bytes");
        assert_eq!((learned.bytes, learned.pages.len()), (7, 1));
    }
}
