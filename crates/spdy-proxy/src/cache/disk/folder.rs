//! The folder of the disk tier: scans its files at the start, looks up responses, and removes files.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::policy::Policy;
use spdy_cache::stored::Stored;

use crate::cache::disk::counters::DiskCounters;
use crate::cache::disk::eviction::FileLocation;
use crate::cache::disk::file::{
    is_hexadecimal, is_not_found, is_store_file, open, read_body, read_valid_head,
};
use crate::cache::disk::index::{DiskIndex, Generation};
use crate::cache::disk::removal::PendingRemovals;

/// The state that the threads of the disk tier share.
#[derive(Debug)]
pub(crate) struct DiskFolder {
    pub(crate) path: PathBuf,
    pub(crate) max_bytes: u64,
    /// Maximum bytes of single sites.
    pub(crate) site_bytes: Mutex<BTreeMap<String, u64>>,
    index: Mutex<DiskIndex>,
    /// Bytes of objects that wait to be written.
    pub(crate) waiting_bytes: AtomicU64,
    /// Changes that were sent to the writer and are not finished.
    pub(crate) pending_changes: AtomicUsize,
    /// The last object was not written because of a disk error. Logged once, until an object is written again.
    pub(crate) is_failing: AtomicBool,
    /// Other files on the disk leave less than `max_bytes`. Logged once.
    pub(crate) is_space_limited: AtomicBool,
    /// Nothing is written any more.
    pub(crate) is_closed: AtomicBool,
    /// Nothing is written for now: another process has the folder.
    pub(crate) is_lent: AtomicBool,
    pub(crate) counters: DiskCounters,
    pub(crate) removals: Mutex<PendingRemovals>,
}

impl DiskFolder {
    /// The folder at `path`, before it is scanned. `max_bytes` is the limit for all files together.
    pub(crate) fn new(path: &Path, max_bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            max_bytes,
            site_bytes: Mutex::default(),
            index: Mutex::default(),
            waiting_bytes: AtomicU64::new(0),
            pending_changes: AtomicUsize::new(0),
            is_failing: AtomicBool::new(false),
            is_space_limited: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_lent: AtomicBool::new(false),
            counters: DiskCounters::default(),
            removals: Mutex::default(),
        }
    }

    pub(crate) fn index(&self) -> MutexGuard<'_, DiskIndex> {
        self.index.lock()
    }

    /// The path of the file with this name.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(&name[..2]).join(name)
    }

    /// Reads every head, and removes invalid files.
    pub(crate) fn scan(&self) -> io::Result<()> {
        let policy = Policy::site();
        let mut objects = Vec::new();
        for folder in fs::read_dir(&self.path)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() || !is_hexadecimal(&folder.file_name(), 2) {
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let path = file?.path();
                if !is_store_file(&path) {
                    if is_not_found(&path) {
                        continue;
                    }
                    tracing::warn!(path = %path.display(), "ignored a file in the cache folder that is not a cache file");
                    continue;
                }
                match read_valid_head(&path, &policy) {
                    Ok(named) => objects.push(named),
                    // The process that lent the folder still removes purged files.
                    Err(_) if is_not_found(&path) => {}
                    Err(reason) => {
                        tracing::info!(path = %path.display(), %reason, "removed a file from the cache folder");
                        self.counters.corrupt.fetch_add(1, Ordering::Relaxed);
                        match fs::remove_file(&path) {
                            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                                return Err(error);
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
        // The time of last use is unknown, so the files are ordered by the time of receipt.
        objects.sort_by_key(|(_, object)| object.stored.times().received);
        let mut index = self.index();
        for (name, object) in objects {
            index.add(&object.key, &object.stored, name, object.layout.file_len());
        }
        let evicted = index.evict_to(self.max_bytes);
        drop(index);
        self.evict(&evicted);
        Ok(())
    }

    /// The newest valid response under `key` for a request with the fields `request_headers`. Invalid files are added to `broken`: they are out of
    /// the index, and the caller removes them.
    pub(crate) fn lookup(
        &self,
        key: &Key,
        request_headers: &HeaderMap,
        policy: &Policy,
        broken: &mut Vec<FileLocation>,
    ) -> Option<(Stored, Body)> {
        let names = self.index().names(key)?;
        let mut heads = Vec::new();
        for (name, generation) in names {
            match open(&self.file(&name), policy) {
                Ok((object, file)) if object.key == *key => {
                    heads.push((name, generation, object, file));
                }
                Ok(_) => broken.extend(self.mark_corrupt(key, name, generation, &"another key")),
                Err(error) => broken.extend(self.mark_corrupt(key, name, generation, &error)),
            }
        }
        heads.retain(|(_, _, object, _)| object.stored.matches(request_headers));
        let (name, generation, object, file) = heads
            .into_iter()
            .max_by_key(|(_, _, object, _)| object.stored.times().received)?;
        match read_body(&object, file) {
            Ok(body) => {
                self.index().record_use(key, &name);
                self.counters.hits.fetch_add(1, Ordering::Relaxed);
                Some((object.stored, body))
            }
            Err(error) => {
                broken.extend(self.mark_corrupt(key, name, generation, &error));
                None
            }
        }
    }

    /// Takes an invalid file out of the index. Gives its location if it was still there. A reader that hangs may report this late, when
    /// another file has the name. Only the writer knows whether it is about to write such a file.
    fn mark_corrupt(
        &self,
        key: &Key,
        name: String,
        generation: Generation,
        reason: &dyn std::fmt::Display,
    ) -> Option<FileLocation> {
        // It is not an error if the file was purged or replaced in the meantime.
        if !self.index().remove_generation(key, &name, generation) {
            return None;
        }
        tracing::warn!(name, %reason, "corrupt file in the cache");
        self.counters.corrupt.fetch_add(1, Ordering::Relaxed);
        Some((key.clone(), name))
    }

    /// Removes files to make room.
    pub(crate) fn evict(&self, names: &[String]) {
        self.counters
            .evicted
            .fetch_add(names.len() as u64, Ordering::Relaxed);
        names.iter().for_each(|name| self.unlink(name));
    }
}
