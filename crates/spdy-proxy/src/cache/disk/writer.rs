//! The writer thread of the disk tier: applies changes one by one, in the order of the queue.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::object_file::{Encoder, Layout, file_name};
use spdy_cache::stored::Stored;
use tokio::sync::oneshot;

use crate::cache::disk::eviction::FileLocation;
use crate::cache::disk::file::write_new;
use crate::cache::disk::folder::DiskFolder;
use crate::cache::disk::index::DiskIndex;
use crate::cache::disk::lock::FolderLock;

/// A change for the writer.
#[derive(Debug)]
pub(crate) enum WriterCommand {
    Store {
        key: Key,
        stored: Arc<Stored>,
        body: Body,
        purges: u64,
        /// Bytes that wait with this object.
        weight: u64,
    },
    /// Files that have left the index. A file stays if a new one took its name since.
    Remove(Vec<FileLocation>),
    /// A file that may have entered the index since.
    Forget(Key, String),
    /// Maximum bytes of each site.
    SetQuotas(BTreeMap<String, u64>),
    /// Reports whether all earlier removals are durable.
    SyncRemovals(oneshot::Sender<bool>),
    /// Lends the folder to another process.
    Lend(oneshot::Sender<io::Result<()>>),
    /// Takes it back.
    TakeBack(oneshot::Sender<io::Result<()>>),
}

/// A change that the writer has begun and not finished.
struct PendingChange<'a>(&'a DiskFolder);

impl Drop for PendingChange<'_> {
    fn drop(&mut self) {
        self.0.pending_changes.fetch_sub(1, Ordering::Release);
    }
}

impl DiskFolder {
    /// Queues `change` for the writer; `false` if the writer has ended.
    pub(crate) fn send(&self, writes: &mpsc::Sender<WriterCommand>, change: WriterCommand) -> bool {
        self.pending_changes.fetch_add(1, Ordering::Relaxed);
        let is_sent = writes.send(change).is_ok();
        if !is_sent {
            self.pending_changes.fetch_sub(1, Ordering::Relaxed);
        }
        is_sent
    }

    /// Applies one change; `lock` is the folder's.
    pub(crate) fn apply(&self, change: WriterCommand, lock: &FolderLock) {
        let pending = PendingChange(self);
        match change {
            WriterCommand::Store {
                key,
                stored,
                body,
                purges,
                weight,
            } => {
                let skip_reason = [
                    (&self.is_closed, "left out: the program ends"),
                    (&self.is_lent, "left out: another process has the folder"),
                ]
                .into_iter()
                .find(|(is_skipped, _)| is_skipped.load(Ordering::Relaxed));
                let written = match skip_reason {
                    None => self.write(&key, &stored, &body, purges),
                    Some((_, reason)) => Err(io::Error::other(reason)),
                };
                self.waiting_bytes.fetch_sub(weight, Ordering::Release);
                let counter = match &written {
                    Ok(()) => &self.counters.written,
                    Err(_) => &self.counters.write_skipped,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                self.log_write_state(written);
            }
            WriterCommand::Remove(places) => {
                for (key, name) in &places {
                    if !self.index().has(key, name) {
                        self.unlink(name);
                    }
                }
            }
            WriterCommand::Forget(key, name) => {
                self.index().remove(&key, &name);
                self.unlink(&name);
            }
            // Done here, so that no file of an evicted name is written in between.
            WriterCommand::SetQuotas(quotas) => {
                let mut evicted = Vec::new();
                for (site, quota) in &quotas {
                    evicted.extend(self.index().evict_site_to(site.as_bytes(), *quota));
                }
                self.evict(&evicted);
                *self.site_bytes.lock() = quotas;
            }
            // The change is finished before its caller gets the result. The caller may have stopped waiting.
            WriterCommand::SyncRemovals(done) => {
                let is_settled = self.sync_removals();
                drop(pending);
                let _ = done.send(is_settled);
            }
            WriterCommand::Lend(done) => {
                let result = lock.lend();
                drop(pending);
                let _ = done.send(result);
            }
            WriterCommand::TakeBack(done) => {
                let result = lock.take_back();
                drop(pending);
                let _ = done.send(result);
            }
        }
    }

    /// Logs when the disk starts or stops to fail. It does not log each object, because there may be thousands a second.
    fn log_write_state(&self, written: io::Result<()>) {
        match written {
            Ok(()) if self.is_failing.swap(false, Ordering::Relaxed) => {
                tracing::warn!(folder = %self.path.display(), "writing to the disk cache works again");
            }
            Ok(()) => {}
            // An error of our own: it is about this object only.
            Err(error) if error.kind() == io::ErrorKind::Other => {
                tracing::debug!(%error, "cannot store the response on the disk");
            }
            Err(error) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, folder = %self.path.display(), "cannot write to the disk cache; continuing with memory");
            }
            Err(error) => tracing::debug!(%error, "cannot store the response on the disk"),
        }
    }

    fn write(&self, key: &Key, stored: &Stored, body: &Body, purges: u64) -> io::Result<()> {
        let (encoder, start) = Encoder::new(key, stored, body.len())
            .ok_or_else(|| io::Error::other("the response head is too long"))?;
        let name = file_name(key, stored);
        let path = self.file(&name);
        let len = Layout::decode(&start).map_err(io::Error::other)?.file_len();
        let quota = self.quota(key);
        if len > quota {
            return Err(io::Error::other(
                "the object is larger than the tier or the limit of its site",
            ));
        }
        let evicted = {
            let mut index = self.index();
            let mut evicted = index.evict_site_to(key.site(), quota - len);
            evicted.extend(index.evict_to(self.max_bytes - len));
            evicted
        };
        self.evict(&evicted);
        let new = path.with_extension("new");
        let outcome = self.write_with_room(&new, len, || {
            fs::create_dir_all(path.parent().unwrap_or(&self.path))?;
            write_new(&new, &start, encoder.clone(), body)
        });
        let outcome = outcome.and_then(|()| self.publish(&new, key, stored, name, len, purges));
        if outcome.is_err() {
            // Otherwise the next start would remove the rest of it.
            let _ = fs::remove_file(&new);
        }
        outcome
    }

    /// Writes a file of `len` bytes. If the disk is full because of other files, the least recently used objects are evicted, as at the
    /// tier's own limit.
    fn write_with_room(
        &self,
        new: &Path,
        len: u64,
        write: impl Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        // An unlinked file that is still read frees its room later, and files take whole blocks. So the room doubles each time.
        let (mut room, mut freed) = (len, 0);
        loop {
            let outcome = write();
            let is_full = outcome.as_ref().is_err_and(|error| {
                use io::ErrorKind::{QuotaExceeded, StorageFull};
                matches!(error.kind(), StorageFull | QuotaExceeded)
            });
            if !is_full {
                return outcome;
            }
            // The unfinished file takes room itself.
            let _ = fs::remove_file(new);
            let (evicted, remaining_bytes) = {
                let mut index = self.index();
                let bytes = index.bytes();
                // Nothing is evicted for an object that would not fit even in an empty tier.
                if freed + bytes < len || self.is_closed.load(Ordering::Relaxed) {
                    return outcome;
                }
                let evicted = index.evict_to(bytes.saturating_sub(room));
                freed += bytes - index.bytes();
                (evicted, index.bytes())
            };
            if evicted.is_empty() {
                return outcome;
            }
            self.evict(&evicted);
            room = room.saturating_mul(2);
            if !self.is_space_limited.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    folder = %self.path.display(), bytes = remaining_bytes, max_bytes = self.max_bytes,
                    "the disk is full before the cache reaches max_bytes: evicting the least recently used files"
                );
            }
        }
    }

    /// Renames the new file to its name, and adds it to the index.
    fn publish(
        &self,
        new: &Path,
        key: &Key,
        stored: &Stored,
        name: String,
        len: u64,
        purges: u64,
    ) -> io::Result<()> {
        let is_purged = |index: &DiskIndex| index.is_purged_since(purges, key, stored);
        let purged = || Err(io::Error::other("purged before it was written"));
        {
            let mut index = self.index();
            // An object that was purged after it was queued does not come back.
            if is_purged(&index) {
                return purged();
            }
            // Lookups must not find the new file through the old entry: a purge may match only one of them.
            index.remove(key, &name);
        }
        // The index is not locked while the disk is slow.
        if let Err(error) = fs::rename(new, self.file(&name)) {
            self.unlink(&name);
            return Err(error);
        }
        let mut index = self.index();
        if is_purged(&index) {
            drop(index);
            self.unlink(&name);
            return purged();
        }
        self.cancel_removal(&name);
        index.add(key, stored, name, len);
        Ok(())
    }

    /// The maximum bytes of the site of `key`.
    fn quota(&self, key: &Key) -> u64 {
        let quotas = self.site_bytes.lock();
        let site = std::str::from_utf8(key.site()).ok();
        let quota = site.and_then(|site| quotas.get(site).copied());
        quota.unwrap_or(self.max_bytes).min(self.max_bytes)
    }
}
