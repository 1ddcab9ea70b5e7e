//! The part of the configuration for resources that are sent with pages, or prefetched.

use serde::Deserialize;

/// Largest number of concurrent prefetches.
const MAX_PREFETCHES: usize = 1 << 16;

/// Prefetches, pushes and early hints of the resources of pages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnConfig {
    /// Whether to push resources of a public page over SPDY: those that it names, and those that clients request after
    /// it. Default `true`.
    pub push: bool,
    /// Whether to send 103 responses with hints for the same resources over HTTP/2 and HTTP/3, to clients that announce
    /// a navigation by Fetch Metadata. Default `true`.
    pub early_hints: bool,
    /// Whether to prefetch the resources of a page as soon as the page is read. Default `true`.
    pub prefetch: bool,
    /// Prefetches for one client request, including those that they lead to, in the order of the page. Resources that a
    /// browser chooses from, such as the candidates of a `srcset`, are not prefetched. Cached resources do not count.
    /// Range: at least 1. Default 128.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub prefetch_per_page: usize,
    /// Prefetches at a time, for all clients. Range: 1 to 65536. Default 256.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65_536)))]
    pub prefetches: usize,
}

impl Default for LearnConfig {
    fn default() -> Self {
        Self {
            push: true,
            early_hints: true,
            prefetch: true,
            prefetch_per_page: 128,
            prefetches: 256,
        }
    }
}

impl LearnConfig {
    /// A key with an invalid value: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, usize)> {
        if self.prefetch_per_page == 0 {
            return Some(("learn.prefetch_per_page", "at least 1", 0));
        }
        let is_good = (1..=MAX_PREFETCHES).contains(&self.prefetches);
        (!is_good).then_some(("learn.prefetches", "1 to 65536", self.prefetches))
    }
}
