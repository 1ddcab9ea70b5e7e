//! The state of a session under its lock: the session machine, the entries of its streams, and the waiting tasks.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::task::Waker;
use std::time::Duration;

use http::StatusCode;
use slab::Slab;
use spdy_clock::Instant;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_session::config::Role;
use spdy_session::error::OpenError;
use spdy_session::session::{Session as Machine, StreamOptions};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::metrics::{Exchanges, Meter};
use crate::session::entry::Entry;
use crate::session::push_limits::UnclaimedPushes;

/// Hashes stream IDs: they increase by two, so a multiplication distributes them well enough. A peer that chooses IDs that collide
/// gains nothing: it may have at most `max_concurrent_streams` of them.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(value)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Entries whose memory a session without streams keeps. A session with more entries had a burst, and may now be idle for a long time.
const MAX_IDLE_ENTRIES: usize = 16;

/// A stream that cannot be opened yet.
pub(crate) struct QueuedOpen {
    pub(crate) key: usize,
    pub(crate) headers: HeaderBlock,
    pub(crate) open: StreamOptions,
}

/// Everything under the lock.
pub(crate) struct State {
    pub(crate) machine: Machine,
    /// Streams that have a handle, or were not accepted yet. The key is stable while the entry exists.
    pub(crate) entries: Slab<Entry>,
    /// Keys of the streams that exist in the machine.
    pub(crate) by_id: HashMap<StreamId, usize, BuildHasherDefault<IdHasher>>,
    /// Streams to open once the peer allows it, by priority and then by order of the calls.
    pub(crate) waiting: BTreeMap<(Priority, u64), QueuedOpen>,
    pub(crate) next_ticket: u64,
    /// Streams of the peer that were not accepted yet: at most `max_concurrent_streams`.
    pub(crate) incoming: VecDeque<usize>,
    pub(crate) incoming_waker: Option<Waker>,
    pub(crate) accepts_streams: bool,
    /// True if the peer opened a stream with a lower priority than the highest: it uses priorities.
    pub(crate) peer_uses_priorities: bool,
    /// Unclaimed pushes.
    pub(crate) claims: Option<UnclaimedPushes>,
    /// The driver's waker while it sleeps.
    pub(crate) driver: Option<Waker>,
    /// Number of a client's session handles, including that of its [`IncomingStreams`](crate::client::IncomingStreams).
    pub(crate) owners: usize,
    /// True if the session shuts down when the last stream has ended.
    pub(crate) draining: bool,
    /// True if we may open no new streams: GOAWAY was sent or received.
    pub(crate) closing: bool,
    /// The result of the session, once it has ended.
    pub(crate) ended: Option<Result<(), Error>>,
    /// Wakers of the tasks that wait for the end. A task that stops waiting removes its waker.
    pub(crate) ended_wakers: Slab<Waker>,
    pub(crate) io_error: Option<Error>,
    pub(crate) pings: Vec<oneshot::Sender<Duration>>,
    /// Counts of requests and responses so far.
    pub(crate) exchanges: Exchanges,
    pub(crate) meter: Option<Meter>,
}

impl State {
    /// Opens a stream for `entry` and returns its key, or queues it if `may_wait`.
    pub(crate) fn open(
        &mut self,
        mut entry: Entry,
        headers: HeaderBlock,
        open: StreamOptions,
        may_wait: bool,
    ) -> Result<usize, Error> {
        if self.ended.is_some() || self.draining || self.closing {
            return Err(self.refusal());
        }
        entry.fin_sent = open.fin;
        entry.fin_received = open.unidirectional;
        // A more urgent or earlier stream is queued: the free slot is not ours.
        let overtaken = self
            .waiting
            .first_key_value()
            .is_some_and(|((priority, _), _)| *priority <= open.priority);
        let opened = if overtaken && may_wait {
            None
        } else {
            Some(self.machine.open(&headers, open))
        };
        match opened {
            Some(Ok(id)) => {
                entry.id = id;
                let key = self.insert(entry);
                self.by_id.insert(id, key);
                Ok(key)
            }
            Some(Err(OpenError::Full { .. })) | None if may_wait => {
                let key = self.insert(entry);
                self.waiting.insert(
                    (open.priority, self.next_ticket),
                    QueuedOpen { key, headers, open },
                );
                self.next_ticket += 1;
                Ok(key)
            }
            Some(Err(error)) => Err(self.open_error(error)),
            None => unreachable!("a stream that may not be queued was overtaken"),
        }
    }

    /// Opens the stream of an existing entry; it is not queued.
    pub(crate) fn open_entry(
        &mut self,
        key: usize,
        headers: &HeaderBlock,
        open: StreamOptions,
    ) -> Result<(), Error> {
        if self.ended.is_some() || self.draining || self.closing {
            return Err(self.refusal());
        }
        let id = match self.machine.open(headers, open) {
            Ok(id) => id,
            Err(error) => return Err(self.open_error(error)),
        };
        let entry = &mut self.entries[key];
        entry.id = id;
        entry.fin_sent = open.fin;
        entry.fin_received = open.unidirectional;
        self.by_id.insert(id, key);
        Ok(())
    }

    /// Why no new stream is accepted.
    pub(crate) fn refusal(&self) -> Error {
        match &self.ended {
            Some(Err(error)) if error.concerns_every_stream() => error.clone(),
            _ => Error::Closing,
        }
    }

    fn open_error(&mut self, error: OpenError) -> Error {
        match error {
            OpenError::Full { limit } => Error::TooManyStreams { limit },
            OpenError::ParentGone { .. } => Error::PushRefused {
                reason: "the request was already answered or cancelled",
            },
            // `Closing`, or an error that another session may not have.
            _ => {
                self.closing = true;
                Error::Closing
            }
        }
    }

    /// Removes the stream from `by_id`, but keeps the entry for its handles.
    pub(crate) fn detach(&mut self, key: usize) {
        let id = self.entries[key].id;
        if !id.is_zero() {
            self.by_id.remove(&id);
        }
    }

    /// Ends the stream from this side with RST_STREAM. Its remaining readers and writers get `failure`.
    pub(crate) fn reset(&mut self, key: usize, status: RstStatus, failure: Error) {
        let entry = &mut self.entries[key];
        // If unread input and its FIN are dropped, the body must not look complete.
        entry.fin_received &= entry.inbound.is_empty();
        self.drop_unread(key);
        let entry = &mut self.entries[key];
        if self.by_id.get(&entry.id) == Some(&key) {
            self.machine.reset(entry.id, status);
            self.by_id.remove(&entry.id);
        }
        entry.failure.get_or_insert(failure);
        if entry.id.is_zero() {
            self.waiting.retain(|_, waiting| waiting.key != key);
        }
    }

    /// Sends the queued output of a stream, then ends it. Its input is discarded.
    pub(crate) fn end_stream(&mut self, key: usize, status: RstStatus) {
        self.drop_unread(key);
        let entry = &mut self.entries[key];
        let id = entry.id;
        if self.by_id.get(&id) == Some(&key) {
            self.machine.finish_and_reset(id, status);
            self.by_id.remove(&id);
        }
        let entry = &mut self.entries[key];
        entry.discard = true;
        entry.fin_sent = true;
        entry.failure.get_or_insert(Error::ResetByUs { id, status });
    }

    /// Like [`reset`](Self::reset), but RST_STREAM is sent behind the stream's output, which is not dropped.
    pub(crate) fn reset_behind_output(&mut self, key: usize, status: RstStatus) {
        let entry = &mut self.entries[key];
        // If unread input and its FIN are dropped, the body must not look complete.
        entry.fin_received &= entry.inbound.is_empty();
        self.drop_unread(key);
        let entry = &mut self.entries[key];
        let id = entry.id;
        if self.by_id.get(&id) == Some(&key) {
            self.machine.reset_behind_output(id, status);
            self.by_id.remove(&id);
        }
        let entry = &mut self.entries[key];
        entry.discard = true;
        entry.failure.get_or_insert(Error::ResetByUs { id, status });
    }

    /// Returns the credit of DATA that will not be read.
    pub(crate) fn drop_unread(&mut self, key: usize) {
        let entry = &mut self.entries[key];
        let unread = std::mem::take(&mut entry.unread_bytes);
        entry.inbound.clear();
        if unread > 0 {
            self.machine.consume(entry.id, unread);
        }
    }

    /// Drops a handle; the entry is removed with the last. A stream whose own half is open is cancelled; a stream that we have
    /// answered completely continues without an entry, and its DATA is discarded.
    #[must_use = "it holds wakers, which are dropped without the lock"]
    pub(crate) fn release(&mut self, key: usize) -> Option<Box<Entry>> {
        let entry = &mut self.entries[key];
        entry.handles -= 1;
        if entry.handles > 0 {
            return None;
        }
        if !entry.fin_sent && entry.failure.is_none() {
            let id = entry.id;
            self.reset(
                key,
                RstStatus::CANCEL,
                Error::ResetByUs {
                    id,
                    status: RstStatus::CANCEL,
                },
            );
        } else {
            self.drop_unread(key);
            let (id, open) = (self.entries[key].id, !self.entries[key].is_done());
            if open && self.machine.config().role == Role::Server {
                self.machine.discard(id, 0);
            }
            self.detach(key);
        }
        if self.entries[key].id.is_zero() {
            self.waiting.retain(|_, waiting| waiting.key != key);
        }
        // Dropping these fields may run code of a caller.
        let entry = &self.entries[key];
        let must_outlive_lock = entry.reader.is_some()
            || entry.writer.is_some()
            || entry.span.is_some()
            || entry.failure.is_some()
            || entry.push_parent.is_some();
        let entry = self.entries.remove(key);
        self.release_burst_memory();
        if must_outlive_lock {
            Some(Box::new(entry))
        } else {
            None
        }
    }

    /// Handles the timeouts that have expired at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.cancel_expired(now);
        self.release_burst_memory();
    }

    /// Returns the memory of many entries when the last one is removed, or later, when the machine returns its own.
    pub(crate) fn release_burst_memory(&mut self) {
        let has_memory = self.entries.is_empty() && self.entries.capacity() > MAX_IDLE_ENTRIES;
        if has_memory && (self.ended.is_some() || !self.machine.is_in_burst()) {
            self.entries = Slab::new();
            self.by_id.shrink_to_fit();
        }
    }

    /// Stores an entry and returns its key.
    pub(crate) fn insert(&mut self, entry: Entry) -> usize {
        if self.entries.capacity() == 0 {
            self.entries.reserve_exact(1); // many sessions never have two streams at once
        }
        self.entries.insert(entry)
    }

    /// Records a response with `status` on the stream `key`.
    pub(crate) fn answered(&mut self, key: usize, status: StatusCode) {
        self.exchanges.answered(status);
        if let Some(meter) = &self.meter {
            meter.answered(status);
        }
        if let Some(span) = &mut self.entries[key].span {
            span.status = Some(status.as_u16());
        }
    }

    /// True if more than `limit` streams of the peer have ended in the machine and still have a handle. Our own streams do not
    /// count: a client that leaves responses unread stores only what it requested.
    pub(crate) fn exceeds_ended_work(&self, role: Role, limit: usize) -> bool {
        let open_count = self.by_id.len() + self.waiting.len();
        if self.entries.len() <= open_count + limit {
            return false; // even if our own streams counted
        }
        let peer_parity = match role {
            Role::Server => 1,
            Role::Client => 0,
        };
        let ended = |entry: &Entry| {
            let is_peer_stream = !entry.id.is_zero() && entry.id.value() % 2 == peer_parity;
            is_peer_stream && !self.by_id.contains_key(&entry.id)
        };
        let entries = self.entries.iter();
        entries.filter(|(_, entry)| ended(entry)).count() > limit
    }

    /// Number of open and queued streams.
    pub(crate) fn active_streams(&self) -> usize {
        self.by_id.len() + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spdy_session::config::Config;

    use super::*;
    use crate::runtime::{BoxFuture, Runtime, SharedRuntime};
    use crate::session::shared::{SessionOptions, Shared};

    struct Still;

    impl Runtime for Still {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn sleep_until(&self, _: Instant) -> BoxFuture<()> {
            Box::pin(std::future::pending())
        }

        fn spawn(&self, _: BoxFuture<()>) {}
    }

    /// A client's session with a hundred streams, and their keys.
    fn burst() -> (Arc<Shared>, Vec<usize>) {
        let config = Config::new(Role::Client, spdy_frame::version::Version::V31);
        let runtime = SharedRuntime::new(Still);
        let shared = Shared::new(config, runtime, SessionOptions::default());
        let open = |state: &mut State| {
            let entry = Entry::new(StreamId::ZERO, 1);
            state.open(entry, HeaderBlock::new(), StreamOptions::default(), true)
        };
        let keys = (0..100).map(|_| shared.look(open).expect("the session is open"));
        let keys = keys.collect();
        (shared, keys)
    }

    fn end_burst(state: &mut State) {
        let deadline = state.machine.poll_timeout().expect("it has burst memory");
        state.handle_timeout(deadline);
    }

    #[test]
    fn entries_keep_their_memory_as_long_as_the_machine() {
        let (shared, keys) = burst();
        shared.look(|state| {
            keys.iter().for_each(|key| drop(state.release(*key)));
            assert!(state.entries.capacity() >= 100, "for another burst");
            end_burst(state);
            assert_eq!(state.entries.capacity(), 0);
        });
    }

    #[test]
    fn entries_that_are_removed_after_the_burst_leave_no_memory() {
        let (shared, keys) = burst();
        shared.look(|state| {
            for key in &keys {
                state.reset(*key, RstStatus::CANCEL, Error::Closing);
            }
            end_burst(state);
            assert!(state.entries.capacity() >= 100, "they have handles");
            keys.iter().for_each(|key| drop(state.release(*key)));
            assert_eq!(state.entries.capacity(), 0);
        });
    }
}
