//! Chooses the files of the disk tier that are evicted: the least recently used of all, or of one site.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use spdy_cache::key::Key;

/// The location of a file: its key and its name.
pub(crate) type FileLocation = (Key, String);

/// The files by last use, and their bytes, in total and for each site.
#[derive(Debug, Default)]
pub(crate) struct EvictionOrder {
    by_last_use: BTreeMap<u64, FileLocation>,
    next_use: u64,
    bytes: u64,
    sites: BTreeMap<Bytes, SiteUsage>,
}

/// What a site uses.
#[derive(Debug, Default)]
struct SiteUsage {
    bytes: u64,
    /// The last use of each of its files.
    uses: BTreeSet<u64>,
}

impl EvictionOrder {
    /// The number of files.
    pub(crate) fn files(&self) -> usize {
        self.by_last_use.len()
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a file of this length, as the last that was used. Gives the number of this use.
    pub(crate) fn add(&mut self, location: FileLocation, bytes: u64) -> u64 {
        let last_use = self.next_use;
        self.next_use += 1;
        self.bytes += bytes;
        let site = Bytes::copy_from_slice(location.0.site());
        let of_site = self.sites.entry(site).or_default();
        of_site.bytes += bytes;
        of_site.uses.insert(last_use);
        self.by_last_use.insert(last_use, location);
        last_use
    }

    /// Records a use of the file of `site` that was used last at `last_use`. Gives the number of this use.
    ///
    /// # Panics
    ///
    /// There is no such file.
    pub(crate) fn record_use(&mut self, site: &[u8], last_use: u64) -> u64 {
        let now = self.next_use;
        let location = self.by_last_use.remove(&last_use);
        let location = location.expect("every entry has a last use");
        if let Some(of_site) = self.sites.get_mut(site) {
            of_site.uses.remove(&last_use);
            of_site.uses.insert(now);
        }
        self.by_last_use.insert(now, location);
        self.next_use += 1;
        now
    }

    /// Removes the file of `site` and this length that was used last at `last_use`.
    pub(crate) fn remove(&mut self, site: &[u8], last_use: u64, bytes: u64) {
        self.by_last_use.remove(&last_use);
        self.bytes -= bytes;
        if let Some(of_site) = self.sites.get_mut(site) {
            of_site.bytes -= bytes;
            of_site.uses.remove(&last_use);
            if of_site.uses.is_empty() {
                self.sites.remove(site);
            }
        }
    }

    /// The next file to evict if all files have more than `max_bytes`.
    pub(crate) fn next_over(&self, max_bytes: u64) -> Option<&FileLocation> {
        let (_, location) = self.by_last_use.first_key_value()?;
        (self.bytes > max_bytes).then_some(location)
    }

    /// The next file of `site` to evict if its files have more than `max_bytes`.
    pub(crate) fn next_of_site_over(&self, site: &[u8], max_bytes: u64) -> Option<&FileLocation> {
        let of_site = self.sites.get(site)?;
        let last_use = of_site.uses.first()?;
        let location = self.by_last_use.get(last_use)?;
        (of_site.bytes > max_bytes).then_some(location)
    }
}
