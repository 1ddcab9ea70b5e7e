//! The limits and thresholds of learning.

use std::time::Duration;

/// Limits and thresholds of learning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LearningLimits {
    /// The maximum number of pages. One more drops the page that the fewest networks voted for. Default 256.
    pub pages: usize,
    /// Limit of resources of one page, at most 64. Above it, a resource that fewer than half of the votes name is removed. Default
    /// 64.
    pub resources_per_page: usize,
    /// Limit of the resource URLs of one page, bytes. A single network may add at most half of that. Default 16 KiB.
    pub bytes_per_page: usize,
    /// Limit of resources of one page that a single network added. Default 32.
    pub resources_per_network: usize,
    /// Number of latest networks whose votes for one page count. Default 64.
    pub networks_per_page: usize,
    /// Limit of networks whose last viewed page is remembered. Default 4096.
    pub networks: usize,
    /// Limit of all URLs together, bytes; above it, pages are removed. Default 1 MiB.
    pub bytes: usize,
    /// Limit of a learned URL, of a page or a resource, bytes. Default 2 KiB.
    pub url_bytes: usize,
    /// Age above which a page or vote does not count. Default 1 h.
    pub max_age: Duration,
    /// Maximum time between a page and the requests for its resources. Default 10 s.
    pub window: Duration,
    /// Number of free votes that are needed for a decision. Default 3.
    pub min_networks: u32,
    /// Percentage of free votes that must name a resource. Default 80.
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
