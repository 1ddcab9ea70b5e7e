//! The tier in memory: variants by key, with a limit of bytes.
//!
//! ```text
//!  keys      Key ──▶ variants, shared with their readers             (hash: one lookup for a hit)
//!  ordered   Key, in order                                           (purges by site, origin, prefix, URL)
//!  tags      Tag ──▶ objects                                         (purges by tag)
//!  queues    site ──▶ queues of S3-FIFO, and bytes                   (eviction: tiers/s3_fifo.rs)
//! ```
//!
//! A hit takes `&self`, clones one `Arc` and counts a use on the object; everything else takes `&mut self`. No map with random
//! order is iterated, so the same calls have the same result.
//!
//! When the store is full, the site with the most bytes evicts; a site above its own quota evicts its own objects. The weight of an
//! object includes heads, indexes and tables, so that the sum is close to the memory of the process.
//!
//! An evicted body uses memory until its last reader is done. So a body is counted as long as it has a holder (`body.rs`), even
//! after eviction. Evicting a body with a reader would free no memory, so it stays while others can be evicted; if there are no
//! others, the new object is refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::SystemTime;

use bytes::Bytes;

use crate::body::Body;
use crate::body::ByteTally;
use crate::key::{Key, Scope, ZeroByte};
use crate::purge_tags;
use crate::purge_tags::PurgeTag;
use crate::rules::stored::Stored;
use crate::tiers::s3_fifo::{Eviction, Id, QueuePosition, S3Fifo};

/// Limits of a store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoreConfig {
    /// Limit of the total weight, bytes.
    pub max_bytes: u64,
    /// Limit of the weight of one object, bytes; a larger object is refused.
    pub max_object_bytes: u64,
    /// Limit of variants per key; above it, the oldest is removed.
    pub max_variants: usize,
    /// Limits of named sites, bytes; other sites are limited only by the total.
    pub site_bytes: BTreeMap<String, u64>,
}

impl Default for StoreConfig {
    /// 256 MiB, objects of 16 MiB, 16 variants.
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            max_object_bytes: 16 << 20,
            max_variants: 16,
            site_bytes: BTreeMap::new(),
        }
    }
}

/// A stored response with its body. Cheap to clone; a holder may read it after it was removed from the store.
#[derive(Clone, Debug)]
pub struct Object(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: Id,
    stored: Stored,
    body: Body,
    uses: AtomicU8,
}

impl Object {
    /// The head and everything derived from it.
    #[must_use]
    pub fn stored(&self) -> &Stored {
        &self.0.stored
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Body {
        &self.0.body
    }

    /// Counts a use, which delays eviction. Concurrent uses by several threads may be counted once.
    pub fn count_use(&self) {
        let uses = self.0.uses.load(Ordering::Relaxed);
        if uses < MAX_USES {
            self.0.uses.store(uses + 1, Ordering::Relaxed);
        }
    }

    /// True if there are other holders of it or its body than the store: evicting it would not free memory.
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0) > INTERNAL_REFS || self.0.body.is_shared()
    }

    /// True if both are the same object, not merely equal.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl AsRef<Stored> for Object {
    fn as_ref(&self) -> &Stored {
        &self.0.stored
    }
}

/// Maximum count of uses.
const MAX_USES: u8 = 3;

/// References to an object within the store: in its key's variants, and in its slot.
const INTERNAL_REFS: usize = 2;

/// Objects in use that are skipped before a new object is refused.
const MAX_SKIPPED: usize = 1024;

/// An object that weighs more than this fraction of the store evicts others only after a check that this makes enough room.
const LARGE_OBJECT_DIVISOR: u64 = 64;

/// Weight of an object's entries in the four maps of the store, without its own bytes.
const SLOT_OVERHEAD: u64 = 512;

/// The effect of a purge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PurgeMode {
    /// The objects are removed.
    Hard,
    /// The objects are stale from this time on ([`Stored::expire`]).
    Soft(SystemTime),
}

/// An object is larger than the limit, or than the room beside the objects in use.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("object has {weight} bytes, limit {room}")]
pub struct TooLarge {
    /// The weight of the object.
    pub weight: u64,
    /// The smallest of its limits, or the room that is left when nothing more can be evicted.
    pub room: u64,
}

/// Counts of operations.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StoreCounters {
    /// Inserted objects.
    pub inserted: u64,
    /// Of those, objects that replaced another for the same requests.
    pub replaced: u64,
    /// Objects evicted to make room.
    pub evicted: u64,
    /// Variants removed because their key had too many.
    pub variant_limit: u64,
    /// Objects that were too large, or for which the objects in use left no room.
    pub refused: u64,
    /// Objects removed or made stale by a purge or by name.
    pub purged: u64,
}

/// The entry of an object.
#[derive(Debug)]
struct Slot {
    key: Key,
    place: QueuePosition,
    weight: u64,
    object: Object,
}

impl Slot {
    /// Its weight without the body.
    fn head_weight(&self) -> u64 {
        self.weight - self.object.body().weight()
    }
}

/// Which objects may be evicted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum EvictionFilter {
    Any,
    /// Only objects without another holder.
    NotInUse,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    config: StoreConfig,
    keys: HashMap<Key, Arc<[Object]>>,
    ordered: BTreeSet<Key>,
    slots: HashMap<Id, Slot>,
    tags: BTreeMap<PurgeTag, BTreeSet<Id>>,
    queues: BTreeMap<Bytes, S3Fifo>,
    bytes: u64,
    /// Bytes outside of bodies, a part of the total.
    head_bytes: u64,
    /// Inserted bodies that are in the store or still held elsewhere.
    bodies: ByteTally,
    next_id: Id,
    counters: StoreCounters,
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new(config: StoreConfig) -> Self {
        Self {
            config,
            keys: HashMap::new(),
            ordered: BTreeSet::new(),
            slots: HashMap::new(),
            tags: BTreeMap::new(),
            queues: BTreeMap::new(),
            bytes: 0,
            head_bytes: 0,
            bodies: ByteTally::default(),
            next_id: 0,
            counters: StoreCounters::default(),
        }
    }

    /// The variants under `key`, for [`lookup`](crate::lookup::lookup). The caller counts the use of the selected one
    /// ([`Object::count_use`]).
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<[Object]>> {
        self.keys.get(key).cloned()
    }

    /// Stores a response, replaces the one for the same requests, and evicts others to make room.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] if its weight is above a limit, or above the room beside the objects in use. The response that it
    /// would replace is removed in any case.
    pub fn insert(&mut self, key: &Key, stored: Stored, body: Body) -> Result<Object, TooLarge> {
        let tags = purge_tags::response_tags(key, stored.headers());
        let weight = weight_of(key, &stored, &body, &tags);
        let before = self.remove_replaced(key, &stored);
        let quota = self.quota(key);
        let room = quota
            .min(self.config.max_object_bytes)
            .min(self.config.max_bytes);
        if weight > room {
            self.counters.refused += 1;
            return Err(TooLarge { weight, room });
        }
        self.limit_variants(key);
        if quota < self.config.max_bytes {
            self.evict_site_to(key.site(), quota.saturating_sub(weight));
        }
        if let Err(room) = self.evict_for(weight, &body) {
            self.counters.refused += 1;
            return Err(TooLarge { weight, room });
        }
        self.head_bytes += weight - body.weight();
        body.count_in(&self.bodies);

        let id = self.next_id;
        self.next_id += 1;
        let (uses, was_in_main) = before.unwrap_or((0, false));
        let object = Object(Arc::new(Inner {
            id,
            stored,
            body,
            uses: AtomicU8::new(uses),
        }));
        let queue = self
            .queues
            .entry(Bytes::copy_from_slice(key.site()))
            .or_default();
        let place = match was_in_main {
            true => queue.insert_at(id, weight, true),
            false => queue.insert(id, hash_of(key), weight),
        };
        for tag in tags {
            self.tags.entry(tag).or_default().insert(id);
        }
        let others = self.keys.get(key).map_or(&[][..], |variants| variants);
        let variants: Arc<[Object]> = others.iter().cloned().chain([object.clone()]).collect();
        if variants.len() == 1 {
            self.ordered.insert(key.clone());
        }
        self.keys.insert(key.clone(), variants);
        self.slots.insert(
            id,
            Slot {
                key: key.clone(),
                place,
                weight,
                object: object.clone(),
            },
        );
        self.bytes += weight;
        self.counters.inserted += 1;
        Ok(object)
    }

    /// Sets the limits of sites ([`StoreConfig::site_bytes`]); sites above their limit evict at once.
    pub fn set_site_bytes(&mut self, site_bytes: BTreeMap<String, u64>) {
        for (site, quota) in &site_bytes {
            self.evict_site_to(site.as_bytes(), *quota);
        }
        self.config.site_bytes = site_bytes;
    }

    /// Removes one variant; `false` if it was not in the store.
    pub fn remove(&mut self, object: &Object) -> bool {
        let here = self
            .slots
            .get(&object.0.id)
            .is_some_and(|slot| slot.object.is(object));
        if here {
            self.take(object.0.id);
            self.counters.purged += 1;
        }
        here
    }

    /// Purges a scope; returns the number of objects.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`] if the scope contains one: no key can match it.
    pub fn purge(&mut self, scope: &Scope<'_>, how: PurgeMode) -> Result<usize, ZeroByte> {
        Ok(self.purge_prefix(&scope.prefix()?, how))
    }

    /// Purges all objects whose key begins with these bytes; returns their number.
    pub fn purge_prefix(&mut self, prefix: &[u8], how: PurgeMode) -> usize {
        let from = Bound::Included(Key::range_start(Bytes::copy_from_slice(prefix)));
        let keys = self.ordered.range((from, Bound::Unbounded));
        let objects = keys
            .take_while(|key| key.as_bytes().starts_with(prefix))
            .flat_map(|key| self.keys[key].iter().map(|object| object.0.id));
        let ids: Vec<Id> = objects.collect();
        self.purge_all(&ids, how);
        ids.len()
    }

    /// Purges all objects with a tag; returns their number.
    pub fn purge_tag(&mut self, tag: &PurgeTag, how: PurgeMode) -> usize {
        let ids: Vec<Id> = self.tags.get(tag).into_iter().flatten().copied().collect();
        self.purge_all(&ids, how);
        ids.len()
    }

    /// Weight in bytes of all stored objects; never more than [`StoreConfig::max_bytes`].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Weight in bytes of everything in the store, and of evicted bodies that are still held; never more than [`StoreConfig::max_bytes`].
    #[must_use]
    pub fn bytes_in_use(&self) -> u64 {
        self.head_bytes + self.bodies.bytes()
    }

    /// Weight in bytes of a site's stored objects.
    #[must_use]
    pub fn site_bytes(&self, site: &str) -> u64 {
        self.queues.get(site.as_bytes()).map_or(0, S3Fifo::bytes)
    }

    /// Number of objects; each variant is one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True if the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Counts of operations.
    #[must_use]
    pub fn counters(&self) -> StoreCounters {
        self.counters
    }

    fn quota(&self, key: &Key) -> u64 {
        let named = std::str::from_utf8(key.site())
            .ok()
            .and_then(|site| self.config.site_bytes.get(site));
        named.copied().unwrap_or(self.config.max_bytes)
    }

    /// Removes the object that `stored` replaces. Returns its uses, and whether it was in the main queue.
    fn remove_replaced(&mut self, key: &Key, stored: &Stored) -> Option<(u8, bool)> {
        let variants = self.keys.get(key)?;
        let old = variants
            .iter()
            .find(|object| stored.replaces(object.stored()))?
            .0
            .id;
        let slot = self.take(old);
        self.counters.replaced += 1;
        Some((
            slot.object.0.uses.load(Ordering::Relaxed),
            slot.place.in_main,
        ))
    }

    fn limit_variants(&mut self, key: &Key) {
        while let Some(variants) = self.keys.get(key)
            && variants.len() >= self.config.max_variants
        {
            let oldest = variants
                .iter()
                .min_by_key(|object| (object.stored().times().received, object.0.id));
            let Some(id) = oldest.map(|object| object.0.id) else {
                return;
            };
            self.take(id);
            self.counters.variant_limit += 1;
        }
    }

    /// Evicts until an object of this weight with `body`, which may already be counted, has room. Otherwise returns the room that
    /// there is.
    fn evict_for(&mut self, weight: u64, body: &Body) -> Result<(), u64> {
        let max = self.config.max_bytes;
        let counted = if body.is_counted() { body.weight() } else { 0 };
        if weight > max / LARGE_OBJECT_DIVISOR {
            self.can_evict_for(weight, counted)?;
        }
        loop {
            let room = self.free_after(0, counted);
            if weight <= room {
                return Ok(());
            }
            if !self.evict_one() {
                return Err(room);
            }
        }
    }

    /// Checks that evicting all objects without another holder makes enough room; otherwise returns the room that this would make.
    /// So no object is evicted without effect.
    fn can_evict_for(&self, weight: u64, counted: u64) -> Result<(), u64> {
        let mut candidates = self.slots.values().filter(|slot| !slot.object.is_in_use());
        let mut freed = 0;
        loop {
            let room = self.free_after(freed, counted);
            if weight <= room {
                return Ok(());
            }
            freed += candidates.next().ok_or(room)?.weight;
        }
    }

    /// The room after `freed` bytes are evicted, for an object of which `counted` bytes are already counted.
    fn free_after(&self, freed: u64, counted: u64) -> u64 {
        let max = self.config.max_bytes;
        let room = max.saturating_sub(self.bytes.saturating_sub(freed));
        room.min((max + counted).saturating_sub(self.bytes_in_use().saturating_sub(freed)))
    }

    /// Evicts objects of `site` until it has at most `room` bytes.
    fn evict_site_to(&mut self, site: &[u8], room: u64) {
        while self.queues.get(site).map_or(0, S3Fifo::bytes) > room {
            self.evict_from(site, EvictionFilter::Any);
        }
    }

    /// Evicts one object without a holder, from the fullest site if that has one; `false` if there is none.
    fn evict_one(&mut self) -> bool {
        let fullest = self.queues.iter().max_by_key(|(_, queue)| queue.bytes());
        let Some(fullest) = fullest.map(|(site, _)| site.clone()) else {
            return false;
        };
        if self.evict_from(&fullest, EvictionFilter::NotInUse) {
            return true;
        }
        let others: Vec<Bytes> = self.queues.keys().cloned().collect();
        let mut others = others.iter().filter(|site| **site != fullest);
        others.any(|site| self.evict_from(site, EvictionFilter::NotInUse))
    }

    /// Evicts one object from the queue of `site`; `false` if too many objects in use were skipped.
    fn evict_from(&mut self, site: &[u8], filter: EvictionFilter) -> bool {
        let mut skipped = 0;
        loop {
            let queue = self
                .queues
                .get_mut(site)
                .expect("a site with stored bytes has a queue");
            let id = queue.last().expect("a queue with bytes has objects");
            let slot = self
                .slots
                .get_mut(&id)
                .expect("each queue entry has a slot");
            if filter == EvictionFilter::NotInUse && slot.object.is_in_use() {
                // An object with uses returns to the end of the queue, at most this often.
                let rounds = usize::from(MAX_USES) + 1;
                if skipped >= MAX_SKIPPED.min(rounds * queue.len()) {
                    return false;
                }
                skipped += 1;
                slot.place = queue.requeue(id, slot.place, slot.weight);
                continue;
            }
            let uses = slot.object.0.uses.load(Ordering::Relaxed);
            match queue.decide(id, slot.place, uses, hash_of(&slot.key), slot.weight) {
                Eviction::Keep(place, remaining_uses) => {
                    slot.place = place;
                    slot.object.0.uses.store(remaining_uses, Ordering::Relaxed);
                }
                Eviction::Evict => {
                    self.take(id);
                    self.counters.evicted += 1;
                    return true;
                }
            }
        }
    }

    fn purge_all(&mut self, ids: &[Id], how: PurgeMode) {
        for id in ids {
            match how {
                PurgeMode::Hard => drop(self.take(*id)),
                PurgeMode::Soft(now) => self.slots[id].object.stored().expire(now),
            }
        }
        self.counters.purged += ids.len() as u64;
    }

    /// Removes an object from every table.
    fn take(&mut self, id: Id) -> Slot {
        let slot = self
            .slots
            .remove(&id)
            .expect("the caller has found the object in a queue or table");
        self.bytes -= slot.weight;
        self.head_bytes -= slot.head_weight();
        let site = slot.key.site();
        let queue = self
            .queues
            .get_mut(site)
            .expect("the site of a stored object has a queue");
        queue.take(slot.place, slot.weight);
        if queue.is_empty() {
            self.queues.remove(site);
        }
        for tag in purge_tags::response_tags(&slot.key, slot.object.stored().headers()) {
            if let Some(ids) = self.tags.get_mut(&tag) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.tags.remove(&tag);
                }
            }
        }
        let variants = self
            .keys
            .get_mut(&slot.key)
            .expect("the key of a stored object has an entry");
        match variants.len() {
            1 => {
                self.keys.remove(&slot.key);
                self.ordered.remove(&slot.key);
            }
            _ => {
                let others = variants.iter().filter(|other| other.0.id != id);
                *variants = others.cloned().collect();
            }
        }
        slot
    }
}

/// A hash with a constant key, so that it is the same in every run.
fn hash_of(key: &Key) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

fn weight_of(key: &Key, stored: &Stored, body: &Body, tags: &[PurgeTag]) -> u64 {
    let tags: usize = tags.iter().map(PurgeTag::weight).sum();
    (key.as_bytes().len() + stored.weight() + tags) as u64 + body.weight() + SLOT_OVERHEAD
}
