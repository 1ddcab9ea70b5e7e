//! The disk tier of the cache: stored responses survive a restart or a kill, and a damaged one is never served.
//!
//! ```text
//!  store ─queue──▶ writer: new file ──▶ all bytes ──▶ fsync ──▶ rename        a kill leaves a .new, which the start removes
//!  find ──queue──▶ readers: head ──▶ seal ──▶ chunks, each checked            a file that fails a check is removed: a miss
//!  purge ────────▶ index, at once; files by the writer, and their folders synced, before it returns
//!  start ────────▶ reads every head; incomplete files and those of another version are removed
//! ```
//!
//! A file contains one object ([`object_file`](spdy_cache::object_file)). Its name derives from the key and variant, so a newer response
//! replaces the old one by a rename. The index in memory has keys, tags, lengths and last uses, and limits the bytes on the disk. A store
//! never waits for a slow or full disk: writes beyond the queue's limit are skipped. Objects that cannot be written are logged, counted,
//! and still served from memory.
//!
//! Only one process uses a folder. It may be lent to the process that replaces it: the new process reads all heads while the old one
//! still serves what it had found.
//!
//! A soft purge is a hard purge here. In memory, a stale object may be served during revalidation. After a restart, the purge would be
//! forgotten.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread;

use http::HeaderMap;
use parking_lot::Mutex;
use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::object_file::file_name;
use spdy_cache::policy::Policy;
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::stored::Stored;
use tokio::sync::oneshot;

use crate::cache::disk::counters::DiskCounters;
use crate::cache::disk::eviction::FileLocation;
use crate::cache::disk::folder::DiskFolder;
use crate::cache::disk::lock::FolderLock;
use crate::cache::disk::writer::WriterCommand;

/// Threads that read.
const READERS: usize = 2;
/// Maximum number of requests that wait for a reader; one more is a miss.
const MAX_READS: usize = 256;
/// Maximum bytes of objects that wait to be written; with more, the next object is skipped.
const MAX_WRITE_BYTES: u64 = 64 << 20;

/// The tier. Dropping it writes the queue and releases the folder before it returns. After [`discard_queue`](Self::discard_queue) a drop does not
/// wait for a writer that is busy; that writer releases the folder when it has finished.
#[derive(Debug)]
pub struct DiskStore {
    folder: Arc<DiskFolder>,
    reads: mpsc::SyncSender<LookupJob>,
    /// Readers upgrade a weak reference to it when a file is to be removed.
    writes: Option<Arc<mpsc::Sender<WriterCommand>>>,
    writer: Option<thread::JoinHandle<()>>,
}

/// A lookup that a reader handles.
#[derive(Debug)]
struct LookupJob {
    key: Key,
    request_headers: HeaderMap,
    policy: Policy,
    reply: oneshot::Sender<Option<(Stored, Body)>>,
}

impl DiskStore {
    /// Opens the folder at `path`, creates it if it does not exist, and reads the heads of its files. `max_bytes` is the limit for all
    /// files together.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or read, or another process has it.
    pub fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let folder = Arc::new(DiskFolder::new(path, max_bytes));
        let lock = FolderLock::take(path)?;
        folder.scan()?;

        let (reads, to_read) = mpsc::sync_channel::<LookupJob>(MAX_READS);
        let to_read = Arc::new(Mutex::new(to_read));
        let (writes, to_write) = mpsc::channel();
        let writes = Arc::new(writes);
        for number in 0..READERS {
            let (folder, to_read) = (folder.clone(), to_read.clone());
            let writes = Arc::downgrade(&writes);
            spawn(&format!("disk-read-{number}"), move || {
                // The reader that holds the lock waits for the next job.
                while let Ok(job) = { to_read.lock().recv() } {
                    // A request that has waited too long has continued without the disk. Its lookup would only delay others.
                    if job.reply.is_closed() {
                        continue;
                    }
                    let mut broken = Vec::new();
                    let response =
                        folder.lookup(&job.key, &job.request_headers, &job.policy, &mut broken);
                    if !broken.is_empty()
                        && let Some(writes) = writes.upgrade()
                    {
                        // If the writer has ended, the next start removes the broken files.
                        folder.send(&writes, WriterCommand::Remove(broken));
                    }
                    // The request may be gone.
                    let _ = job.reply.send(response);
                }
            })?;
        }
        let writer = {
            let folder = folder.clone();
            spawn("disk-write", move || {
                for change in to_write {
                    folder.apply(change, &lock);
                }
                drop(lock);
            })?
        };
        Ok(Self {
            folder,
            reads,
            writes: Some(writes),
            writer: Some(writer),
        })
    }

    /// The newest response under `key` for a request with the fields `request_headers`. All its bytes are checked.
    pub async fn lookup(
        &self,
        key: &Key,
        request_headers: &HeaderMap,
        policy: &Policy,
    ) -> Option<(Stored, Body)> {
        let purges = {
            let index = self.folder.index();
            index.names(key)?;
            index.purges()
        };
        let (reply, response) = oneshot::channel();
        let job = LookupJob {
            key: key.clone(),
            request_headers: request_headers.clone(),
            policy: policy.clone(),
            reply,
        };
        self.reads.try_send(job).ok()?;
        let response = response.await.ok()??;
        (!self
            .folder
            .index()
            .is_purged_since(purges, key, &response.0))
        .then_some(response)
    }

    /// Queues a response to be written; skips it if too much is queued already.
    pub fn store(&self, key: &Key, stored: Arc<Stored>, body: Body) {
        let head = key.as_bytes().len() + stored.weight() + size_of::<WriterCommand>();
        let weight = body.weight() + head as u64;
        let waiting = self
            .folder
            .waiting_bytes
            .fetch_add(weight, Ordering::Relaxed);
        let purges = self.folder.index().purges();
        let change = WriterCommand::Store {
            key: key.clone(),
            stored,
            body,
            purges,
            weight,
        };
        if waiting > MAX_WRITE_BYTES || !self.send(change) {
            self.folder
                .waiting_bytes
                .fetch_sub(weight, Ordering::Relaxed);
            self.folder
                .counters
                .write_skipped
                .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets the maximum bytes of the files of each site, by name. Sites that have more are reduced soon.
    pub fn set_site_bytes(&self, quotas: BTreeMap<String, u64>) {
        self.send(WriterCommand::SetQuotas(quotas));
    }

    /// Purges objects with a key that begins with `prefix`. They are not found from now on, and their files are removed soon
    /// ([`flush_removals`](Self::flush_removals)).
    pub fn purge(&self, prefix: &[u8]) {
        let places = self.folder.index().purge_prefix(prefix);
        self.remove(places);
    }

    /// Purges objects with a tag in the same way.
    pub fn purge_tag(&self, tag: &PurgeTag) {
        let places = self.folder.index().purge_tag(tag);
        self.remove(places);
    }

    fn remove(&self, places: Vec<FileLocation>) {
        // Without files to remove, nothing waits for a disk that hangs.
        if !places.is_empty() {
            self.send(WriterCommand::Remove(places));
        }
    }

    /// Removes one response, even if it still waits to be written.
    pub fn remove_entry(&self, key: &Key, stored: &Stored) {
        let name = file_name(key, stored);
        // Checked first: an object that no longer waits is in the index by then.
        let is_any_waiting = self.folder.waiting_bytes.load(Ordering::Acquire) > 0;
        let is_indexed = self.folder.index().remove(key, &name).is_some();
        if is_indexed || is_any_waiting {
            self.send(WriterCommand::Forget(key.clone(), name));
        }
    }

    /// Waits until all earlier changes are on the disk. Gives `true` if all removals are durable, so that no crash undoes one. If not, the
    /// errors are in the log, and the next call tries again.
    pub async fn flush_removals(&self) -> bool {
        let (done, settled) = oneshot::channel();
        self.send(WriterCommand::SyncRemovals(done));
        // An error means that the writer has ended, and the process with it.
        settled.await.unwrap_or(false)
    }

    /// Skips all queued and later writes: a program that ends must not wait for a slow disk. Purged files are still
    /// removed, unless the program ends before that.
    pub fn discard_queue(&self) {
        self.folder.is_closed.store(true, Ordering::Relaxed);
    }

    /// Lends the folder to another process, after the queue is written. Later writes are skipped. Lookups succeed until the other process
    /// removes the files.
    ///
    /// # Errors
    ///
    /// The system cannot release the lock.
    pub async fn lend(&self) -> io::Result<()> {
        self.flush_removals().await;
        self.folder.is_lent.store(true, Ordering::Relaxed);
        self.send_and_wait(WriterCommand::Lend).await
    }

    /// Takes the folder back from a process that has released it.
    ///
    /// # Errors
    ///
    /// The other process has not released it; then nothing is written any more.
    pub async fn take_back(&self) -> io::Result<()> {
        self.send_and_wait(WriterCommand::TakeBack).await?;
        self.folder.is_lent.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn send_and_wait(
        &self,
        command: impl FnOnce(oneshot::Sender<io::Result<()>>) -> WriterCommand,
    ) -> io::Result<()> {
        let (done, result) = oneshot::channel();
        self.send(command(done));
        let ended = |_| Err(io::Error::other("the disk's writer has ended"));
        result.await.unwrap_or_else(ended)
    }

    /// The limit for all files together, in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.folder.max_bytes
    }

    /// The number of files, and their bytes.
    #[must_use]
    pub fn usage(&self) -> (usize, u64) {
        let index = self.folder.index();
        (index.files(), index.bytes())
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &DiskCounters {
        &self.folder.counters
    }

    fn send(&self, change: WriterCommand) -> bool {
        self.writes
            .as_ref()
            .is_some_and(|writes| self.folder.send(writes, change))
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        drop(self.writes.take());
        let is_writing = self.folder.pending_changes.load(Ordering::Acquire) > 0;
        if self.folder.is_closed.load(Ordering::Relaxed) && is_writing {
            // The disk may hang for any time. The writer keeps the lock until it has finished: a file that another process writes must
            // not get its bytes.
            return;
        }
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the writer task of the disk cache panicked");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}
