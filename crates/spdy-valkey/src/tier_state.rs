//! The state that the tier's callers and its tasks share: the health of the parts, the purges, and the cluster.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::Mutex;
use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::object_file::OpenObject;
use spdy_cache::policy::Policy;
use spdy_cache::shared_tier::{PurgeListener, PurgeTarget, PurgeVersion};
use spdy_cache::stored::Stored;
use tokio::sync::{Notify, Semaphore, watch};

use crate::cluster_store::{Failure, PAGE, Store};
use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::key_names::{IndexKey, KeyNames, part_of};
use crate::node_check;
use crate::part_health::{HealthChange, PARTS, PartHealth};
use crate::pending_deletes::{DeleteSeq, PendingDeletes};
use crate::purge_entry::{Entry, PurgeEvent, Writer};
use crate::purge_log::{LogRead, PURGE_VERSION_BYTES, PurgeCheck, PurgeLog, PurgeSubject};
use crate::purge_outbox::Outbox;
use crate::write_queues::{StoreJob, WriteQueues};

/// Limit of requests that wait for the tier; one more is a miss.
pub(crate) const MAX_READS: usize = 256;
/// Interval between two log messages about rejected writes: of several full nodes, not all may reject.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(60);
/// The state that the tier and its tasks share.
pub(crate) struct TierState {
    pub(crate) config: Config,
    pub(crate) names: KeyNames,
    pub(crate) store: Store,
    pub(crate) write_queues: WriteQueues,
    pub(crate) counters: Counters,
    /// Wakes the sync task: a purge waits to be written to the log.
    pub(crate) wake: Notify,
    /// The number up to which purges are in the log.
    pub(crate) published: watch::Sender<u64>,
    /// True after the first round of the sync task.
    pub(crate) started: watch::Sender<bool>,
    writer: Writer,
    on_purge: PurgeListener,
    parts: Mutex<PartHealth>,
    log: Mutex<PurgeLog>,
    log_position: Mutex<LogPosition>,
    outbox: Mutex<Outbox>,
    pending_deletes: Mutex<PendingDeletes>,
    /// Only one task at a time reads the log, or writes to it.
    log_lock: tokio::sync::Mutex<()>,
    reads: Semaphore,
    /// When a refused write was last logged.
    refusal_logged_at: Mutex<Option<Instant>>,
}

/// The position up to which the log was delivered to `on_purge`.
#[derive(Debug)]
struct LogPosition {
    /// The position in the current log.
    until: PurgeVersion,
    /// The position before the last restart, as given by the caller, if it was not checked yet that the log has it.
    before: Option<PurgeVersion>,
}

/// The result of a lookup.
enum ReadResult {
    /// An object, with the purge version of its fetch.
    Hit(Box<(PurgeVersion, Stored, Body)>),
    Miss,
    Corrupt(String),
}

impl TierState {
    pub(crate) fn new(
        config: Config,
        write_queues: WriteQueues,
        last_version: PurgeVersion,
        listener: PurgeListener,
    ) -> Result<Self, ConfigError> {
        let names = config.names()?;
        let mut me = Writer::default();
        getrandom::fill(&mut me)?;
        Ok(Self {
            store: Store::open(&config)?,
            config,
            names,
            write_queues,
            counters: Counters::default(),
            wake: Notify::new(),
            published: watch::Sender::new(0),
            started: watch::Sender::new(false),
            writer: me,
            on_purge: listener,
            parts: Mutex::new(PartHealth::new()),
            log: Mutex::default(),
            log_position: Mutex::new(LogPosition {
                until: PurgeVersion::default(),
                before: (last_version != PurgeVersion::default()).then_some(last_version),
            }),
            outbox: Mutex::default(),
            pending_deletes: Mutex::default(),
            log_lock: tokio::sync::Mutex::new(()),
            reads: Semaphore::new(MAX_READS),
            refusal_logged_at: Mutex::default(),
        })
    }

    /// True if a part may be used.
    pub(crate) fn answers(&self, part: usize) -> bool {
        self.parts.lock().answers(part)
    }

    /// Number of usable parts. 0 until the purge log was read, since no object is valid before.
    pub(crate) fn available_parts(&self) -> usize {
        match self.purge_version() == PurgeVersion::default() {
            true => 0,
            false => self.parts.lock().available(),
        }
    }

    /// The last purge version that was read.
    pub(crate) fn purge_version(&self) -> PurgeVersion {
        self.log.lock().last()
    }

    /// The last entry of the log that was delivered, or need not be.
    pub(crate) fn log_position(&self) -> PurgeVersion {
        self.log_position.lock().until
    }

    /// The part with the purge log.
    pub(crate) fn log_part(&self) -> usize {
        part_of(&self.names.log())
    }

    /// Records the outcome of a request to a part.
    pub(crate) fn record_request<T>(&self, part: usize, outcome: &Result<T, Failure>) {
        let failure = outcome.as_ref().err();
        let was_answered = failure.is_none_or(Failure::was_answered);
        self.parts.lock().record_request(part, was_answered);
        self.log_health_change(failure);
    }

    /// Records the results of probes.
    pub(crate) fn record_probes(&self, outcomes: &[(usize, Result<(), Failure>)]) {
        let mut parts = self.parts.lock();
        for (part, outcome) in outcomes {
            let failure = outcome.as_ref().err();
            parts.record_probe(*part, failure.is_none_or(Failure::was_answered));
        }
        drop(parts);
        let mut failures = outcomes
            .iter()
            .filter_map(|(_, outcome)| outcome.as_ref().err());
        self.log_health_change(failures.next_back());
    }

    fn log_health_change(&self, failure: Option<&Failure>) {
        let (change, answering) = {
            let mut parts = self.parts.lock();
            (parts.take_change(), parts.available())
        };
        match change {
            Some(HealthChange::Lost) => {
                let reason = failure.map_or_else(|| "no response".to_owned(), Failure::to_string);
                tracing::warn!(%reason, answering, "the shared tier is unavailable, entirely or in part: continuing without it");
                let faults = node_check::node_errors(self.config.clone());
                tokio::spawn(async move {
                    for (node, reason) in faults.await {
                        tracing::warn!(node, reason, "a node of the shared tier is unreachable");
                    }
                });
            }
            // At the same level as its counterpart: a reader of one expects the other.
            Some(HealthChange::Recovered) => tracing::warn!("the shared tier is available again"),
            None => {}
        }
    }

    /// Logs that a node rejected a write, at most once an interval.
    pub(crate) fn record_write<T>(&self, outcome: &Result<T, Failure>) {
        let Err(Failure::Refused(error)) = outcome else {
            return;
        };
        let (mut last_logged, now) = (self.refusal_logged_at.lock(), Instant::now());
        if last_logged
            .is_none_or(|last_logged| now.duration_since(last_logged) >= REFUSAL_LOG_INTERVAL)
        {
            *last_logged = Some(now);
            tracing::warn!(%error, "the shared tier rejects writes, entirely or in part");
        }
    }

    /// The newest response under `key`, if it arrives in time.
    pub(crate) async fn find(
        &self,
        key: &Key,
        request_headers: &HeaderMap,
        policy: &Policy,
    ) -> Option<(Stored, Body)> {
        let place = self.names.place(key.url());
        if !self.answers(place.part) || self.is_delete_pending(&place) {
            return None;
        }
        let Ok(_seat) = self.reads.try_acquire() else {
            self.counters.unanswered.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let look = self.read_object(&place, key, request_headers, policy);
        let timeout = self.config.timeout;
        let until = tokio::time::Instant::now() + timeout;
        let late = |_| Err(Failure::Timeout(timeout));
        let found = tokio::time::timeout_at(until, look)
            .await
            .unwrap_or_else(late);
        self.record_request(place.part, &found);
        let counters = &self.counters;
        let (counter, found) = match found {
            Ok(ReadResult::Hit(found)) => {
                let (version, stored, body) = *found;
                let subject = PurgeSubject::new(key, stored.headers(), place.part);
                match self.check_purges_until(until, version, &subject).await {
                    PurgeCheck::Valid if !self.is_delete_pending(&place) => {
                        (&counters.hits, Some((stored, body)))
                    }
                    PurgeCheck::Valid | PurgeCheck::Purged => (&counters.purged, None),
                    PurgeCheck::Unknown => (&counters.unanswered, None),
                }
            }
            Ok(ReadResult::Miss) => (&counters.misses, None),
            Ok(ReadResult::Corrupt(reason)) => {
                tracing::warn!(%reason, index = place.index, "corrupt object in the shared tier");
                self.queue_delete(&place);
                (&counters.broken, None)
            }
            Err(failure) => {
                tracing::debug!(%failure, "request to the shared tier failed");
                (&counters.unanswered, None)
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    async fn read_object(
        &self,
        place: &IndexKey,
        key: &Key,
        request_headers: &HeaderMap,
        policy: &Policy,
    ) -> Result<ReadResult, Failure> {
        let index = self.store.index(place).await?;
        let mut newest = None;
        for (name, bytes) in &index {
            let object = match decode_object(policy, bytes) {
                Ok((_, object)) => object,
                Err(reason) => return Ok(ReadResult::Corrupt(reason)),
            };
            // Other requests for the same URL may have other selecting headers.
            if object.key == *key && object.stored.matches(request_headers) {
                newest = newest.max(Some((object.stored.times().received, name)));
            }
        }
        let Some((_, name)) = newest else {
            return Ok(ReadResult::Miss);
        };
        let Some(bytes) = self.store.object(&place.object(name)).await? else {
            return Ok(ReadResult::Miss);
        };
        let whole = decode_object(policy, &bytes).and_then(|(version, object)| {
            let file = &bytes[PURGE_VERSION_BYTES..];
            match object.layout.file_len() == file.len() as u64 {
                true => Ok((
                    version,
                    object.body(file).map_err(|error| error.to_string())?,
                    object,
                )),
                false => Err(format!(
                    "found {} bytes, expected {}",
                    file.len(),
                    object.layout.file_len()
                )),
            }
        });
        let (version, body, object) = match whole {
            Ok(whole) => whole,
            Err(reason) => return Ok(ReadResult::Corrupt(reason)),
        };
        if object.key != *key || !object.stored.matches(request_headers) {
            return Ok(ReadResult::Corrupt("another object".to_owned()));
        }
        Ok(ReadResult::Hit(Box::new((version, object.stored, body))))
    }

    /// Checks an object that was stored at `version` against the purges read so far.
    pub(crate) fn check_purges(
        &self,
        version: PurgeVersion,
        subject: &PurgeSubject<'_>,
    ) -> PurgeCheck {
        match self.outbox.lock().matches(subject) {
            true => PurgeCheck::Purged,
            false => self.log.lock().check(version, subject),
        }
    }

    /// The same, after reading new entries of the log, if they are needed and arrive before `until`. The log may be in another part
    /// than the object, and that part must answer.
    async fn check_purges_until(
        &self,
        until: tokio::time::Instant,
        version: PurgeVersion,
        subject: &PurgeSubject<'_>,
    ) -> PurgeCheck {
        let first = self.check_purges(version, subject);
        let part = self.log_part();
        if first != PurgeCheck::Unknown || !self.answers(part) {
            return first;
        }
        // Its writer had read a purge that this cache has not: it may affect other objects.
        let Ok(guard) = tokio::time::timeout_at(until, self.log_lock.lock()).await else {
            return first;
        };
        // Another task may have read the log in the meantime.
        if self.check_purges(version, subject) == PurgeCheck::Unknown {
            let late = |_| Err(Failure::Timeout(self.config.timeout));
            let read = tokio::time::timeout_at(until, self.read_log()).await;
            let read = read.unwrap_or_else(late);
            self.record_request(part, &read);
            if read.is_err() {
                return PurgeCheck::Unknown;
            }
        }
        drop(guard);
        match self.check_purges(version, subject) {
            // The log of its writer no longer exists.
            PurgeCheck::Unknown => PurgeCheck::Purged,
            judgement => judgement,
        }
    }

    /// Queues a purge for the sync task.
    pub(crate) fn purge(&self, what: PurgeEvent) {
        self.outbox.lock().push(what);
        self.wake.notify_one();
    }

    /// The number of the last purge.
    pub(crate) fn purges(&self) -> u64 {
        self.outbox.lock().count()
    }

    /// Queues the job that `build_job` creates from the number of the last delete; `false` if the queue is full.
    pub(crate) fn queue_store(
        &self,
        place: &IndexKey,
        build_job: impl FnOnce(DeleteSeq) -> StoreJob,
    ) -> bool {
        // The lock is held, so that numbers are in the order of the queue.
        let deletes = self.pending_deletes.lock();
        self.write_queues
            .push_store(place, build_job(deletes.last()))
    }

    /// Marks everything stored at `place` as deleted, from now on.
    pub(crate) fn queue_delete(&self, place: &IndexKey) {
        let mut deletes = self.pending_deletes.lock();
        let has_room = deletes.add(place);
        let seq = deletes.last();
        let is_queued = self.write_queues.push_delete(place, seq);
        deletes.set_queued(place, seq, is_queued);
        if !has_room {
            // The reset must be published before the objects of the dropped deletes count as valid again.
            let part = u8::try_from(place.part).expect("there are fewer than 256 parts");
            self.outbox.lock().push_part_reset(part);
            self.wake.notify_one();
        }
    }

    fn is_delete_pending(&self, place: &IndexKey) -> bool {
        self.pending_deletes.lock().has(place)
    }

    /// The number of the pending delete of `place`, if there is one.
    pub(crate) fn delete_seq(&self, place: &IndexKey) -> Option<DeleteSeq> {
        self.pending_deletes.lock().seq(place)
    }

    /// True if it was deleted after the delete `seq`.
    pub(crate) fn is_deleted_since(&self, place: &IndexKey, seq: DeleteSeq) -> bool {
        self.delete_seq(place)
            .is_some_and(|deleted_at| deleted_at > seq)
    }

    /// To be called when the delete `seq` failed, and is no longer in a queue.
    pub(crate) fn mark_unqueued(&self, place: &IndexKey, seq: DeleteSeq) {
        self.pending_deletes.lock().set_queued(place, seq, false);
    }

    /// Runs the delete `seq`; `false` if that is not possible now.
    pub(crate) async fn delete(&self, place: &IndexKey, seq: DeleteSeq) -> bool {
        if self.delete_seq(place).is_none() {
            return true;
        }
        if !self.answers(place.part) {
            return false;
        }
        let outcome = self.store.delete(place).await;
        self.record_request(place.part, &outcome);
        self.record_write(&outcome);
        if outcome.is_ok() {
            self.pending_deletes.lock().remove(place, seq);
        }
        outcome.is_ok()
    }

    /// Queues failed deletes again, for the parts that answer.
    pub(crate) fn requeue_deletes(&self) {
        for part in (0..PARTS).filter(|part| self.answers(*part)) {
            let mut deletes = self.pending_deletes.lock();
            for (place, seq) in deletes.unqueued(part) {
                let is_queued = self.write_queues.push_delete(&place, seq);
                deletes.set_queued(&place, seq, is_queued);
            }
        }
    }

    /// Writes the waiting purges to the log, and reads those of other caches.
    pub(crate) async fn sync_log(&self) -> Result<(), Failure> {
        let _guard = self.log_lock.lock().await;
        self.read_log().await?;
        while let Some(what) = { self.outbox.lock().next() } {
            let entry = Entry {
                by: self.writer,
                what,
            };
            let outcome = self.store.append_log(&self.names.log(), &entry).await;
            self.record_write(&outcome);
            outcome?;
            // The purge stays in the outbox until it is in the log: objects that it matches are invalid until then.
            self.read_log().await?;
            let published = self.outbox.lock().mark_sent(&entry.what, Instant::now());
            if let Some(published) = published {
                self.published.send_replace(published);
            }
        }
        Ok(())
    }

    /// Reads the log to its end. The caller holds `log_lock`.
    async fn read_log(&self) -> Result<(), Failure> {
        let name = self.names.log();
        if let Some(before) = { self.log_position.lock().before } {
            let page = self.store.log(&name, before).await?;
            let has_it = page.first().is_some_and(|(version, _)| *version == before);
            if !has_it {
                // Later entries are in a lost log, or in the trimmed part of this one.
                (self.on_purge)(&PurgeTarget::all(), true);
            }
            let mut position = self.log_position.lock();
            position.before = None;
            if has_it {
                position.until = before;
            }
        }
        let mut has_begun = false;
        loop {
            let last = self.purge_version();
            let page = self.store.log(&name, last).await?;
            let read = { self.log.lock().read(&page) };
            match read {
                LogRead::Continues(entries) => self.apply_entries(entries),
                LogRead::Restart => continue,
                LogRead::Missing if has_begun => return Err(Failure::LogNotStored),
                LogRead::Missing => {
                    has_begun = true;
                    let (by, what) = (self.writer, PurgeEvent::Begin);
                    self.store.append_log(&name, &Entry { by, what }).await?;
                    continue;
                }
                LogRead::Replaced(entries) => {
                    tracing::warn!(
                        "the shared tier lost its purge log: publishing recent purges again"
                    );
                    self.outbox.lock().resend(Instant::now());
                    self.wake.notify_one();
                    self.log_position.lock().until = PurgeVersion::default();
                    self.apply_entries(entries);
                }
                LogRead::Gap(entries) => {
                    if entries
                        .first()
                        .is_none_or(|(first, _)| *first > self.log_position())
                    {
                        // The missed entries may have purged anything.
                        (self.on_purge)(&PurgeTarget::all(), true);
                    }
                    self.apply_entries(entries);
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Delivers the new entries of other writers.
    fn apply_entries(&self, entries: &[(PurgeVersion, Entry)]) {
        let until = self.log_position();
        for (version, entry) in entries {
            if let (PurgeEvent::Purge { target, soft }, true) =
                (&entry.what, entry.by != self.writer)
                && *version > until
            {
                (self.on_purge)(target, *soft);
            }
        }
        if let Some((last, _)) = entries.last() {
            let mut position = self.log_position.lock();
            position.until = position.until.max(*last);
        }
    }
}

/// Decodes the purge version and the head in front of a stored object.
fn decode_object(policy: &Policy, bytes: &Bytes) -> Result<(PurgeVersion, OpenObject), String> {
    let (version, file) = bytes
        .split_first_chunk::<PURGE_VERSION_BYTES>()
        .ok_or("too short")?;
    let object = OpenObject::decode(policy, file).map_err(|error| error.to_string())?;
    Ok((PurgeVersion(u128::from_be_bytes(*version)), object))
}
