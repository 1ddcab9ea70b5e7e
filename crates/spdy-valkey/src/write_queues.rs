//! The queues of writes after a response was sent: ordered for each URL, limited in bytes; writes that do not fit are dropped.
//!
//! ```text
//!  store, delete ──by URL──▶ queues ──▶ write_task.rs: a task for each, one write after the other
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::shared_tier::PurgeVersion;
use spdy_cache::stored::Stored;
use tokio::sync::{mpsc, oneshot};

use crate::key_names::IndexKey;
use crate::pending_deletes::DeleteSeq;

/// Number of queues, and of concurrent writes.
const QUEUES: usize = 4;
/// Limit of changes in each queue.
const MAX_WAITING: usize = 1024;
/// Limit of bodies that wait to be written, bytes; above it, the next write is dropped.
pub(crate) const MAX_WAITING_BYTES: u64 = 64 << 20;
/// The sending side of the queues.
#[derive(Debug)]
pub(crate) struct WriteQueues {
    queues: Vec<mpsc::Sender<Change>>,
    pub(crate) waiting_bytes: AtomicU64,
}

/// The receiving side of a queue.
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
    /// The number of the last delete before it.
    pub(crate) seq: DeleteSeq,
}

impl WriteQueues {
    pub(crate) fn new() -> (Self, Vec<WriteQueue>) {
        let (queues, receivers) = (0..QUEUES).map(|_| mpsc::channel(MAX_WAITING)).unzip();
        let waiting_bytes = AtomicU64::new(0);
        let writer = Self {
            queues,
            waiting_bytes,
        };
        (writer, receivers)
    }

    /// Queues a store; `false` if too much is waiting.
    pub(crate) fn push_store(&self, place: &IndexKey, job: StoreJob) -> bool {
        let len = job.body.len();
        let waiting = self.waiting_bytes.fetch_add(len, Ordering::Relaxed);
        let job = Change::Store(Box::new(job));
        let is_queued =
            waiting + len <= MAX_WAITING_BYTES && self.queue_for(place).try_send(job).is_ok();
        if !is_queued {
            self.waiting_bytes.fetch_sub(len, Ordering::Relaxed);
        }
        is_queued
    }

    /// Queues a delete; `false` if too much is waiting: it stays pending, and is queued again later.
    pub(crate) fn push_delete(&self, place: &IndexKey, seq: DeleteSeq) -> bool {
        let delete = Change::Delete(place.clone(), seq);
        self.queue_for(place).try_send(delete).is_ok()
    }

    /// Waits until all queued changes are done.
    pub(crate) async fn flushed(&self) {
        for queue in &self.queues {
            let (done, settled) = oneshot::channel();
            if queue.send(Change::Flush(done)).await.is_ok() {
                // An error means that a task was ended.
                let _ = settled.await;
            }
        }
    }

    fn queue_for(&self, place: &IndexKey) -> &mpsc::Sender<Change> {
        let last = place.index.bytes().rev().nth(1).unwrap_or_default();
        &self.queues[usize::from(last) % QUEUES]
    }
}
