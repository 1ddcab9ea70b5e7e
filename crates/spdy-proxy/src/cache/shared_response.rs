//! What the leader of a flight shares with those who wait for it.

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderMap;
use spdy_cache::key::Key;
use spdy_cache::store::Object;
use spdy_cache::stored::Stored;

use crate::body::shared_body::SharedBody;
use crate::cache::coalescer::Leader;

/// An answer that everyone may have.
#[derive(Debug)]
pub(crate) struct SharedResponse {
    pub(crate) stored: Arc<Stored>,
    pub(crate) source: SharedBodySource,
}

/// Where the body of what is shared is.
#[derive(Debug)]
pub(crate) enum SharedBodySource {
    Incoming(SharedBody),
    Stored(Object),
}

/// What is fetched once for all who want it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct CoalesceKey {
    key: Key,
    /// Which variant; empty while nobody knows of any.
    variant: Vec<u8>,
}

impl SharedResponse {
    /// Whether it is stale for requests that come now, although it was fresh when it was requested: one fetch serves many again.
    pub(crate) fn is_stale(&self, now: SystemTime) -> bool {
        self.stored.staleness(now).is_some() && self.stored.was_fresh(self.stored.times().requested)
    }
}

impl CoalesceKey {
    /// For who wants what is under `key`, whatever its variants are.
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

    /// For who asked with `fields`, and waited for `landing` in vain; `None` if that was not of another variant.
    pub(crate) fn for_other_variant(
        &self,
        landing: &SharedResponse,
        fields: &HeaderMap,
    ) -> Option<Self> {
        let variant = match landing.stored.matches(fields) {
            true => return None,
            false => landing.stored.variant_of(fields),
        };
        let other = Self {
            key: self.key.clone(),
            variant,
        };
        // Whoever lands there answers with other variants than before.
        Some(other).filter(|other| self.variant.is_empty() && !other.variant.is_empty())
    }
}

/// Who leads the fetch of a thing.
pub(crate) type FetchLeader = Leader<CoalesceKey, SharedResponse>;
