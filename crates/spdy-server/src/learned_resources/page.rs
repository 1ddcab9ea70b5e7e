//! One page: its resources and votes, and which resources are removed for a new one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use spdy_clock::Instant;

use crate::learned_resources::limits::{LearningLimits, MAX_RESOURCES};
use crate::learned_resources::votes::{Support, Vote};

/// A page that was viewed.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) number: u64,
    pub(super) viewed: Instant,
    pub(super) views: u64,
    /// In the order in which they were added.
    pub(super) resources: Vec<LearnedResource>,
    /// One vote per network, the latest last.
    pub(super) votes: VecDeque<Vote>,
}

/// A resource that a network requested after the page.
#[derive(Debug)]
pub(super) struct LearnedResource {
    pub(super) url: String,
    /// Its bit in every vote.
    pub(super) bit: u64,
    /// The network that added it.
    pub(super) by: Option<IpAddr>,
}

impl Page {
    pub(super) fn bytes(&self) -> usize {
        self.resources
            .iter()
            .map(|resource| resource.url.len())
            .sum()
    }

    pub(super) fn vote(&mut self, network: Option<IpAddr>) -> Option<&mut Vote> {
        self.votes
            .iter_mut()
            .rev()
            .find(|vote| vote.network == network)
    }

    /// The result of the recent votes of networks that got neither a push of `resource` nor a hint for it.
    pub(super) fn support(
        &self,
        now: Instant,
        limits: &LearningLimits,
        resource: &LearnedResource,
    ) -> Support {
        let is_recent = |since| now.saturating_since(since) <= limits.max_age;
        let votes = self.votes.iter();
        let votes = votes.filter_map(|vote| vote.free(resource.bit));
        let mut support = Support::default();
        for (_, vote) in votes.filter(|(since, _)| is_recent(*since)) {
            support.free += 1;
            if vote.all & resource.bit == 0 {
                continue;
            }
            let has = |bits: u64| u64::from(bits & resource.bit != 0);
            support.named += 1;
            support.by_cors += has(vote.by_cors);
            for (count, bits) in support.kinds.iter_mut().zip(vote.kinds) {
                *count += has(bits);
            }
        }
        support
    }

    /// The resources to remove for a new one of `bytes`, as bits; `None` if there is no room for it.
    ///
    /// A resource that at least half of the free votes name stays, unless only one vote does. Of the others, resources that no vote
    /// names are removed first. Then the network that added the most of them loses one: the one with the fewest votes, the oldest
    /// of equals. So a few networks can neither use all places nor take those of others.
    pub(super) fn weakest(
        &self,
        now: Instant,
        limits: &LearningLimits,
        bytes: usize,
    ) -> Option<u64> {
        let max_resources = limits.resources_per_page.min(MAX_RESOURCES);
        let (mut count, mut all_bytes, mut dropped) = (self.resources.len(), self.bytes(), 0);
        let is_full =
            |count, all_bytes| count >= max_resources || all_bytes + bytes > limits.bytes_per_page;
        if !is_full(count, all_bytes) {
            return Some(dropped);
        }
        // A short URL also uses a place.
        let least_weight = limits.bytes_per_page / max_resources.max(1);
        let weight = |resource: &LearnedResource| resource.url.len().max(least_weight);
        let supports = self.resources.iter().map(|resource| {
            let support = self.support(now, limits, resource);
            (resource, support)
        });
        let mut weak: Vec<_> = supports
            .filter(|(_, support)| support.is_weak())
            .map(|(resource, support)| (resource, support.named))
            .collect();
        while is_full(count, all_bytes) {
            let mut weight_by_network = BTreeMap::new();
            for (resource, _) in &weak {
                *weight_by_network.entry(resource.by).or_insert(0) += weight(resource);
            }
            let first = |&(_, (resource, named)): &(usize, &(&LearnedResource, u64))| {
                (
                    *named > 0,
                    Reverse(weight_by_network.get(&resource.by)),
                    *named,
                )
            };
            let (index, _) = weak.iter().enumerate().min_by_key(first)?;
            let (resource, _) = weak.remove(index);
            count -= 1;
            all_bytes -= resource.url.len();
            dropped |= resource.bit;
        }
        Some(dropped)
    }

    /// Removes these resources.
    pub(super) fn remove(&mut self, bits: u64) {
        self.resources.retain(|resource| resource.bit & bits == 0);
        for vote in &mut self.votes {
            vote.clear(bits);
        }
    }

    pub(super) fn free_bit(&self) -> Option<u64> {
        let used = self
            .resources
            .iter()
            .fold(0, |all, resource| all | resource.bit);
        (0..MAX_RESOURCES)
            .map(|shift| 1 << shift)
            .find(|bit| used & bit == 0)
    }
}
