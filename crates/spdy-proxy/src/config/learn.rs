//! The part of the configuration for resources that are sent with pages, or prefetched.

use serde::Deserialize;

/// The maximum of concurrent prefetches.
const MAX_PREFETCHES: usize = 1 << 16;

/// Resources that are sent with pages, or prefetched.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnConfig {
    /// What a public page needs is pushed over SPDY: what it names, and what clients request after it. Default yes.
    pub push: bool,
    /// Send hints for the same resources by 103 over HTTP/2 and HTTP/3, to clients that announce a navigation by Fetch Metadata. Default yes.
    pub early_hints: bool,
    /// What a page names is fetched as soon as it is read. Default yes.
    pub prefetch: bool,
    /// Resources that are prefetched for one client request, with all that they lead to. The first named ones come first, without those
    /// that a browser chooses from, as among the candidates of a `srcset`. Resources that are in the cache already do not count. Default
    /// 128.
    pub prefetch_per_page: usize,
    /// Prefetches at a time, for all clients. Default 256.
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
