//! The tier on a disk: what was kept outlives a restart, and a kill, and is never served torn.
//!
//! ```text
//!  keep ──queue──▶ writer: new file ──▶ all bytes ──▶ fsync ──▶ rename        a kill leaves a .new, which the start removes
//!  find ──queue──▶ readers: head ──▶ seal ──▶ chunks, each checked            what does not check is removed: a miss
//!  purge ────────▶ index, at once; files by the writer, and their folders synced, before it says so
//!  start ────────▶ reads every head; what is torn, or of another version, is removed
//! ```
//!
//! A file is one object ([`object_file`](spdy_cache::object_file)), named by what it is for, so that a newer answer takes the other's place by
//! renaming. The index in memory has keys, tags, lengths and when each was used last; by that the disk is kept within so
//! many bytes. Nothing waits for a disk that is slow or full but who asks it: writes past a queue's room are left out, and
//! what cannot be written is told in the log, counted, and served from memory all the same.
//!
//! A folder is one process's. It may be lent to another that is to follow: the new one reads all heads while the old one answers on, from
//! what it had found.
//!
//! A soft purge is a hard one here: what is stale in memory may serve while it is fetched anew, and after a restart
//! nobody remembers that it was purged.

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
use spdy_cache::stored::Stored;
use spdy_cache::tags::PurgeTag;
use tokio::sync::oneshot;

use crate::cache::disk::counters::DiskCounters;
use crate::cache::disk::folder::DiskFolder;
use crate::cache::disk::index::FileLocation;
use crate::cache::disk::lock::FolderLock;
use crate::cache::disk::writer::WriterCommand;

/// Threads that read.
const READERS: usize = 2;
/// Requests that may wait for a reader; one more is a miss.
const MAX_READS: usize = 256;
/// Bytes of objects that may wait to be written; with more, the next is left out.
const MAX_WRITE_BYTES: u64 = 64 << 20;

/// The tier. Dropping it writes the queue and releases the folder before it returns. After [`discard_queue`](Self::discard_queue) a drop does not
/// wait for a writer that is busy; that writer releases the folder when it has finished.
#[derive(Debug)]
pub struct DiskStore {
    folder: Arc<DiskFolder>,
    reads: mpsc::SyncSender<LookupJob>,
    /// Readers borrow it for a moment, when a file is to go.
    writes: Option<Arc<mpsc::Sender<WriterCommand>>>,
    writer: Option<thread::JoinHandle<()>>,
}

/// What was asked of a reader.
#[derive(Debug)]
struct LookupJob {
    key: Key,
    asked: HeaderMap,
    policy: Policy,
    reply: oneshot::Sender<Option<(Stored, Body)>>,
}

impl DiskStore {
    /// Opens the folder at `path`, which is made if it is not there, and reads the heads of what is in it. `max_bytes` is what all
    /// files may have together.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or read, or another process has it.
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
                // The lock is held while waiting: whoever is first in it gets the next.
                while let Ok(find) = { to_read.lock().recv() } {
                    // Who has waited too long has asked elsewhere, and would only keep others waiting.
                    if find.reply.is_closed() {
                        continue;
                    }
                    let mut broken = Vec::new();
                    let found = folder.lookup(&find.key, &find.asked, &find.policy, &mut broken);
                    if !broken.is_empty()
                        && let Some(writes) = writes.upgrade()
                    {
                        // If the writer has ended, the next start removes the broken files.
                        folder.send(&writes, WriterCommand::Remove(broken));
                    }
                    // Who asked may be gone.
                    let _ = find.reply.send(found);
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

    /// The newest answer under `key` that is for a request with the fields `asked`, checked to its last byte.
    pub async fn lookup(
        &self,
        key: &Key,
        asked: &HeaderMap,
        policy: &Policy,
    ) -> Option<(Stored, Body)> {
        let purges = {
            let index = self.folder.index();
            index.names(key)?;
            index.purges()
        };
        let (reply, found) = oneshot::channel();
        let find = LookupJob {
            key: key.clone(),
            asked: asked.clone(),
            policy: policy.clone(),
            reply,
        };
        self.reads.try_send(find).ok()?;
        let found = found.await.ok()??;
        (!self.folder.index().is_purged_since(purges, key, &found.0)).then_some(found)
    }

    /// Writes an answer, sooner or later, or not if too much waits already.
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

    /// From now on the files of sites may have so many bytes, by name; those that have more give soon.
    pub fn set_site_bytes(&self, quotas: BTreeMap<String, u64>) {
        self.send(WriterCommand::SetQuotas(quotas));
    }

    /// Purges what has a key that begins with `prefix`: none of it is found from now on, and its files go soon
    /// ([`flush_removals`](Self::flush_removals)).
    pub fn purge(&self, prefix: &[u8]) {
        let places = self.folder.index().purge_prefix(prefix);
        self.remove(places);
    }

    /// Purges what has a tag, likewise.
    pub fn purge_tag(&self, tag: &PurgeTag) {
        let places = self.folder.index().purge_tag(tag);
        self.remove(places);
    }

    fn remove(&self, places: Vec<FileLocation>) {
        // While a disk hangs, nothing waits for it that has nothing to do there.
        if !places.is_empty() {
            self.send(WriterCommand::Remove(places));
        }
    }

    /// Takes one answer out, also one that waits to be written.
    pub fn remove_entry(&self, key: &Key, stored: &Stored) {
        let name = file_name(key, stored);
        // Looked at first: what no longer waits is in the index by then.
        let is_any_waiting = self.folder.waiting_bytes.load(Ordering::Acquire) > 0;
        let is_there = self.folder.index().remove(key, &name).is_some();
        if is_there || is_any_waiting {
            self.send(WriterCommand::Forget(key.clone(), name));
        }
    }

    /// Waits until everything that was handed over is on the disk, and what was purged is not; whether the latter is so, and no crash brings
    /// any of it back. If not, the system's reasons are in the log, and whoever asks again has it tried again.
    pub async fn flush_removals(&self) -> bool {
        let (done, settled) = oneshot::channel();
        self.send(WriterCommand::SyncRemovals(done));
        // An error is a writer that ended, and with it the process.
        settled.await.unwrap_or(false)
    }

    /// Leaves out what waits to be written, now and from now on: a program that ends is not to wait for a disk that is slow. What
    /// was purged is removed all the same, if the program does not end before that.
    pub fn discard_queue(&self) {
        self.folder.is_closed.store(true, Ordering::Relaxed);
    }

    /// Lets another process have the folder, after what waits now is written. What comes from now on is left out; what is there is found
    /// as before, as long as the other leaves it there.
    ///
    /// # Errors
    ///
    /// The system does not let go of the lock.
    pub async fn lend(&self) -> io::Result<()> {
        self.flush_removals().await;
        self.folder.is_lent.store(true, Ordering::Relaxed);
        self.ask_writer(WriterCommand::Lend).await
    }

    /// Has the folder back from a process that has let go of it.
    ///
    /// # Errors
    ///
    /// It has not; then nothing is written any more.
    pub async fn take_back(&self) -> io::Result<()> {
        self.ask_writer(WriterCommand::TakeBack).await?;
        self.folder.is_lent.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn ask_writer(
        &self,
        of_writer: impl FnOnce(oneshot::Sender<io::Result<()>>) -> WriterCommand,
    ) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        self.send(of_writer(done));
        let ended = |_| Err(io::Error::other("the disk's writer has ended"));
        answer.await.unwrap_or_else(ended)
    }

    /// Files, and bytes in them.
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
            tracing::error!("the disk's writer panicked");
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(work)
}
