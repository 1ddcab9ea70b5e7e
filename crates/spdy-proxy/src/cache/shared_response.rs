//! The response that the leader of a fetch shares with its followers.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;
use spdy_cache::key::Key;
use spdy_cache::memory_store::Object;
use spdy_cache::stored::Stored;

use crate::body::shared_body::SharedBody;
use crate::cache::coalescer::Leader;

/// A response that every client may have.
#[derive(Debug)]
pub(crate) struct SharedResponse {
    pub(crate) stored: Arc<Stored>,
    pub(crate) source: SharedBodySource,
}

/// Where the body of a shared response is.
#[derive(Debug)]
pub(crate) enum SharedBodySource {
    Incoming(SharedBody),
    Stored(Object),
}

/// The key under which requests share one fetch.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct CoalesceKey {
    key: Key,
    /// Which variant; empty while no variant is known.
    variant: Vec<u8>,
}

impl SharedResponse {
    /// Whether it is stale for requests that come now, although it was fresh when it was requested. Then one new fetch serves many requests
    /// again.
    pub(crate) fn is_stale(&self, now: SystemTime) -> bool {
        self.stored.staleness(now).is_some() && self.stored.was_fresh(self.stored.times().requested)
    }
}

impl CoalesceKey {
    /// For requests for `key`, with any variants.
    pub(crate) fn of(key: &Key) -> Self {
        let variant = Vec::new();
        Self {
            key: key.clone(),
            variant,
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// For a request with `fields` that cannot use `shared`; `None` if `shared` is not of another variant.
    pub(crate) fn for_other_variant(
        &self,
        shared: &SharedResponse,
        fields: &HeaderMap,
    ) -> Option<Self> {
        let variant = match shared.stored.matches(fields) {
            true => return None,
            false => shared.stored.variant_of(fields),
        };
        let other = Self {
            key: self.key.clone(),
            variant,
        };
        // A mismatch on a key with a variant means that the origin's variants have changed.
        Some(other).filter(|other| self.variant.is_empty() && !other.variant.is_empty())
    }
}

/// The leader of a fetch.
pub(crate) type FetchLeader = Leader<CoalesceKey, SharedResponse>;
