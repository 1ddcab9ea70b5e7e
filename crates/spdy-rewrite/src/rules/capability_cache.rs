//! Caches capabilities of origins: each is a hash, and pages reference few origins many times.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::limits::MAX_CACHED_CAPABILITIES;

/// The capabilities of one site, by the host of an origin over TLS on the default port: only such hosts are discovered.
#[derive(Debug, Default)]
pub(crate) struct CapabilityCache(Mutex<BTreeMap<String, String>>);

/// An empty cache: capabilities are computed again.
impl Clone for CapabilityCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl CapabilityCache {
    /// Passes the capability for `host` to `take`, after creating it by `make` if it is not cached.
    pub(crate) fn with(&self, host: &str, make: impl FnOnce() -> String, take: impl FnOnce(&str)) {
        let mut made = self.0.lock();
        if let Some(word) = made.get(host) {
            return take(word);
        }
        if made.len() == MAX_CACHED_CAPABILITIES {
            made.clear(); // they are computed again when they are needed
        }
        take(made.entry(host.to_owned()).or_insert_with(make));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capability_is_made_once_and_cache_is_limited() {
        let made = CapabilityCache::default();
        let mut count = 0;
        for round in 0..2 {
            for nth in 0..MAX_CACHED_CAPABILITIES {
                let host = nth.to_string();
                let make = || {
                    count += 1;
                    format!("k{host}")
                };
                made.with(&host, make, |word| {
                    assert_eq!(word, format!("k{host}"), "{round}");
                });
            }
        }
        assert_eq!(count, MAX_CACHED_CAPABILITIES);
        made.with("one more", || "k".to_owned(), |word| assert_eq!(word, "k"));
        assert_eq!(made.0.lock().len(), 1);
    }
}
