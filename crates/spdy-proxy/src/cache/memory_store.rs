//! The tier in memory, shared by all requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use spdy_cache::body::{Body, BodyBuilder};
use spdy_cache::key::Key;
use spdy_cache::store::{Object, PurgeMode, Store, StoreConfig, StoreCounters};
use spdy_cache::stored::Stored;
use spdy_cache::tags::PurgeTag;

/// A store behind a lock: hits share it.
#[derive(Debug)]
pub struct MemoryStore(RwLock<Store>);

impl MemoryStore {
    /// An empty one.
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        Self(RwLock::new(Store::new(config)))
    }

    /// What is kept under `key`.
    #[must_use]
    pub fn lookup(&self, key: &Key) -> Option<Arc<[Object]>> {
        self.0.read().get(key)
    }

    /// Keeps an answer; `None` if it is larger than may be kept, or what is read leaves no room.
    pub fn store(&self, key: &Key, stored: Stored, body: Body) -> Option<Object> {
        let mut store = self.0.write();
        let kept = store.insert(key, stored, body);
        kept.inspect_err(|why| tracing::debug!(%why, ?key, "not kept"))
            .ok()
    }

    /// From now on sites may hold so many bytes, by name; those that hold more give at once.
    pub fn set_site_bytes(&self, quotas: BTreeMap<String, u64>) {
        let mut store = self.0.write();
        store.set_site_bytes(quotas);
    }

    /// Takes one object out, if it is still in.
    pub fn remove(&self, object: &Object) {
        let mut store = self.0.write();
        store.remove(object);
    }

    /// Purges what has a key that begins with `prefix`; how many objects that were.
    pub fn purge(&self, prefix: &[u8], how: PurgeMode) -> usize {
        let mut store = self.0.write();
        store.purge_prefix(prefix, how)
    }

    /// Purges what has a tag; how many objects that were.
    pub fn purge_tag(&self, tag: &PurgeTag, how: PurgeMode) -> usize {
        let mut store = self.0.write();
        store.purge_tag(tag, how)
    }

    /// What happened so far, how many bytes are in it, with what has left and is still read, and how many objects.
    #[must_use]
    pub fn counters(&self) -> (StoreCounters, u64, usize) {
        let store = self.0.read();
        (store.counters(), store.bytes_in_use(), store.len())
    }
}

/// The body that came in `pieces`.
#[must_use]
pub fn body_from_pieces(pieces: &[Bytes]) -> Body {
    let len: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    let mut gathering = BodyBuilder::new(len);
    for piece in pieces {
        gathering.push(piece).expect("the limit is its length");
    }
    gathering.finish()
}
