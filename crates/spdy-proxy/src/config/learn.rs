//! The part of the configuration for resources that are sent with pages, or prefetched.

use serde::Deserialize;

/// The maximum of concurrent prefetches.
const MAX_PREFETCHES: usize = 1 << 16;

/// Resources that are sent with pages, or prefetched.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnConfig {
    /// Whether resources of a public page are pushed over SPDY: those that it names, and those that clients request after it.
    /// Default `true`.
    pub push: bool,
    /// Whether the same resources are hinted by 103 over HTTP/2 and HTTP/3, to clients that announce a navigation by Fetch
    /// Metadata. Default `true`.
    pub early_hints: bool,
    /// Whether the resources of a page are prefetched as soon as the page is read. Default `true`.
    pub prefetch: bool,
    /// Prefetches for one client request, with all that they lead to. The first named ones come first, without those that a
    /// browser chooses from, such as the candidates of a `srcset`. Cached resources do not count. Range: at least 1. Default
    /// 128.
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
