//! The tier in memory, shared by all requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use spdy_cache::body::{Body, BodyBuilder};
use spdy_cache::key::Key;
use spdy_cache::memory_store::{Object, PurgeMode, Store, StoreConfig, StoreCounters};
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::stored::Stored;

/// A store behind a lock: hits share it.
#[derive(Debug)]
pub struct MemoryStore(RwLock<Store>);

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        Self(RwLock::new(Store::new(config)))
    }

    /// The objects that are stored under `key`.
    #[must_use]
    pub fn lookup(&self, key: &Key) -> Option<Arc<[Object]>> {
        self.0.read().get(key)
    }

    /// Stores a response; `None` if it is larger than the limit, or bodies in use leave no room.
    pub fn store(&self, key: &Key, stored: Stored, body: Body) -> Option<Object> {
        let mut store = self.0.write();
        let result = store.insert(key, stored, body);
        result
            .inspect_err(
                |reason| tracing::debug!(%reason, ?key, "cannot store the response in memory"),
            )
            .ok()
    }

    /// Sets the maximum bytes of each site, by name. Sites that use more are reduced at once.
    pub fn set_site_bytes(&self, quotas: BTreeMap<String, u64>) {
        let mut store = self.0.write();
        store.set_site_bytes(quotas);
    }

    /// Removes one object, if it is still stored.
    pub fn remove(&self, object: &Object) {
        let mut store = self.0.write();
        store.remove(object);
    }

    /// Purges objects with a key that begins with `prefix`. Gives their number.
    pub fn purge(&self, prefix: &[u8], how: PurgeMode) -> usize {
        let mut store = self.0.write();
        store.purge_prefix(prefix, how)
    }

    /// Purges objects with a tag. Gives their number.
    pub fn purge_tag(&self, tag: &PurgeTag, how: PurgeMode) -> usize {
        let mut store = self.0.write();
        store.purge_tag(tag, how)
    }

    /// Counters, bytes in use with evicted bodies that are still read, and the number of objects.
    #[must_use]
    pub fn counters(&self) -> (StoreCounters, u64, usize) {
        let store = self.0.read();
        (store.counters(), store.bytes_in_use(), store.len())
    }
}

/// The body from its `pieces`.
#[must_use]
pub fn body_from_pieces(pieces: &[Bytes]) -> Body {
    let len: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    let mut body = BodyBuilder::new(len);
    for piece in pieces {
        body.push(piece)
            .expect("the limit is the length of all pieces");
    }
    body.finish()
}
