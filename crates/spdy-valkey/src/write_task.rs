//! Executes the queued writes, with one task per queue: stores and deletes objects.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spdy_cache::object_file::{Encoder, Layout, file_name};

use crate::purge_log::{PURGE_VERSION_BYTES, PurgeCheck, PurgeSubject};
use crate::tier_state::TierState;
use crate::write_queues::{Change, StoreJob, WriteQueue};

/// Maximum size of a stored head, bytes: the heads of a URL are read together.
const MAX_HEAD_BYTES: usize = 32 << 10;
/// Maximum number of stored objects of a URL; above it, all are deleted.
const MAX_OBJECTS: usize = 32;

/// Executes the changes of one queue in order.
pub(crate) async fn run(inner: Arc<TierState>, mut queue: WriteQueue) {
    while let Some(change) = queue.recv().await {
        match change {
            Change::Store(job) => {
                let counter = match inner.write(&job).await {
                    true => &inner.counters.written,
                    false => &inner.counters.unwritten,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                let waiting = &inner.write_queues.waiting_bytes;
                waiting.fetch_sub(job.body.len(), Ordering::Relaxed);
            }
            Change::Delete(place, seq) => {
                if !inner.delete(&place, seq).await {
                    inner.mark_unqueued(&place, seq);
                }
            }
            Change::Flush(done) => {
                // The caller may have been dropped.
                let _ = done.send(());
            }
        }
    }
}

impl TierState {
    /// Writes an object; `false` if it was not stored.
    async fn write(&self, job: &StoreJob) -> bool {
        let (key, stored) = (&job.key, &job.stored);
        let place = self.names.place(key.url());
        if !self.answers(place.part) || self.is_deleted_since(&place, job.seq) {
            return false;
        }
        // An earlier delete may be for another variant.
        if let Some(seq) = self.delete_seq(&place)
            && !self.delete(&place, seq).await
        {
            return false;
        }
        let subject = PurgeSubject::new(key, stored.headers(), place.part);
        if self.check_purges(job.since, &subject) != PurgeCheck::Valid {
            return false;
        }
        let Some(file) = Encoder::whole(key, stored, &job.body) else {
            return false;
        };
        let layout = Layout::decode(&file).expect("the file was encoded above");
        // At most the length of the file.
        let head_len = PURGE_VERSION_BYTES + layout.body_start() as usize;
        if head_len > MAX_HEAD_BYTES {
            return false;
        }
        let mut object = Vec::with_capacity(PURGE_VERSION_BYTES + file.len());
        object.extend_from_slice(&job.since.0.to_be_bytes());
        object.extend_from_slice(&file);
        let (name, lifetime) = (file_name(key, stored), self.config.lifetime);
        if self.is_deleted_since(&place, job.seq) {
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
