//! A scheduler's data on a page: the urgency of each request, and the ends of the documents' heads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Urgency of a request, in Chromium's three levels.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Urgency {
    /// Images, media, scripts that do not block.
    Low,
    /// The first images, and scripts late in a document.
    Medium,
    /// Everything that is needed to draw.
    High,
}

/// The urgencies of one page, by the nodes of its graph.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UrgencyPlan {
    /// Urgency of each node.
    pub urgency: Vec<Urgency>,
    /// Nodes whose urgency becomes [`High`](Urgency::High) so long after the page needs them: images in the window.
    pub raised_after: BTreeMap<usize, Duration>,
    /// Number of its host.
    pub host: Vec<usize>,
    /// Number of its host and of what shares connections to it: another one in frames that share none with the page.
    pub partition: Vec<usize>,
    /// True if its host serves many requests on one connection, by priority.
    pub is_multiplexed: Vec<bool>,
    /// Nodes whose URLs other nodes have too, with the numbers of their URLs.
    pub same_url: BTreeMap<usize, usize>,
    /// Partitions of hosts that have responded before the load, so that their protocols are known.
    pub known_hosts: BTreeSet<usize>,
    /// True if its duration is a sample of the network: Chromium ignores hosts at addresses that are not routed, such as those of
    /// laboratories.
    pub is_measured: Vec<bool>,
    /// Length of each document's head in bytes, as transferred.
    pub body_at: BTreeMap<usize, u64>,
}
