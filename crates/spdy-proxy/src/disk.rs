//! The tier on a disk: what was kept outlives a restart, and a kill, and is never served torn.
//!
//! ```text
//!  keep ──queue──▶ writer: new file ──▶ all bytes ──▶ fsync ──▶ rename        a kill leaves a .new, which the start removes
//!  find ──queue──▶ readers: head ──▶ seal ──▶ chunks, each checked            what does not check is removed: a miss
//!  purge ────────▶ index, at once; files by the writer, before it says so
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
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use http::HeaderMap;
use spdy_cache::body::{Body, Gathering};
use spdy_cache::key::Key;
use spdy_cache::object_file::{Encoder, Layout, OpenObject, PREFIX_BYTES, file_name};
use spdy_cache::policy::Policy;
use spdy_cache::stored::Stored;
use spdy_cache::tags::Tag;
use tokio::sync::oneshot;

use crate::disk_index::Index;

/// Threads that read.
const READERS: usize = 2;
/// Requests that may wait for a reader; one more is a miss.
const MAX_READS: usize = 256;
/// Bytes of bodies that may wait to be written; with more, the next is left out.
const MAX_WRITE_BYTES: u64 = 64 << 20;

/// What happened so far.
#[derive(Debug, Default)]
pub struct DiskCounters {
    /// Objects found and whole.
    pub hits: AtomicU64,
    /// Objects written.
    pub written: AtomicU64,
    /// Objects that were not written: the queue or the disk was full, or it failed.
    pub unwritten: AtomicU64,
    /// Files removed because they were not what was written.
    pub broken: AtomicU64,
    /// Files removed for want of room.
    pub evicted: AtomicU64,
}

/// The tier. Dropping it writes what waits, unless that was to be [left out](Self::leave_out).
#[derive(Debug)]
pub struct Disk {
    shared: Arc<Shared>,
    reads: mpsc::SyncSender<Find>,
    writes: Option<mpsc::Sender<Change>>,
    writer: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    max_bytes: u64,
    /// What single sites may have of it.
    site_bytes: Mutex<BTreeMap<String, u64>>,
    index: Mutex<Index>,
    waiting_bytes: AtomicU64,
    /// The last object was not written, since the disk did not take it: said once, until one is again.
    is_failing: AtomicBool,
    /// Nothing is written any more.
    is_over: AtomicBool,
    /// Nothing is written for now: another process has the folder.
    is_lent: AtomicBool,
    counters: DiskCounters,
}

/// What was asked of a reader.
#[derive(Debug)]
struct Find {
    key: Key,
    asked: HeaderMap,
    policy: Policy,
    reply: oneshot::Sender<Option<(Stored, Body)>>,
}

/// What was asked of the writer.
#[derive(Debug)]
enum Change {
    Keep {
        key: Key,
        stored: Arc<Stored>,
        body: Body,
        purges: u64,
    },
    /// Files that have left the index.
    Remove(Vec<String>),
    /// One that may have come into the index since.
    Forget(Key, String),
    /// What sites may have.
    Divide(BTreeMap<String, u64>),
    Settle(oneshot::Sender<()>),
    /// Lets another process have the folder.
    Lend(oneshot::Sender<io::Result<()>>),
    /// Wants it back.
    TakeBack(oneshot::Sender<io::Result<()>>),
}

impl Disk {
    /// Opens `folder`, which is made if it is not there, and reads the heads of what is in it. `max_bytes` is what all
    /// files may have together.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or read, or another process has it.
    pub fn open(folder: &Path, max_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let shared = Arc::new(Shared {
            folder: folder.to_owned(),
            max_bytes,
            site_bytes: Mutex::default(),
            index: Mutex::default(),
            waiting_bytes: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_lent: AtomicBool::new(false),
            counters: DiskCounters::default(),
        });
        let lock = File::create(folder.join("lock"))?;
        take(&lock)?;
        shared.scan()?;

        let (reads, to_read) = mpsc::sync_channel::<Find>(MAX_READS);
        let to_read = Arc::new(Mutex::new(to_read));
        for number in 0..READERS {
            let (shared, to_read) = (shared.clone(), to_read.clone());
            spawn(&format!("disk-read-{number}"), move || {
                // The lock is held while waiting: whoever is first in it gets the next.
                while let Ok(find) = { locked(&to_read).recv() } {
                    let found = shared.find(&find);
                    // Who asked may be gone.
                    let _ = find.reply.send(found);
                }
            })?;
        }
        let (writes, to_write) = mpsc::channel();
        let writer = {
            let shared = shared.clone();
            spawn("disk-write", move || {
                for change in to_write {
                    shared.change(change, &lock);
                }
                drop(lock);
            })?
        };
        Ok(Self {
            shared,
            reads,
            writes: Some(writes),
            writer: Some(writer),
        })
    }

    /// The newest answer under `key` that is for a request with the fields `asked`, checked to its last byte.
    pub async fn find(
        &self,
        key: &Key,
        asked: &HeaderMap,
        policy: &Policy,
    ) -> Option<(Stored, Body)> {
        let purges = {
            let index = self.shared.index();
            index.names(key)?;
            index.purges()
        };
        let (reply, found) = oneshot::channel();
        let find = Find {
            key: key.clone(),
            asked: asked.clone(),
            policy: policy.clone(),
            reply,
        };
        self.reads.try_send(find).ok()?;
        let found = found.await.ok()??;
        (!self.shared.index().is_purged_since(purges, key, &found.0)).then_some(found)
    }

    /// Writes an answer, sooner or later, or not if too much waits already.
    pub fn keep(&self, key: &Key, stored: Arc<Stored>, body: Body) {
        let len = body.len();
        let waiting = self.shared.waiting_bytes.fetch_add(len, Ordering::Relaxed);
        let purges = self.shared.index().purges();
        let change = Change::Keep {
            key: key.clone(),
            stored,
            body,
            purges,
        };
        if waiting > MAX_WRITE_BYTES || !self.send(change) {
            self.shared.waiting_bytes.fetch_sub(len, Ordering::Relaxed);
            self.shared
                .counters
                .unwritten
                .fetch_add(1, Ordering::Relaxed);
        }
    }

    /// From now on the files of sites may have so many bytes, by name; those that have more give soon.
    pub fn set_site_bytes(&self, quotas: BTreeMap<String, u64>) {
        self.send(Change::Divide(quotas));
    }

    /// Purges what has a key that begins with `prefix`: none of it is found from now on, and its files go soon
    /// ([`settled`](Self::settled)).
    pub fn purge(&self, prefix: &[u8]) {
        let names = self.shared.index().purge_prefix(prefix);
        self.send(Change::Remove(names));
    }

    /// Purges what has a tag, likewise.
    pub fn purge_tag(&self, tag: &Tag) {
        let names = self.shared.index().purge_tag(tag);
        self.send(Change::Remove(names));
    }

    /// Takes one answer out, also one that waits to be written.
    pub fn forget(&self, key: &Key, stored: &Stored) {
        let name = file_name(key, stored);
        self.shared.index().remove(key, &name);
        self.send(Change::Forget(key.clone(), name));
    }

    /// Waits until everything that was handed over is on the disk, and what was purged is not.
    pub async fn settled(&self) {
        let (done, settled) = oneshot::channel();
        self.send(Change::Settle(done));
        // An error is a writer that ended, and with it the process.
        let _ = settled.await;
    }

    /// Leaves out what waits to be written, now and from now on: a program that ends is not to wait for a disk that is slow. What
    /// was purged is removed all the same, if the program does not end before that.
    pub fn leave_out(&self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }

    /// Lets another process have the folder, after what waits now is written. What comes from now on is left out; what is there is found
    /// as before, as long as the other leaves it there.
    ///
    /// # Errors
    ///
    /// The system does not let go of the lock.
    pub async fn lend(&self) -> io::Result<()> {
        self.settled().await;
        self.shared.is_lent.store(true, Ordering::Relaxed);
        self.ask(Change::Lend).await
    }

    /// Has the folder back from a process that has let go of it.
    ///
    /// # Errors
    ///
    /// It has not; then nothing is written any more.
    pub async fn take_back(&self) -> io::Result<()> {
        self.ask(Change::TakeBack).await?;
        self.shared.is_lent.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn ask(
        &self,
        of_writer: impl FnOnce(oneshot::Sender<io::Result<()>>) -> Change,
    ) -> io::Result<()> {
        let (done, answer) = oneshot::channel();
        self.send(of_writer(done));
        let ended = |_| Err(io::Error::other("the disk's writer has ended"));
        answer.await.unwrap_or_else(ended)
    }

    /// Files, and bytes in them.
    #[must_use]
    pub fn held(&self) -> (usize, u64) {
        let index = self.shared.index();
        (index.files(), index.bytes())
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &DiskCounters {
        &self.shared.counters
    }

    fn send(&self, change: Change) -> bool {
        self.writes
            .as_ref()
            .is_some_and(|writes| writes.send(change).is_ok())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(self.writes.take());
        if self.shared.is_over.load(Ordering::Relaxed) {
            // The writer may be in the middle of a file for as long as the disk likes: that is not one before it is whole.
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

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        locked(&self.index)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(&name[..2]).join(name)
    }

    /// Reads every head, and removes what is not whole.
    fn scan(&self) -> io::Result<()> {
        let policy = Policy::site();
        let mut found = Vec::new();
        for folder in fs::read_dir(&self.folder)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() || !is_hexadecimal(&folder.file_name(), 2) {
                continue;
            }
            for file in fs::read_dir(folder.path())? {
                let path = file?.path();
                if !may_be_ours(&path) {
                    if is_gone(&path) {
                        continue;
                    }
                    tracing::warn!(path = %path.display(), "not the cache's, and left alone");
                    continue;
                }
                match whole(&path, &policy) {
                    Ok(named) => found.push(named),
                    // Who lent the folder goes on removing what is purged.
                    Err(_) if is_gone(&path) => {}
                    Err(why) => {
                        tracing::info!(path = %path.display(), %why, "removed from the cache's folder");
                        self.counters.broken.fetch_add(1, Ordering::Relaxed);
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
        // Which was used last is not known; which came last is.
        found.sort_by_key(|(_, object)| object.stored.times().received);
        let mut index = self.index();
        for (name, object) in found {
            index.add(&object.key, &object.stored, name, object.layout.file_len());
        }
        let evicted = index.make_room(self.max_bytes);
        drop(index);
        self.evict(&evicted);
        Ok(())
    }

    fn find(&self, find: &Find) -> Option<(Stored, Body)> {
        let names = self.index().names(&find.key)?;
        let mut heads = Vec::new();
        for name in names {
            match open(&self.path(&name), &find.policy) {
                Ok((object, file)) if object.key == find.key => heads.push((name, object, file)),
                Ok(_) => self.broken(&find.key, &name, &"another key"),
                Err(error) => self.broken(&find.key, &name, &error),
            }
        }
        heads.retain(|(_, object, _)| object.stored.is_for(&find.asked));
        let (name, object, file) = heads
            .into_iter()
            .max_by_key(|(_, object, _)| object.stored.times().received)?;
        match read_body(&object, file) {
            Ok(body) => {
                self.index().used(&find.key, &name);
                self.counters.hits.fetch_add(1, Ordering::Relaxed);
                Some((object.stored, body))
            }
            Err(error) => {
                self.broken(&find.key, &name, &error);
                None
            }
        }
    }

    /// A file that is not what was written is nobody's answer.
    fn broken(&self, key: &Key, name: &str, why: &dyn std::fmt::Display) {
        // Purged or replaced in the meantime, it is no fault.
        if self.index().remove(key, name).is_none() {
            return;
        }
        tracing::warn!(name, %why, "a file of the cache is broken");
        self.counters.broken.fetch_add(1, Ordering::Relaxed);
        self.unlink(name);
    }

    fn change(&self, change: Change, lock: &File) {
        match change {
            Change::Keep {
                key,
                stored,
                body,
                purges,
            } => {
                let left_out = [
                    (&self.is_over, "left out: the program ends"),
                    (&self.is_lent, "left out: another process has the folder"),
                ]
                .into_iter()
                .find(|(is_so, _)| is_so.load(Ordering::Relaxed));
                let written = match left_out {
                    None => self.write(&key, &stored, &body, purges),
                    Some((_, why)) => Err(io::Error::other(why)),
                };
                self.waiting_bytes.fetch_sub(body.len(), Ordering::Relaxed);
                let counter = match &written {
                    Ok(()) => &self.counters.written,
                    Err(_) => &self.counters.unwritten,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                self.tell(written);
            }
            Change::Remove(names) => names.iter().for_each(|name| self.unlink(name)),
            Change::Forget(key, name) => {
                self.index().remove(&key, &name);
                self.unlink(&name);
            }
            // Here, so that no file of an evicted name is written in between.
            Change::Divide(quotas) => {
                let mut evicted = Vec::new();
                for (site, quota) in &quotas {
                    evicted.extend(self.index().make_room_of(site.as_bytes(), *quota));
                }
                self.evict(&evicted);
                *locked(&self.site_bytes) = quotas;
            }
            Change::Settle(done) => {
                // Who asked may be gone.
                let _ = done.send(());
            }
            Change::Lend(done) => {
                let _ = done.send(lock.unlock());
            }
            Change::TakeBack(done) => {
                let _ = done.send(take(lock));
            }
        }
    }

    /// Says that the disk takes nothing any more, or takes something again: not of each object, of which there may be thousands a
    /// second.
    fn tell(&self, written: io::Result<()>) {
        match written {
            Ok(()) if self.is_failing.swap(false, Ordering::Relaxed) => {
                tracing::warn!(folder = %self.folder.display(), "the disk of the cache takes objects again");
            }
            Ok(()) => {}
            // Ours: of this object alone.
            Err(error) if error.kind() == io::ErrorKind::Other => {
                tracing::debug!(%error, "not kept on the disk");
            }
            Err(error) if !self.is_failing.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, folder = %self.folder.display(), "the disk of the cache takes no more; memory goes on");
            }
            Err(error) => tracing::debug!(%error, "not kept on the disk"),
        }
    }

    fn write(&self, key: &Key, stored: &Stored, body: &Body, purges: u64) -> io::Result<()> {
        let (encoder, start) = Encoder::new(key, stored, body.len())
            .ok_or_else(|| io::Error::other("its head is too long"))?;
        let name = file_name(key, stored);
        let path = self.path(&name);
        let len = Layout::decode(&start).map_err(io::Error::other)?.file_len();
        let quota = self.quota(key);
        if len > quota {
            return Err(io::Error::other(
                "it is larger than the tier, or its site's part",
            ));
        }
        let evicted = {
            let mut index = self.index();
            let mut evicted = index.make_room_of(key.site(), quota - len);
            evicted.extend(index.make_room(self.max_bytes - len));
            evicted
        };
        self.evict(&evicted);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let new = path.with_extension("new");
        let outcome = write_new(&new, &start, encoder, body).and_then(|()| {
            let mut index = self.index();
            // What was purged since it was handed over does not come back.
            if index.is_purged_since(purges, key, stored) {
                return Err(io::Error::other("purged before it was written"));
            }
            fs::rename(&new, &path)?;
            index.add(key, stored, name, len);
            Ok(())
        });
        if outcome.is_err() {
            // What is left of it would be removed by the next start.
            let _ = fs::remove_file(&new);
        }
        outcome
    }

    /// What the site of `key` may have.
    fn quota(&self, key: &Key) -> u64 {
        let quotas = locked(&self.site_bytes);
        let site = std::str::from_utf8(key.site()).ok();
        let quota = site.and_then(|site| quotas.get(site).copied());
        quota.unwrap_or(self.max_bytes).min(self.max_bytes)
    }

    fn evict(&self, names: &[String]) {
        self.counters
            .evicted
            .fetch_add(names.len() as u64, Ordering::Relaxed);
        names.iter().for_each(|name| self.unlink(name));
    }

    fn unlink(&self, name: &str) {
        if let Err(error) = fs::remove_file(self.path(name))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(name, %error, "a file of the cache cannot be removed");
        }
    }
}

/// Takes the `lock` of a folder.
fn take(lock: &File) -> io::Result<()> {
    lock.try_lock().map_err(|error| match error {
        fs::TryLockError::WouldBlock => io::Error::other("another process has it"),
        fs::TryLockError::Error(error) => error,
    })
}

/// Whether a file is named as this tier names them: whoever names the wrong folder loses nothing.
fn may_be_ours(path: &Path) -> bool {
    let is_new = path.extension().is_none_or(|extension| extension == "new");
    let stem = path.file_stem();
    is_new && path.is_file() && stem.is_some_and(|stem| is_hexadecimal(stem, 64))
}

/// Whether somebody removed it since it was listed.
fn is_gone(path: &Path) -> bool {
    let found = fs::symlink_metadata(path);
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn is_hexadecimal(name: &OsStr, len: usize) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == len
        && name
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The head of a file that is whole as far as its head tells, with the file's name.
fn whole(path: &Path, policy: &Policy) -> io::Result<(String, OpenObject)> {
    let (object, _) = open(path, policy)?;
    let name = file_name(&object.key, &object.stored);
    match path.file_name().is_some_and(|is| *is == *name) {
        true => Ok((name, object)),
        false => Err(io::Error::other("another object's name")),
    }
}

fn write_new(path: &Path, start: &[u8], mut encoder: Encoder, body: &Body) -> io::Result<()> {
    let mut file = io::BufWriter::new(File::create(path)?);
    file.write_all(start)?;
    for chunk in body.chunks() {
        file.write_all(chunk)?;
        file.write_all(&encoder.chunk_digest(chunk))?;
    }
    file.into_inner()?.sync_data()
}

/// Reads a file's head; the file then stands at its body.
fn open(path: &Path, policy: &Policy) -> io::Result<(OpenObject, File)> {
    let mut file = File::open(path)?;
    let mut start = vec![0; PREFIX_BYTES];
    file.read_exact(&mut start)?;
    let layout = Layout::decode(&start).map_err(io::Error::other)?;
    let (want, got) = (layout.file_len(), file.metadata()?.len());
    if want != got {
        return Err(io::Error::other(format!("{got} bytes, want {want}")));
    }
    // No longer than a head may be: the layout has seen to that.
    start.resize(
        usize::try_from(layout.body_start()).map_err(io::Error::other)?,
        0,
    );
    file.read_exact(&mut start[PREFIX_BYTES..])?;
    let object = OpenObject::decode(policy, &start).map_err(io::Error::other)?;
    Ok((object, file))
}

fn read_body(object: &OpenObject, mut file: File) -> io::Result<Body> {
    let mut body = Gathering::new(object.layout.body_len());
    let mut buffer = Vec::new();
    for index in 0..object.layout.chunks() {
        let range = object.layout.chunk(index);
        buffer.resize(
            usize::try_from(range.end - range.start).map_err(io::Error::other)?,
            0,
        );
        file.read_exact(&mut buffer)?;
        let chunk = object
            .check_chunk(index, &buffer)
            .map_err(io::Error::other)?;
        body.push(chunk).map_err(io::Error::other)?;
    }
    Ok(body.finish())
}
