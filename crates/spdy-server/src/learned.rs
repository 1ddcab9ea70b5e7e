//! Which resources clients request after a page, counted from `Referer`: an order and a selection for hints and pushes.
//!
//! ```text
//! GET /page          200 text/html   the client's network begins a vote for /page
//! GET /a.css         Referer: /page  its vote names /a.css, if that is within `window`
//! (pushed or hinted)                 its vote says nothing about /a.css: the network had no free choice
//!
//! needed, if   at least `min_networks` votes are free, and `share_percent` of those name it
//! kind, mode   those that `share_percent` of the free votes that name it state
//! full         a resource that at least half of the free votes name stays; of the others, see `Page::weakest`
//! ```
//!
//! A client is not trusted: all that it can do is to cast the one vote of its network ([`network_of`]), however many
//! connections and views it makes. The caller decides what may be learned at all and what of it is ever sent: only what the
//! page names, or what anyone may have. A page keeps the votes of the last `networks_per_page` networks, so that what
//! changes is learned again. Of every eight views one gets no learned hints or pushes; these give free votes, and what a
//! few clients made up falls out again.
//!
//! No clock and no randomness: time is an argument, and equal histories give equal results.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, Method};
use spdy_clock::Instant;
use spdy_net::admission::network_of;
use spdy_page::replica::Kind;

use crate::push_plan::PushCandidate;

/// Limits and thresholds of learning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LearningLimits {
    /// The maximum number of pages. One more drops the page that the fewest networks voted for. Default 256.
    pub pages: usize,
    /// Resources of one page, at most 64. For one more, a resource goes that fewer than half of the votes name. Default 64.
    pub resources_per_page: usize,
    /// Bytes of the resource URLs of one page. One network is the first to name at most half of them. Default 16 KiB.
    pub bytes_per_page: usize,
    /// Resources of one page that one network was the first to name. Default 32.
    pub resources_per_network: usize,
    /// Networks whose votes for one page count, the latest. Default 64.
    pub networks_per_page: usize,
    /// Networks of which it is known which page they viewed last. Default 4096.
    pub networks: usize,
    /// Bytes of all URLs together; for more, pages go. Default 1 MiB.
    pub bytes: usize,
    /// Bytes of a URL that is learned, of a page or a resource. Default 2 KiB.
    pub url_bytes: usize,
    /// A page or vote older than this does not count. Default 1 h.
    pub max_age: Duration,
    /// How long after its page a resource is requested. Default 10 s.
    pub window: Duration,
    /// Free votes that are needed for a decision. Default 3.
    pub min_networks: u32,
    /// Of 100 free votes, those that must name a resource. Default 80.
    pub share_percent: u32,
}

impl Default for LearningLimits {
    fn default() -> Self {
        Self {
            pages: 256,
            resources_per_page: MAX_RESOURCES,
            bytes_per_page: 16 * 1024,
            resources_per_network: 32,
            networks_per_page: 64,
            networks: 4096,
            bytes: 1024 * 1024,
            url_bytes: 2 * 1024,
            max_age: Duration::from_secs(3600),
            window: Duration::from_secs(10),
            min_networks: 3,
            share_percent: 80,
        }
    }
}

/// A vote has a bit for each resource of its page.
const MAX_RESOURCES: usize = 64;
/// The kinds that a request can state ([`kind_of_destination`]).
const KINDS: [Kind; 5] = [
    Kind::Stylesheet,
    Kind::Script,
    Kind::Font,
    Kind::Image,
    Kind::Media,
];
/// One of so many views gets nothing that was learned.
const CONTROL_VIEWS: u64 = 8;

/// A subresource that a client requested, and how, as far as the client says that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResourceLoad<'a> {
    /// Its URL.
    pub url: &'a str,
    /// As what it is loaded.
    pub kind: Option<Kind>,
    /// So that the page may read it (CORS), or not.
    pub by_cors: Option<bool>,
}

impl<'a> ResourceLoad<'a> {
    /// The load of `url` that a request with this method and these fields is; `None` if nothing may be learned from it.
    ///
    /// Only a GET counts. A browser with Fetch Metadata must say that the request is of the page's own origin and for
    /// something that a page shows or runs. A navigation, a frame, `fetch()` and a form are none of this: what they request
    /// may be an action, or for one client only.
    #[must_use]
    pub fn of(url: &'a str, method: &Method, headers: &HeaderMap) -> Option<Self> {
        let word = |name| headers.get(name).map(|word| word.to_str().unwrap_or(""));
        let mode = word("sec-fetch-mode");
        let is_own = word("sec-fetch-site").is_none_or(|site| site == "same-origin");
        let is_navigation = mode == Some("navigate");
        if method != Method::GET || !is_own || is_navigation {
            return None;
        }
        let kind = match word("sec-fetch-dest") {
            None => None,
            Some(destination) => Some(kind_of_destination(destination)?),
        };
        let by_cors = mode.map(|mode| mode == "cors");
        Some(Self { url, kind, by_cors })
    }
}

/// The kind of a request's destination (Fetch, *destination*), if it is one that may be learned.
fn kind_of_destination(destination: &str) -> Option<Kind> {
    match destination {
        "style" => Some(Kind::Stylesheet),
        "script" => Some(Kind::Script),
        "font" => Some(Kind::Font),
        "image" => Some(Kind::Image),
        "audio" | "video" | "track" => Some(Kind::Media),
        _ => None,
    }
}

/// What was learned, over all sessions.
#[derive(Debug)]
pub struct LearnedResources {
    limits: LearningLimits,
    pages: BTreeMap<String, Page>,
    bytes: usize,
    /// When networks viewed a page last, and which: its number.
    latest: BTreeMap<Option<IpAddr>, (Instant, u64)>,
    next_number: u64,
}

#[derive(Debug)]
struct Page {
    number: u64,
    viewed: Instant,
    views: u64,
    /// In the order in which they were first named.
    resources: Vec<LearnedResource>,
    /// One of each network, the latest last.
    votes: VecDeque<Vote>,
}

#[derive(Debug)]
struct LearnedResource {
    url: String,
    /// Its bit in every vote.
    bit: u64,
    /// The network that named it first.
    by: Option<IpAddr>,
}

/// The vote of one network about a page.
#[derive(Debug)]
struct Vote {
    network: Option<IpAddr>,
    since: Instant,
    /// Resources that it requested.
    named: u64,
    /// Resources that were pushed to it or hinted.
    prompted: u64,
    /// Resources that it requested as each of [`KINDS`].
    kinds: [u64; KINDS.len()],
    /// Resources that it requested by CORS.
    by_cors: u64,
}

impl Vote {
    /// Names a resource, and states how it was loaded as far as the request does.
    fn name(&mut self, bit: u64, loaded: &ResourceLoad<'_>) {
        self.named |= bit;
        if let Some(kind) = loaded.kind {
            for (bits, of) in self.kinds.iter_mut().zip(KINDS) {
                *bits = if of == kind {
                    *bits | bit
                } else {
                    *bits & !bit
                };
            }
        }
        match loaded.by_cors {
            Some(true) => self.by_cors |= bit,
            Some(false) => self.by_cors &= !bit,
            None => {}
        }
    }

    /// Forgets everything about these resources.
    fn clear(&mut self, needs: u64) {
        let kinds = self.kinds.iter_mut();
        for bits in kinds.chain([&mut self.named, &mut self.prompted, &mut self.by_cors]) {
            *bits &= !needs;
        }
    }
}

/// How many free votes there are for a resource, and what they state about it.
#[derive(Clone, Copy, Debug, Default)]
struct Support {
    free: u64,
    named: u64,
    kinds: [u64; KINDS.len()],
    by_cors: u64,
}

impl Support {
    fn is_sufficient(&self, limits: &LearningLimits) -> bool {
        self.free >= limits.min_networks.max(1).into()
            && agree(self.named, self.free, limits.share_percent)
    }

    /// Whether it may be dropped for another resource: one network alone names it, or fewer than half of the free votes do.
    fn is_weak(&self) -> bool {
        self.named <= 1 || self.named * 2 < self.free
    }

    /// The kind on which the votes that name it agree.
    fn kind(&self, limits: &LearningLimits) -> Option<Kind> {
        let mut kinds = self.kinds.iter().zip(KINDS);
        let agreed = kinds.find(|(votes, _)| agree(**votes, self.named, limits.share_percent))?;
        Some(agreed.1)
    }

    /// Whether the votes that name it agree that it is loaded by CORS, or that it is not; `None` if they do not agree.
    fn by_cors(&self, limits: &LearningLimits) -> Option<bool> {
        let share = limits.share_percent;
        match agree(self.by_cors, self.named, share) {
            true => Some(true),
            false => agree(self.named - self.by_cors, self.named, share).then_some(false),
        }
    }
}

fn agree(votes: u64, of: u64, share_percent: u32) -> bool {
    votes > 0 && votes * 100 >= of * u64::from(share_percent)
}

impl Page {
    fn bytes(&self) -> usize {
        self.resources.iter().map(|need| need.url.len()).sum()
    }

    fn vote(&mut self, network: Option<IpAddr>) -> Option<&mut Vote> {
        self.votes
            .iter_mut()
            .rev()
            .find(|vote| vote.network == network)
    }

    /// What the votes say that are recent, and whose network was neither sent `need` nor told of it.
    fn support(&self, now: Instant, limits: &LearningLimits, need: &LearnedResource) -> Support {
        let is_free = |vote: &&Vote| {
            vote.prompted & need.bit == 0 && now.saturating_since(vote.since) <= limits.max_age
        };
        let mut support = Support::default();
        for vote in self.votes.iter().filter(is_free) {
            support.free += 1;
            if vote.named & need.bit == 0 {
                continue;
            }
            let has = |bits: u64| u64::from(bits & need.bit != 0);
            support.named += 1;
            support.by_cors += has(vote.by_cors);
            for (count, bits) in support.kinds.iter_mut().zip(vote.kinds) {
                *count += has(bits);
            }
        }
        support
    }

    /// The resources to drop for a new one of `bytes`, as bits; `None` if there is no room for it.
    ///
    /// A resource that at least half of the free votes name stays, unless only one vote does. Of the others goes first what no
    /// vote names. Then a network that was the first to name more of them than another loses one before that other does: the
    /// one with the fewest votes, the oldest of equals. So a few networks can neither hold all places nor take those of others.
    fn weakest(&self, now: Instant, limits: &LearningLimits, bytes: usize) -> Option<u64> {
        let most = limits.resources_per_page.min(MAX_RESOURCES);
        let (mut count, mut all_bytes, mut dropped) = (self.resources.len(), self.bytes(), 0);
        let is_full = |count, all_bytes| count >= most || all_bytes + bytes > limits.bytes_per_page;
        if !is_full(count, all_bytes) {
            return Some(dropped);
        }
        // A short URL takes a place, too.
        let least_weight = limits.bytes_per_page / most.max(1);
        let weight = |need: &LearnedResource| need.url.len().max(least_weight);
        let supports = self.resources.iter().map(|need| {
            let support = self.support(now, limits, need);
            (need, support)
        });
        let mut weak: Vec<_> = supports
            .filter(|(_, support)| support.is_weak())
            .map(|(need, support)| (need, support.named))
            .collect();
        while is_full(count, all_bytes) {
            let mut held = BTreeMap::new();
            for (need, _) in &weak {
                *held.entry(need.by).or_insert(0) += weight(need);
            }
            let first = |&(_, (need, named)): &(usize, &(&LearnedResource, u64))| {
                (*named > 0, Reverse(held.get(&need.by)), *named)
            };
            let (at, _) = weak.iter().enumerate().min_by_key(first)?;
            let (need, _) = weak.remove(at);
            count -= 1;
            all_bytes -= need.url.len();
            dropped |= need.bit;
        }
        Some(dropped)
    }

    /// Drops these resources.
    fn remove(&mut self, needs: u64) {
        self.resources.retain(|need| need.bit & needs == 0);
        for vote in &mut self.votes {
            vote.clear(needs);
        }
    }

    fn free_bit(&self) -> Option<u64> {
        let taken = self.resources.iter().fold(0, |all, need| all | need.bit);
        (0..MAX_RESOURCES)
            .map(|at| 1 << at)
            .find(|bit| taken & bit == 0)
    }
}

impl LearnedResources {
    /// Nothing yet.
    #[must_use]
    pub fn new(limits: LearningLimits) -> Self {
        Self {
            limits,
            pages: BTreeMap::new(),
            bytes: 0,
            latest: BTreeMap::new(),
            next_number: 0,
        }
    }

    /// Records that a client at `from` received the public page at `url`, and was pushed or hinted `excused` before it could
    /// request them.
    pub fn record_view<'u>(
        &mut self,
        now: Instant,
        from: Option<IpAddr>,
        url: &str,
        excused: impl IntoIterator<Item = &'u str>,
    ) {
        let limits = self.limits;
        if url.len() > limits.url_bytes {
            return;
        }
        let is_old = |since| now.saturating_since(since) > limits.max_age;
        if self.pages.get(url).is_some_and(|page| is_old(page.viewed)) {
            self.forget(url);
        }
        if !self.pages.contains_key(url) && !self.add_page(now, url) {
            return;
        }
        let Some(page) = self.pages.get_mut(url) else {
            return;
        };
        page.viewed = now;
        let network = from.map(network_of);
        if !self.latest.contains_key(&network) && self.latest.len() >= limits.networks {
            let is_open = |at: Instant| now.saturating_since(at) <= limits.window;
            self.latest.retain(|_, (at, _)| is_open(*at));
        }
        if self.latest.contains_key(&network) || self.latest.len() < limits.networks {
            self.latest.insert(network, (now, page.number));
        }
        if page
            .vote(network)
            .is_some_and(|vote| now.saturating_since(vote.since) <= limits.window)
        {
            return; // a client of this network is still loading it
        }
        page.views += 1;
        let mut vote = Vote {
            network,
            since: now,
            named: 0,
            prompted: 0,
            kinds: [0; KINDS.len()],
            by_cors: 0,
        };
        for sent in excused {
            let need = page.resources.iter().find(|need| need.url == sent);
            vote.prompted |= need.map_or(0, |need| need.bit);
        }
        page.votes
            .retain(|vote| vote.network != network && !is_old(vote.since));
        while page.votes.len() >= limits.networks_per_page.max(1) {
            page.votes.pop_front();
        }
        page.votes.push_back(vote);
    }

    /// The page that the network of the client at `from` viewed last, within the window.
    #[must_use]
    pub fn last_view(&self, now: Instant, from: Option<IpAddr>) -> Option<&str> {
        let (at, number) = self.latest.get(&from.map(network_of))?;
        let mut pages = self.pages.iter();
        let page = pages.find(|(_, page)| page.number == *number)?;
        (now.saturating_since(*at) <= self.limits.window).then_some(page.0.as_str())
    }

    /// A client at `from` requested that after the page at `page`.
    pub fn record_request(
        &mut self,
        now: Instant,
        from: Option<IpAddr>,
        page: &str,
        loaded: &ResourceLoad<'_>,
    ) {
        let (url, limits, network) = (loaded.url, self.limits, from.map(network_of));
        let is_open = |vote: &mut Vote| now.saturating_since(vote.since) <= limits.window;
        let Some(known) = self.pages.get_mut(page) else {
            return;
        };
        if url.len() > limits.url_bytes || !known.vote(network).is_some_and(is_open) {
            return;
        }
        if let Some(need) = known.resources.iter().find(|need| need.url == url) {
            let bit = need.bit;
            if let Some(vote) = known.vote(network) {
                vote.name(bit, loaded);
            }
            return;
        }
        let first = known.resources.iter().filter(|need| need.by == network);
        let (first, bytes) = first.fold((1, url.len()), |(count, bytes), need| {
            (count + 1, bytes + need.url.len())
        });
        if first > limits.resources_per_network || bytes > limits.bytes_per_page / 2 {
            return;
        }
        let Some(weakest) = known.weakest(now, &limits, url.len()) else {
            return;
        };
        if !self.make_room(now, url.len(), Some(page)) {
            return;
        }
        let Some(known) = self.pages.get_mut(page) else {
            return;
        };
        self.bytes -= known.bytes();
        known.remove(weakest);
        if let Some(bit) = known.free_bit() {
            known.resources.push(LearnedResource {
                url: url.to_owned(),
                bit,
                by: network,
            });
            if let Some(vote) = known.vote(network) {
                vote.name(bit, loaded);
            }
        }
        self.bytes += known.bytes();
    }

    /// A client at `from` was pushed `url` with the page at `page`, and took all of it.
    pub fn record_push(&mut self, from: Option<IpAddr>, page: &str, url: &str) {
        let Some(page) = self.pages.get_mut(page) else {
            return;
        };
        let need = page.resources.iter().find(|need| need.url == url);
        let bit = need.map_or(0, |need| need.bit);
        if let Some(vote) = page.vote(from.map(network_of)) {
            vote.prompted |= bit;
        }
    }

    /// What clients need after the page at `url`, in the order in which they requested it first; nothing for a control view.
    #[must_use]
    pub fn resources_of(&self, now: Instant, url: &str) -> Vec<PushCandidate> {
        let page = self.pages.get(url);
        let page = page.filter(|page| {
            let is_control = page.views % CONTROL_VIEWS == CONTROL_VIEWS - 1;
            !is_control && now.saturating_since(page.viewed) <= self.limits.max_age
        });
        let Some(page) = page else {
            return Vec::new();
        };
        let needs = page.resources.iter();
        let needed = needs.filter_map(|need| {
            let support = page.support(now, &self.limits, need);
            support
                .is_sufficient(&self.limits)
                .then_some((need, support))
        });
        needed
            .map(|(need, support)| {
                let by_cors = support.by_cors(&self.limits);
                PushCandidate {
                    url: need.url.clone(),
                    kind: support.kind(&self.limits),
                    by_cors: by_cors.unwrap_or_default(),
                    // In the wrong mode it would be loaded twice.
                    is_unhintable: by_cors.is_none(),
                    may_push: true,
                    ..PushCandidate::default()
                }
            })
            .collect()
    }

    /// Begins to learn about the page at `url`; `false` if there is no room.
    fn add_page(&mut self, now: Instant, url: &str) -> bool {
        if !self.make_room(now, url.len(), None) {
            return false;
        }
        while self.pages.len() >= self.limits.pages.max(1) {
            self.forget_weakest(now, None);
        }
        self.bytes += url.len();
        self.next_number += 1;
        let page = Page {
            number: self.next_number,
            viewed: now,
            views: 0,
            resources: Vec::new(),
            votes: VecDeque::new(),
        };
        self.pages.insert(url.to_owned(), page);
        true
    }

    /// Makes room for `bytes` more, at the cost of other pages than `keep`; `false` if there is none.
    fn make_room(&mut self, now: Instant, bytes: usize, keep: Option<&str>) -> bool {
        if bytes > self.limits.bytes {
            return false;
        }
        while self.bytes + bytes > self.limits.bytes {
            if !self.forget_weakest(now, keep) {
                return false;
            }
        }
        true
    }

    /// Forgets a page that is too old, else the one with the fewest votes and of these the one viewed longest ago, but not `keep`.
    fn forget_weakest(&mut self, now: Instant, keep: Option<&str>) -> bool {
        let max_age = self.limits.max_age;
        let strength = |page: &Page| match now.saturating_since(page.viewed) > max_age {
            true => (0, page.viewed),
            false => (page.votes.len(), page.viewed),
        };
        let others = self.pages.iter().filter(|(url, _)| Some(&url[..]) != keep);
        let weakest = others.min_by_key(|(_, page)| strength(page));
        let Some(url) = weakest.map(|(url, _)| url.clone()) else {
            return false;
        };
        self.forget(&url);
        true
    }

    fn forget(&mut self, url: &str) {
        if let Some(page) = self.pages.remove(url) {
            self.bytes -= url.len() + page.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A client of the `n`th network.
    fn client(n: u16) -> Option<IpAddr> {
        let [high, low] = n.to_be_bytes();
        Some(IpAddr::from([198, high, low, 7]))
    }

    fn plain(url: &str) -> ResourceLoad<'_> {
        ResourceLoad {
            url,
            kind: None,
            by_cors: None,
        }
    }

    fn urls(learned: &LearnedResources, now: Instant, page: &str) -> Vec<String> {
        let needed = learned.resources_of(now, page);
        needed.into_iter().map(|wish| wish.url).collect()
    }

    /// A client of the `n`th network views `/` at second `n`, and requests `things`.
    fn view(learned: &mut LearnedResources, n: u16, things: &[&str]) {
        learned.record_view(at(n.into()), client(n), "/", []);
        for thing in things {
            learned.record_request(at(n.into()), client(n), "/", &plain(thing));
        }
    }

    #[test]
    fn a_resource_is_learned_after_enough_networks() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        for n in 0..5 {
            let want = usize::from(n >= 3);
            assert_eq!(urls(&learned, at(n.into()), "/").len(), want, "{n}");
            match n == 1 || n == 3 {
                true => view(&mut learned, n, &["/always"]),
                false => view(&mut learned, n, &["/always", "/at-times"]),
            }
        }
        assert_eq!(urls(&learned, at(5), "/"), ["/always"]);
        assert_eq!(urls(&learned, at(5), "/other"), [""; 0]);
    }

    #[test]
    fn one_network_has_one_vote_however_often_it_views_a_page() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        for view in 0..81 {
            // Addresses of one /24, then of one /32.
            for from in [
                IpAddr::from([203, 0, 113, view]),
                IpAddr::from([0x2001, 0xdb8, 1, view.into(), 0, 0, 0, 1]),
            ] {
                let now = at(u64::from(view) * 20);
                learned.record_view(now, Some(from), "/", []);
                learned.record_request(now, Some(from), "/", &plain("/planted"));
            }
            // All clients without an address count as one network.
            learned.record_view(at(u64::from(view) * 20), None, "/", []);
        }
        assert_eq!(learned.pages["/"].votes.len(), 3);
        assert_eq!(urls(&learned, at(81 * 20), "/"), [""; 0]);
        for n in 0..21 {
            let now = at(81 * 20);
            learned.record_view(now, client(n), "/", []);
            learned.record_request(now, client(n), "/", &plain("/needed"));
        }
        assert_eq!(urls(&learned, at(81 * 20), "/"), ["/needed"]);
    }

    #[test]
    fn the_last_views_are_bounded_by_network() {
        let limits = LearningLimits {
            networks: 2,
            ..LearningLimits::default()
        };
        let mut learned = LearnedResources::new(limits);
        for (n, page) in [(0, "/a"), (1, "/a"), (0, "/b"), (2, "/a")] {
            learned.record_view(at(0), client(n), page, []);
        }
        let last = |learned: &LearnedResources, now, n| {
            learned.last_view(at(now), client(n)).map(str::to_owned)
        };
        assert_eq!(last(&learned, 10, 0).as_deref(), Some("/b"));
        assert_eq!(last(&learned, 11, 0), None, "too long ago");
        assert_eq!(last(&learned, 0, 2), None, "one past the limit");
        learned.record_view(at(11), client(2), "/a", []);
        assert_eq!(last(&learned, 11, 2).as_deref(), Some("/a"));
        assert_eq!(learned.latest.len(), 1);
    }

    #[test]
    fn a_taken_push_is_no_vote_and_a_refused_one_is_a_no() {
        for (taken, want) in [(true, 1), (false, 0)] {
            let mut learned = LearnedResources::new(LearningLimits::default());
            for n in 0..10 {
                view(&mut learned, n, if n < 4 { &["/a"] } else { &[] });
                if n >= 4 && taken {
                    learned.record_push(client(n), "/", "/a");
                }
            }
            assert_eq!(urls(&learned, at(10), "/").len(), want, "taken: {taken}");
        }
    }

    /// A browser requests every hinted resource. Without this rule, a resource that three networks made up would stay for ever.
    #[test]
    fn junk_of_few_networks_expires_despite_hints() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        let mut hinted = [0, 0];
        for n in 0..200 {
            let sent = urls(&learned, at(n.into()), "/");
            learned.record_view(
                at(n.into()),
                client(n),
                "/",
                sent.iter().map(String::as_str),
            );
            for (nth, url) in ["/needed", "/made-up"].into_iter().enumerate() {
                let is_sent = sent.iter().any(|sent| sent == url);
                hinted[nth] += usize::from(is_sent);
                if is_sent || nth == 0 || n < 3 {
                    learned.record_request(at(n.into()), client(n), "/", &plain(url));
                }
            }
        }
        assert!(hinted[0] > 150, "{hinted:?}");
        assert_eq!(hinted[1], 4, "until the first control view");
    }

    #[test]
    fn only_the_latest_networks_count_and_a_page_without_views_is_forgotten() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        for n in 0..1000 {
            view(
                &mut learned,
                n,
                &[if n < 900 { "/before" } else { "/since" }],
            );
        }
        assert_eq!(learned.pages["/"].votes.len(), 64);
        assert_eq!(urls(&learned, at(1000), "/"), ["/since"]);
        assert_eq!(urls(&learned, at(999 + 3601), "/"), [""; 0]);
        learned.record_view(at(6000), client(0), "/", []);
        assert_eq!(learned.pages["/"].votes.len(), 1);
    }

    #[test]
    fn only_loads_of_subresources_of_the_own_origin_are_learned() {
        let fields = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs.iter().map(|&(name, word)| {
                let name = http::HeaderName::from_static(name);
                (name, http::HeaderValue::from_static(word))
            });
            HeaderMap::from_iter(pairs)
        };
        let of = |method: &Method, pairs: &[_]| {
            let loaded = ResourceLoad::of("/a", method, &fields(pairs))?;
            Some((loaded.kind, loaded.by_cors))
        };
        let get = &Method::GET;
        let (dest, mode, site) = ("sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site");
        assert_eq!(of(get, &[]), Some((None, None)), "a browser of SPDY's time");
        let own = |kind: &'static str| [(dest, kind), (mode, "no-cors"), (site, "same-origin")];
        assert_eq!(of(get, &own("font")), Some((Some(Kind::Font), Some(false))));
        let module = [(dest, "script"), (mode, "cors")];
        assert_eq!(of(get, &module), Some((Some(Kind::Script), Some(true))));
        for kind in [
            "empty", "document", "iframe", "frame", "object", "embed", "worker", "report",
        ] {
            assert_eq!(of(get, &own(kind)), None, "{kind}");
        }
        for from in ["cross-site", "same-site", "none", ""] {
            assert_eq!(of(get, &[(dest, "image"), (site, from)]), None, "{from}");
        }
        assert_eq!(of(get, &[(mode, "navigate")]), None);
        for method in [Method::POST, Method::HEAD, Method::OPTIONS, Method::PUT] {
            assert_eq!(of(&method, &[]), None, "{method}");
        }
    }

    /// What is learned of `/a` after one network each loaded it like this: its kind, mode, and whether it is hinted at.
    fn loaded_as(loads: &[(Option<Kind>, Option<bool>)]) -> (Option<Kind>, bool, bool) {
        let mut learned = LearnedResources::new(LearningLimits::default());
        for (n, &(kind, by_cors)) in (0..).zip(loads) {
            let url = "/a";
            learned.record_view(at(0), client(n), "/", []);
            learned.record_request(at(0), client(n), "/", &ResourceLoad { url, kind, by_cors });
        }
        let wish = learned.resources_of(at(0), "/").remove(0);
        (wish.kind, wish.by_cors, !wish.is_unhintable)
    }

    #[test]
    fn how_a_resource_is_loaded_is_learned_from_votes_that_agree() {
        let module = (Some(Kind::Script), Some(true));
        let image = (Some(Kind::Image), Some(false));
        let silent = (None, None);
        for (loads, want) in [
            (&[module; 3][..], (Some(Kind::Script), true, true)),
            (&[image; 3], (Some(Kind::Image), false, true)),
            (&[silent; 3], (None, false, true)),
            (&[module, module, image], (None, false, false)),
            (&[silent, silent, module], (None, false, false)),
        ] {
            assert_eq!(loaded_as(loads), want, "{loads:?}");
        }
    }

    #[test]
    fn one_network_does_not_decide_how_a_resource_is_loaded() {
        for (honest, wrong) in [
            (
                (Some(Kind::Script), Some(true)),
                (Some(Kind::Image), Some(false)),
            ),
            (
                (Some(Kind::Script), Some(false)),
                (Some(Kind::Image), Some(true)),
            ),
        ] {
            for (count, place) in [(2, 0), (2, 2), (4, 0), (4, 2), (4, 4), (10, 0), (10, 10)] {
                let mut loads = vec![honest; count];
                loads.insert(place, wrong);
                let (kind, by_cors, is_hinted) = loaded_as(&loads);
                // Of five votes, four are enough to agree; before, nothing is told rather than what is wrong.
                let agreed = (kind, is_hinted.then_some(by_cors));
                let want = if count < 4 { (None, None) } else { honest };
                assert_eq!(agreed, want, "{count} networks, the other at {place}");
            }
            let silent = loaded_as(&[
                (None, None),
                (None, None),
                (None, None),
                (None, None),
                wrong,
            ]);
            assert_eq!(silent, (None, false, true));
        }
    }

    /// A browser loads a preload in the mode that the hint states.
    #[test]
    fn a_hinted_client_does_not_vote_on_the_mode() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        let load = |learned: &mut LearnedResources, n, told: &[&str], by_cors| {
            let url = "/a";
            let loaded = ResourceLoad {
                url,
                kind: Some(Kind::Script),
                by_cors: Some(by_cors),
            };
            learned.record_view(at(0), client(n), "/", told.iter().copied());
            learned.record_request(at(0), client(n), "/", &loaded);
        };
        for n in 0..4 {
            load(&mut learned, n, &[], true);
        }
        for n in 4..30 {
            load(&mut learned, n, &["/a"], false);
        }
        assert!(learned.resources_of(at(0), "/").remove(0).by_cors);
    }

    #[test]
    fn pages_resources_and_bytes_have_limits_and_the_fewest_votes_go_first() {
        let limits = LearningLimits {
            pages: 2,
            resources_per_page: 2,
            bytes: 12,
            ..LearningLimits::default()
        };
        let mut learned = LearnedResources::new(limits);
        let pages = |learned: &LearnedResources| learned.pages.keys().cloned().collect::<Vec<_>>();
        learned.record_view(at(0), client(0), "/a", []);
        learned.record_view(at(0), client(1), "/a", []);
        learned.record_view(at(1), client(0), "/b", []);
        learned.record_view(at(2), client(0), "/c", []);
        assert_eq!(pages(&learned), ["/a", "/c"], "one network viewed /b");
        for url in ["/1", "/2", "/3"] {
            learned.record_request(at(3), client(0), "/c", &plain(url));
        }
        let needs: Vec<_> = learned.pages["/c"]
            .resources
            .iter()
            .map(|need| &need.url[..])
            .collect();
        assert_eq!(needs, ["/2", "/3"], "one past the limit");
        assert_eq!(learned.bytes, 8);
        learned.record_request(at(3), client(0), "/a", &plain("/four"));
        assert_eq!((learned.bytes, pages(&learned)), (7, vec!["/a".to_owned()]));
        learned.record_request(at(3), client(0), "/a", &plain("/seventeen bytes"));
        learned.record_view(at(4), client(0), "/a url of more than all bytes", []);
        assert_eq!((learned.bytes, learned.pages.len()), (7, 1));
    }

    #[test]
    fn a_url_is_learned_up_to_its_limit() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        let most = LearningLimits::default().url_bytes;
        let [good, long] = [most, most + 1].map(|bytes| format!("/{}", "a".repeat(bytes - 1)));
        view(&mut learned, 0, &[&long, &good]);
        learned.record_view(at(0), client(0), &long, []);
        assert_eq!(learned.pages.len(), 1);
        assert_eq!(learned.pages["/"].resources.len(), 1);
        assert_eq!(learned.bytes, 1 + most);
    }

    #[test]
    fn one_network_is_the_first_to_name_so_many_resources_of_a_page() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        let most = LearningLimits::default().resources_per_network;
        let names: Vec<_> = (0..=most).map(|n| format!("/planted/{n}")).collect();
        let planted: Vec<_> = names.iter().map(String::as_str).collect();
        view(&mut learned, 0, &planted);
        assert_eq!(
            learned.pages["/"].resources.len(),
            most,
            "one past the limit"
        );
        view(&mut learned, 1, &["/needed"]);
        assert_eq!(learned.pages["/"].resources.len(), most + 1);
        // Resources that only one network names make room for those of other networks.
        for n in 2..5 {
            let names: Vec<_> = (0..most).map(|at| format!("/{n}/{at}")).collect();
            let more = names.iter().map(String::as_str).chain(["/needed"]);
            view(&mut learned, n, &more.collect::<Vec<_>>());
        }
        assert_eq!(learned.pages["/"].resources.len(), MAX_RESOURCES);
        assert_eq!(urls(&learned, at(5), "/"), ["/needed"]);
    }

    /// These networks view `/` again, and name as many of `junk` as they can.
    fn attack(learned: &mut LearnedResources, now: Instant, networks: &[u16], junk: &[String]) {
        for &n in networks {
            learned.record_view(now, client(n), "/", []);
            for url in junk {
                learned.record_request(now, client(n), "/", &plain(url));
            }
        }
    }

    #[test]
    fn junk_of_two_or_three_networks_does_not_lock_a_page() {
        let junk: Vec<_> = (0..MAX_RESOURCES).map(|n| format!("/x{n}")).collect();
        let honest: Vec<_> = (0..12).map(|n| format!("/needed/{n}")).collect();
        for attackers in [&[1000, 1001][..], &[1000, 1001, 1002]] {
            for is_long in [false, true] {
                let long = "x".repeat(1000);
                let junk: Vec<_> = match is_long {
                    true => junk.iter().map(|url| format!("{url}{long}")).collect(),
                    false => junk.clone(),
                };
                let mut learned = LearnedResources::new(LearningLimits::default());
                // Before and after each client that loads the page, they name it all again.
                for n in 0..40 {
                    let now = at(u64::from(n) * 20);
                    attack(&mut learned, now, attackers, &junk);
                    learned.record_view(now, client(n), "/", []);
                    for url in &honest {
                        learned.record_request(now, client(n), "/", &plain(url));
                    }
                    attack(&mut learned, now, attackers, &junk);
                }
                let mut needed = urls(&learned, at(40 * 20), "/");
                needed.sort();
                let mut want = honest.clone();
                want.sort();
                assert_eq!(
                    needed,
                    want,
                    "{} networks, long: {is_long}",
                    attackers.len()
                );
            }
        }
    }

    #[test]
    fn one_network_evicts_nothing_that_half_of_the_others_name() {
        let things: Vec<_> = (0..MAX_RESOURCES).map(|n| format!("/needed/{n}")).collect();
        let mut learned = LearnedResources::new(LearningLimits::default());
        let attack_once = |learned: &mut LearnedResources, now| {
            let junk: Vec<_> = (0..200).map(|n| format!("/x{n}")).collect();
            attack(learned, now, &[1000], &junk);
        };
        let needs = |learned: &LearnedResources| {
            let needs = learned.pages["/"].resources.iter();
            needs.map(|need| need.url.clone()).collect::<Vec<_>>()
        };
        // Two networks name all at first: one is the first to name half of them.
        for n in 0..6 {
            learned.record_view(at(0), client(n), "/", []);
            let (first, second) = things.split_at(MAX_RESOURCES / 2);
            let order = if n == 0 {
                [first, second]
            } else {
                [second, first]
            };
            for url in order.concat() {
                learned.record_request(at(0), client(n), "/", &plain(&url));
            }
        }
        assert_eq!(needs(&learned).len(), MAX_RESOURCES);
        for round in 0..20 {
            attack_once(&mut learned, at(round * 20));
            assert_eq!(needs(&learned), things, "round {round}");
        }
        // Nor later, when nearly all clients are sent what is learned, and so do not name it.
        for n in 10..60 {
            let told = things.iter().map(String::as_str);
            learned.record_view(at(500), client(n), "/", told);
        }
        attack_once(&mut learned, at(500));
        assert_eq!(needs(&learned), things);
    }

    #[test]
    fn the_urls_of_one_page_have_a_limit_in_bytes() {
        let limits = LearningLimits {
            bytes_per_page: 40,
            ..LearningLimits::default()
        };
        let mut learned = LearnedResources::new(limits);
        let bytes = |learned: &LearnedResources| learned.pages["/"].bytes();
        let all = ["/1234", "/2345", "/3456", "/4567", "/5"];
        view(&mut learned, 0, &all);
        assert_eq!(bytes(&learned), 20, "one network has half of them");
        view(&mut learned, 1, &["/a234", "/b345", "/c456", "/d567"]);
        assert_eq!(bytes(&learned), 40);
        view(&mut learned, 2, &["/e"]);
        assert_eq!(bytes(&learned), 37, "one past the limit");
        assert_eq!(learned.bytes, 1 + 37);
        view(&mut learned, 3, &[&format!("/{}", "f".repeat(20))]);
        assert_eq!(bytes(&learned), 37, "more than one network may have");
        // By default a page has a small part of all bytes.
        let limits = LearningLimits::default();
        let mut learned = LearnedResources::new(limits);
        for n in 0..20 {
            let names: Vec<_> = (0..MAX_RESOURCES)
                .map(|at| format!("/{n}/{at}/{}", "x".repeat(limits.url_bytes - 20)))
                .collect();
            view(
                &mut learned,
                n,
                &names.iter().map(String::as_str).collect::<Vec<_>>(),
            );
            assert!(bytes(&learned) <= 16 * 1024);
        }
        assert!(bytes(&learned) > 12 * 1024);
    }

    #[test]
    fn a_provider_of_ipv6_has_one_vote_and_6to4_adds_none() {
        let mut learned = LearnedResources::new(LearningLimits::default());
        for n in 0..200 {
            for from in [
                IpAddr::from([0x2001, 0xdb8, n, 0, 0, 0, 0, 1]),
                IpAddr::from([0x2002, 0xc633, n, 0, 0, 0, 0, 1]),
            ] {
                learned.record_view(at(0), Some(from), "/", []);
                learned.record_request(at(0), Some(from), "/", &plain("/planted"));
            }
        }
        // 198.51.0.0/24, as which the addresses of 6to4 count.
        let neighbour = Some(IpAddr::from([198, 51, 0, 250]));
        learned.record_view(at(0), neighbour, "/", []);
        learned.record_request(at(0), neighbour, "/", &plain("/planted"));
        assert_eq!(learned.pages["/"].votes.len(), 2);
        assert_eq!(urls(&learned, at(0), "/"), [""; 0]);
    }
}
