//! The limits and thresholds of learning.

use std::time::Duration;

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
pub(super) const MAX_RESOURCES: usize = 64;
