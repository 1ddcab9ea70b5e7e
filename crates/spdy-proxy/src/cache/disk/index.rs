//! The files of the disk tier by key, by tag and by last use (`eviction.rs`), and the recent purges.
//!
//! A read or a queued write from before a purge that matches it is dropped ([`DiskIndex::is_purged_since`]). A purge applies to everything
//! that was handed over before it, written or not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;

use bytes::Bytes;
use spdy_cache::key::Key;
use spdy_cache::purge_tags;
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::shared_tier::PurgeTarget;
use spdy_cache::stored::Stored;

use crate::cache::disk::eviction::{EvictionOrder, FileLocation};

/// Purges that are remembered. A read or write from before all of them counts as purged.
const MAX_RECENT_PURGES: usize = 256;

/// The index of the files.
#[derive(Debug, Default)]
pub(crate) struct DiskIndex {
    keys: BTreeMap<Key, BTreeMap<String, IndexEntry>>,
    tags: BTreeMap<PurgeTag, BTreeSet<FileLocation>>,
    eviction: EvictionOrder,
    /// Purges so far. A read or a queued write from before a purge that matches it is dropped.
    purges: u64,
    /// What the latest purges match.
    recent_purges: VecDeque<PurgeTarget>,
}

/// Distinguishes successive files of one name: a report about one file does not apply to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

#[derive(Debug)]
pub(crate) struct IndexEntry {
    bytes: u64,
    last_use: u64,
    generation: Generation,
    tags: Vec<PurgeTag>,
}

impl DiskIndex {
    /// The files of `key`, each with [its generation](Generation); `None` if there are none.
    pub(crate) fn names(&self, key: &Key) -> Option<Vec<(String, Generation)>> {
        let names = self.keys.get(key)?.iter();
        Some(
            names
                .map(|(name, entry)| (name.clone(), entry.generation))
                .collect(),
        )
    }

    /// Whether there is a file of this key and name.
    pub(crate) fn has(&self, key: &Key, name: &str) -> bool {
        self.keys
            .get(key)
            .is_some_and(|names| names.contains_key(name))
    }

    /// The number of files.
    pub(crate) fn files(&self) -> usize {
        self.eviction.files()
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.eviction.bytes()
    }

    /// Purges so far.
    pub(crate) fn purges(&self) -> u64 {
        self.purges
    }

    /// Adds a file. Replaces the one with this name.
    pub(crate) fn add(&mut self, key: &Key, stored: &Stored, name: String, bytes: u64) {
        self.remove(key, &name);
        let last_use = self.eviction.add((key.clone(), name.clone()), bytes);
        let tags = purge_tags::response_tags(key, stored.headers());
        for tag in &tags {
            self.tags
                .entry(tag.clone())
                .or_default()
                .insert((key.clone(), name.clone()));
        }
        let generation = Generation(last_use);
        let entry = IndexEntry {
            bytes,
            last_use,
            generation,
            tags,
        };
        self.keys
            .entry(key.clone())
            .or_default()
            .insert(name, entry);
    }

    /// Records a use.
    pub(crate) fn record_use(&mut self, key: &Key, name: &str) {
        if let Some(entry) = self.keys.get_mut(key).and_then(|names| names.get_mut(name)) {
            entry.last_use = self.eviction.record_use(key.site(), entry.last_use);
        }
    }

    /// Removes a file from the index; `None` if it is not there.
    pub(crate) fn remove(&mut self, key: &Key, name: &str) -> Option<IndexEntry> {
        let names = self.keys.get_mut(key)?;
        let entry = names.remove(name)?;
        if names.is_empty() {
            self.keys.remove(key);
        }
        self.eviction
            .remove(key.site(), entry.last_use, entry.bytes);
        for tag in &entry.tags {
            if let Some(places) = self.tags.get_mut(tag) {
                places.remove(&(key.clone(), name.to_owned()));
                if places.is_empty() {
                    self.tags.remove(tag);
                }
            }
        }
        Some(entry)
    }

    /// Removes this file from the index, but not a later one of its name. Gives whether it was there.
    pub(crate) fn remove_generation(
        &mut self,
        key: &Key,
        name: &str,
        generation: Generation,
    ) -> bool {
        let entry = self.keys.get(key).and_then(|names| names.get(name));
        let is_current = entry.is_some_and(|entry| entry.generation == generation);
        is_current && self.remove(key, name).is_some()
    }

    /// Removes the least recently used files from the index until at most `room` bytes are left. Gives their names.
    pub(crate) fn evict_to(&mut self, room: u64) -> Vec<String> {
        let mut names = Vec::new();
        while let Some((key, name)) = self.eviction.next_over(room).cloned() {
            self.remove(&key, &name);
            names.push(name);
        }
        names
    }

    /// The same for the files of `site`.
    pub(crate) fn evict_site_to(&mut self, site: &[u8], room: u64) -> Vec<String> {
        let mut names = Vec::new();
        while let Some((key, name)) = self.eviction.next_of_site_over(site, room).cloned() {
            self.remove(&key, &name);
            names.push(name);
        }
        names
    }

    /// Removes files with this key prefix from the index. Gives their locations.
    pub(crate) fn purge_prefix(&mut self, prefix: &[u8]) -> Vec<FileLocation> {
        let prefix = Bytes::copy_from_slice(prefix);
        let from = Bound::Included(Key::range_start(prefix.clone()));
        let keys = self.keys.range((from, Bound::Unbounded));
        let meant = keys.take_while(|(key, _)| key.as_bytes().starts_with(&prefix));
        let places =
            meant.flat_map(|(key, names)| names.keys().map(|name| (key.clone(), name.clone())));
        let places = places.collect();
        self.purge(places, PurgeTarget::Prefix(prefix))
    }

    /// Removes files with this tag from the index. Gives their locations.
    pub(crate) fn purge_tag(&mut self, tag: &PurgeTag) -> Vec<FileLocation> {
        let places = self.tags.get(tag).into_iter().flatten().cloned().collect();
        self.purge(places, PurgeTarget::Tag(tag.clone()))
    }

    fn purge(&mut self, places: Vec<FileLocation>, target: PurgeTarget) -> Vec<FileLocation> {
        self.purges += 1;
        self.recent_purges.push_front(target);
        self.recent_purges.truncate(MAX_RECENT_PURGES);
        for (key, name) in &places {
            self.remove(key, name);
        }
        places
    }

    /// Whether a purge after count `purges` matched this response.
    pub(crate) fn is_purged_since(&self, purges: u64, key: &Key, stored: &Stored) -> bool {
        let later = self.purges - purges;
        if later > self.recent_purges.len() as u64 {
            return true;
        }
        // No more than are remembered.
        let mut latest = self.recent_purges.iter().take(later as usize);
        latest.any(|meant| meant.matches(key, stored.headers()))
    }
}
