//! What a scheduler knows of a page: how urgent each of its requests is, and where the heads of its documents end.

use std::collections::BTreeMap;

/// How long a request may wait, in Chromium's three steps.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Urgency {
    /// Images, media, scripts that do not block.
    Low,
    /// The first images, and scripts late in a document.
    Medium,
    /// All that is needed to draw.
    High,
}

/// Of one page, by the nodes of its graph.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UrgencyPlan {
    /// How urgent each is.
    pub urgency: Vec<Urgency>,
    /// Whether its host answers many requests on one connection, by their priorities.
    pub is_multiplexed: Vec<bool>,
    /// Whether its duration informs about the network: Chromium learns nothing from hosts at addresses that no network
    /// routes, which are those of laboratories.
    pub is_measured: Vec<bool>,
    /// Bytes of each document, as transferred, that its head takes up.
    pub body_at: BTreeMap<usize, u64>,
}
