//! All pages: records views and requests, selects what is pushed or hinted, and removes old or excess pages.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use spdy_clock::Instant;
use spdy_net::admission::network_of;

use crate::learned_resources::limits::LearningLimits;
use crate::learned_resources::page::{LearnedResource, Page};
use crate::learned_resources::resource_load::ResourceLoad;
use crate::learned_resources::votes::Vote;
use crate::push_plan::PushCandidate;

/// One of this many views is a control view, which gets no learned resources.
const CONTROL_VIEWS: u64 = 8;

/// The learned resources, over all sessions.
#[derive(Debug)]
pub struct LearnedResources {
    limits: LearningLimits,
    pub(super) pages: BTreeMap<String, Page>,
    pub(super) bytes: usize,
    /// For each network, when it last viewed a page, and the ID of that page.
    pub(super) latest: BTreeMap<Option<IpAddr>, (Instant, u64)>,
    next_number: u64,
}

impl LearnedResources {
    /// Without any pages.
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

    /// Records that a client at `from` received the public page at `url`, with pushes or hints of `prompted` before it could
    /// request these.
    pub fn record_view<'u>(
        &mut self,
        now: Instant,
        from: Option<IpAddr>,
        url: &str,
        prompted: impl IntoIterator<Item = &'u str>,
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
        let mut before = page.votes.iter().filter(|vote| !is_old(vote.since));
        let before = before.find(|vote| vote.network == network);
        let mut vote = Vote::new(network, now, before);
        for prompted_url in prompted {
            let resource = page
                .resources
                .iter()
                .find(|resource| resource.url == prompted_url);
            vote.prompted |= resource.map_or(0, |resource| resource.bit);
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

    /// Records that a client at `from` requested `loaded` after the page at `page`.
    pub fn record_request(
        &mut self,
        now: Instant,
        from: Option<IpAddr>,
        page: &str,
        loaded: &ResourceLoad<'_>,
    ) {
        let (url, limits, network) = (loaded.url, self.limits, from.map(network_of));
        let is_open = |vote: &mut Vote| now.saturating_since(vote.since) <= limits.window;
        let Some(viewed_page) = self.pages.get_mut(page) else {
            return;
        };
        if url.len() > limits.url_bytes || !viewed_page.vote(network).is_some_and(is_open) {
            return;
        }
        if let Some(resource) = viewed_page
            .resources
            .iter()
            .find(|resource| resource.url == url)
        {
            let bit = resource.bit;
            if let Some(vote) = viewed_page.vote(network) {
                vote.name(bit, loaded);
            }
            return;
        }
        let first = viewed_page
            .resources
            .iter()
            .filter(|resource| resource.by == network);
        let (first, bytes) = first.fold((1, url.len()), |(count, bytes), resource| {
            (count + 1, bytes + resource.url.len())
        });
        if first > limits.resources_per_network || bytes > limits.bytes_per_page / 2 {
            return;
        }
        let Some(weakest) = viewed_page.weakest(now, &limits, url.len()) else {
            return;
        };
        if !self.make_room(now, url.len(), Some(page)) {
            return;
        }
        let Some(viewed_page) = self.pages.get_mut(page) else {
            return;
        };
        self.bytes -= viewed_page.bytes();
        viewed_page.remove(weakest);
        if let Some(bit) = viewed_page.free_bit() {
            viewed_page.resources.push(LearnedResource {
                url: url.to_owned(),
                bit,
                by: network,
            });
            if let Some(vote) = viewed_page.vote(network) {
                vote.name(bit, loaded);
            }
        }
        self.bytes += viewed_page.bytes();
    }

    /// Records that a client at `from` got a push of `url` with the page at `page`, and received all of it.
    pub fn record_push(&mut self, from: Option<IpAddr>, page: &str, url: &str) {
        let Some(page) = self.pages.get_mut(page) else {
            return;
        };
        let resource = page.resources.iter().find(|resource| resource.url == url);
        let bit = resource.map_or(0, |resource| resource.bit);
        if let Some(vote) = page.vote(from.map(network_of)) {
            vote.prompted |= bit;
        }
    }

    /// The resources that clients need after the page at `url`, in the order in which they were first requested; none for a control
    /// view.
    #[must_use]
    pub fn resources_of(&self, now: Instant, url: &str) -> Vec<PushCandidate> {
        self.resources_with(now, url, self.limits.min_networks)
    }

    /// The same if `min_networks` free votes are enough.
    #[must_use]
    pub fn resources_with(&self, now: Instant, url: &str, min_networks: u32) -> Vec<PushCandidate> {
        let page = self.pages.get(url);
        let page = page.filter(|page| {
            let is_control = page.views % CONTROL_VIEWS == CONTROL_VIEWS - 1;
            !is_control && now.saturating_since(page.viewed) <= self.limits.max_age
        });
        let Some(page) = page else {
            return Vec::new();
        };
        let resources = page.resources.iter();
        let supported = resources.filter_map(|resource| {
            let support = page.support(now, &self.limits, resource);
            support
                .is_sufficient(min_networks, &self.limits)
                .then_some((resource, support))
        });
        supported
            .map(|(resource, support)| {
                let by_cors = support.by_cors(&self.limits);
                PushCandidate {
                    url: resource.url.clone(),
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

    /// Begins learning about the page at `url`; `false` if there is no room.
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

    /// Makes room for `bytes` more by removing other pages than `keep`; `false` if that is impossible.
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

    /// Removes a page that is too old, or the one with the fewest votes, of these the one viewed longest ago; never `keep`.
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
