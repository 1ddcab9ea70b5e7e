//! What is written, behind what waits for an answer: in order for each URL, so many bytes of it, and the rest left out.
//!
//! ```text
//!  keep, forget ──by URL──▶ LANES queues ──▶ a task each: let go, or write, one after the other
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::object_file::{Encoder, Layout, file_name};
use spdy_cache::shared::PurgeVersion;
use spdy_cache::stored::Stored;
use tokio::sync::{mpsc, oneshot};

use crate::forgotten::DeleteSeq;
use crate::inner::{MARK_BYTES, TierState};
use crate::names::IndexKey;
use crate::purge_log::{PurgeCheck, PurgeSubject};

/// Queues, and writes at a time.
const QUEUES: usize = 4;
/// What may wait in each.
const MAX_WAITING: usize = 1024;
/// Bytes of bodies that may wait to be written; with more, the next is left out.
pub(crate) const MAX_WAITING_BYTES: u64 = 64 << 20;
/// Largest stored head, bytes: the heads of a URL are read together.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// Stored objects of one URL; with more, all are deleted.
const MAX_OBJECTS: usize = 32;

/// Where changes go in.
#[derive(Debug)]
pub(crate) struct WriteQueues {
    queues: Vec<mpsc::Sender<Change>>,
    waiting_bytes: AtomicU64,
}

/// Where they come out.
pub(crate) type WriteQueue = mpsc::Receiver<Change>;

#[derive(Debug)]
pub(crate) enum Change {
    Store(Box<StoreJob>),
    Delete(IndexKey, DeleteSeq),
    Flush(oneshot::Sender<()>),
}

/// An object to store.
#[derive(Debug)]
pub(crate) struct StoreJob {
    pub(crate) key: Key,
    pub(crate) stored: Arc<Stored>,
    pub(crate) body: Body,
    pub(crate) since: PurgeVersion,
    /// The last that was forgotten by then.
    pub(crate) seq: DeleteSeq,
}

impl WriteQueues {
    pub(crate) fn new() -> (Self, Vec<WriteQueue>) {
        let (lanes, ends) = (0..QUEUES).map(|_| mpsc::channel(MAX_WAITING)).unzip();
        let waiting_bytes = AtomicU64::new(0);
        let lanes = Self {
            queues: lanes,
            waiting_bytes,
        };
        (lanes, ends)
    }

    /// Hands it over; `false` if too much waits.
    pub(crate) fn push_store(&self, place: &IndexKey, keep: StoreJob) -> bool {
        let len = keep.body.len();
        let waiting = self.waiting_bytes.fetch_add(len, Ordering::Relaxed);
        let keep = Change::Store(Box::new(keep));
        let is_taken =
            waiting + len <= MAX_WAITING_BYTES && self.queue_for(place).try_send(keep).is_ok();
        if !is_taken {
            self.waiting_bytes.fetch_sub(len, Ordering::Relaxed);
        }
        is_taken
    }

    /// Hands it over; `false` if too much waits: it stays forgotten, and comes again.
    pub(crate) fn push_delete(&self, place: &IndexKey, turn: DeleteSeq) -> bool {
        let forget = Change::Delete(place.clone(), turn);
        self.queue_for(place).try_send(forget).is_ok()
    }

    /// Waits until what was handed over is done.
    pub(crate) async fn flushed(&self) {
        for lane in &self.queues {
            let (done, settled) = oneshot::channel();
            if lane.send(Change::Flush(done)).await.is_ok() {
                // An error is a task that was ended.
                let _ = settled.await;
            }
        }
    }

    fn queue_for(&self, place: &IndexKey) -> &mpsc::Sender<Change> {
        let last = place.index.bytes().rev().nth(1).unwrap_or_default();
        &self.queues[usize::from(last) % QUEUES]
    }
}

/// Does what comes out of a lane.
pub(crate) async fn run(inner: Arc<TierState>, mut lane: WriteQueue) {
    while let Some(change) = lane.recv().await {
        match change {
            Change::Store(keep) => {
                let counter = match inner.write(&keep).await {
                    true => &inner.counters.written,
                    false => &inner.counters.unwritten,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                let waiting = &inner.write_queues.waiting_bytes;
                waiting.fetch_sub(keep.body.len(), Ordering::Relaxed);
            }
            Change::Delete(place, turn) => {
                if !inner.delete(&place, turn).await {
                    inner.mark_unqueued(&place, turn);
                }
            }
            Change::Flush(done) => {
                // The caller may be gone.
                let _ = done.send(());
            }
        }
    }
}

impl TierState {
    /// Writes it; `false` if it is not there then.
    async fn write(&self, keep: &StoreJob) -> bool {
        let (key, stored) = (&keep.key, &keep.stored);
        let place = self.names.place(key.url());
        if !self.answers(place.part) || self.is_deleted_since(&place, keep.seq) {
            return false;
        }
        // What was forgotten before may be another variant.
        if let Some(turn) = self.turn(&place)
            && !self.delete(&place, turn).await
        {
            return false;
        }
        let subject = PurgeSubject::new(key, stored.headers(), place.part);
        if self.check_purges(keep.since, &subject) != PurgeCheck::Valid {
            return false;
        }
        let Some(file) = Encoder::whole(key, stored, &keep.body) else {
            return false;
        };
        let layout = Layout::decode(&file).expect("it was just made");
        // No longer than the file.
        let head_len = MARK_BYTES + layout.body_start() as usize;
        if head_len > MAX_HEAD_BYTES {
            return false;
        }
        let mut object = Vec::with_capacity(MARK_BYTES + file.len());
        object.extend_from_slice(&keep.since.0.to_be_bytes());
        object.extend_from_slice(&file);
        let (name, lifetime) = (file_name(key, stored), self.config.lifetime);
        if self.is_deleted_since(&place, keep.seq) {
            return false;
        }
        let written = self
            .store
            .write(&place, &name, &object[..head_len], &object, lifetime)
            .await;
        self.record_request(place.part, &written);
        self.record_write(&written);
        if written.as_ref().is_ok_and(|objects| *objects > MAX_OBJECTS) {
            self.queue_delete(&place);
            return false;
        }
        written.is_ok()
    }
}
