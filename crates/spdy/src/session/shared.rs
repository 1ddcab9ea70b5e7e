//! What a session's driver and its handles share: the machine, and what each stream's owner waits for.
//!
//! ```text
//!  Session, Stream, Body, Responder ...      Connection (session/driver.rs)
//!        |  commands                               |  bytes, the hour
//!        v                                         v
//!  +----------------------- Shared: one mutex -----------------------+
//!  |  the session machine  --- events --->  entries, one a stream    |
//!  +-----------------------------------------------------------------+
//! ```
//!
//! Commands act on the machine at once, under the lock, and wake the driver if it sleeps; no channel
//! stands between. The driver alone takes events (`session/dispatch.rs`). The lock is never held across an
//! await, and wakers are called after it was let go.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::StatusCode;
use parking_lot::Mutex;
use slab::Slab;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_http::push::PushForm;
use spdy_session::config::{Config, Role};
use spdy_session::error::OpenError;
use spdy_session::session::{Session as Machine, StreamOptions};
use tokio::sync::oneshot;
use tracing::Span;

use crate::client::unclaimed_pushes::{PushLimits, UnclaimedPushes};
use crate::error::Error;
use crate::metrics::{Exchanges, Meter, Metrics, SessionSample, SessionSource};
use crate::runtime::SharedRuntime;
use crate::session::entry::Entry;
use crate::session::run_watch::{RUN_WITHIN, RunWatch};
use crate::trace;

/// One session, as all of its handles see it.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) runtime: SharedRuntime,
    pub(crate) version: Version,
    pub(crate) role: Role,
    /// Whether bodies' trailers are sent.
    pub(crate) send_trailers: bool,
    /// How a server's pushes are written.
    pub(crate) push_form: PushForm,
    pub(crate) span: Span,
    /// Whether requests claim pushes.
    pub(crate) claims_pushes: bool,
    pub(crate) run_watch: RunWatch,
}

/// What the builders choose beside the machine's configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionOptions {
    /// Whether bodies' trailers are sent.
    pub(crate) send_trailers: bool,
    /// How a server's pushes are written.
    pub(crate) push_form: PushForm,
    /// Streams that the peer opens are accepted.
    pub(crate) accepts_streams: bool,
    /// Where it is counted.
    pub(crate) metrics: Option<Metrics>,
    /// A client's pushes wait for requests that claim them.
    pub(crate) claims: Option<PushLimits>,
}

impl SessionSource for Shared {
    fn sample(&self) -> SessionSample {
        self.look(|state| SessionSample {
            role: self.role,
            version: self.version,
            open_streams: state.active_streams(),
            stats: state.machine.stats(),
            exchanges: state.exchanges,
        })
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("version", &self.version)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// A session that has not begun.
    pub(crate) fn new(
        config: Config,
        runtime: SharedRuntime,
        choices: SessionOptions,
    ) -> Arc<Self> {
        let (version, role) = (config.version, config.role);
        let state = State {
            machine: Machine::new(config, runtime.now()),
            entries: Slab::new(),
            by_id: HashMap::default(),
            waiting: BTreeMap::new(),
            next_ticket: 0,
            incoming: VecDeque::new(),
            incoming_waker: None,
            accepts_streams: choices.accepts_streams,
            peer_uses_priorities: false,
            claims: choices.claims.map(UnclaimedPushes::new),
            driver: None,
            owners: 0,
            draining: false,
            closing: false,
            ended: None,
            ended_wakers: Slab::new(),
            io_error: None,
            pings: Vec::new(),
            exchanges: Exchanges::default(),
            meter: None,
        };
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            runtime,
            version,
            role,
            send_trailers: choices.send_trailers,
            push_form: choices.push_form,
            claims_pushes: choices.claims.is_some(),
            run_watch: RunWatch::default(),
            span: trace::session(role, version),
        });
        if let Some(metrics) = choices.metrics {
            let session: Weak<Self> = Arc::downgrade(&shared);
            let meter = metrics.register(session, role, version);
            shared.look(|state| state.meter = Some(meter));
        }
        shared
    }

    /// A PING and its round trip.
    pub(crate) async fn ping(self: &Arc<Self>) -> Result<Duration, Error> {
        self.watch_run();
        let (answer, answered) = oneshot::channel();
        let now = self.runtime.now();
        self.command(|state| {
            if state.ended.is_none() {
                state.machine.ping(now);
                // Some peers never answer: requests that stopped waiting are dropped.
                state.pings.retain(|ping| !ping.is_closed());
                state.pings.push(answer);
            }
        });
        answered
            .await
            .map_err(|_| self.look(|state| state.refusal()))
    }

    /// GOAWAY(INTERNAL_ERROR), and the end.
    pub(crate) fn abort(&self) {
        let now = self.runtime.now();
        self.command(|state| state.machine.abort(now));
    }

    /// Why the session was lost.
    pub(crate) fn error(&self) -> Option<Error> {
        self.look(|state| state.ended.clone().and_then(Result::err))
    }

    /// Something waits for the connection. If that is not run in time, the session ends.
    pub(crate) fn watch_run(self: &Arc<Self>) {
        if !self.run_watch.start() {
            return;
        }
        let (shared, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let deadline = runtime.sleep_until(runtime.now() + RUN_WITHIN);
        runtime.spawn(Box::pin(async move {
            deadline.await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if shared.run_watch.expire() {
                let error = Error::ConnectionNotRun { waited: RUN_WITHIN };
                let mut woken = Vec::new();
                shared.look(|state| state.end(Err(error), &mut woken));
                woken.into_iter().for_each(Waker::wake);
            }
        }));
    }

    /// The driver is gone, and nothing more is sent or received.
    pub(crate) fn handle_driver_gone(&self) {
        let (stats, error) = self.look(|state| {
            let stats = state.machine.stats();
            if let Some(meter) = &mut state.meter {
                meter.unregister(&stats, &state.exchanges);
            }
            (stats, state.ended.clone().and_then(Result::err))
        });
        trace::session_ended(&self.span, &stats, error.as_ref());
    }

    /// Runs `act` on the state, and wakes the driver afterwards if it sleeps.
    pub(crate) fn command<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.command_if(|state| (act(state), true))
    }

    /// Runs `act` on the state; wakes the driver if `act` returns that there is work for it.
    pub(crate) fn command_if<R>(&self, act: impl FnOnce(&mut State) -> (R, bool)) -> R {
        let (result, driver) = {
            let mut state = self.state.lock();
            let (result, work) = act(&mut state);
            (result, if work { state.driver.take() } else { None })
        };
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }

    /// Ready when the session has ended.
    pub(crate) fn ended(self: &Arc<Self>) -> SessionEnd<'_> {
        SessionEnd {
            shared: self,
            key: None,
        }
    }

    /// Runs `look` on the state, without waking any task.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.state.lock())
    }
}

/// Waits for the end of a session; dropped, it leaves nothing behind.
pub(crate) struct SessionEnd<'a> {
    shared: &'a Arc<Shared>,
    /// Its place among the wakers.
    key: Option<usize>,
}

impl Future for SessionEnd<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut old = None;
        let (shared, mut key) = (self.shared, self.key);
        shared.watch_run();
        let poll = shared.look(|state| {
            if state.ended.is_some() {
                return Poll::Ready(());
            }
            match key {
                Some(key) => {
                    let known = &mut state.ended_wakers[key];
                    old = Some(std::mem::replace(known, cx.waker().clone()));
                }
                None => key = Some(state.ended_wakers.insert(cx.waker().clone())),
            }
            Poll::Pending
        });
        self.key = key;
        poll
    }
}

impl Drop for SessionEnd<'_> {
    fn drop(&mut self) {
        let gone = self.key.map(|key| {
            // With the end they are all gone.
            self.shared.look(|state| state.ended_wakers.try_remove(key))
        });
        drop(gone); // a waker, and with the lock free
    }
}

/// Hashes stream ids: they rise by two, so a multiplication spreads them well enough. A peer that
/// picks ids to collide gains nothing: it may have `max_concurrent_streams` of them.
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

/// A stream that cannot be opened yet.
pub(crate) struct QueuedOpen {
    pub(crate) key: usize,
    pub(crate) headers: HeaderBlock,
    pub(crate) open: StreamOptions,
}

/// Everything under the lock.
pub(crate) struct State {
    pub(crate) machine: Machine,
    /// Streams that have an owner, or are not taken yet. The key stays as long as the entry.
    pub(crate) entries: Slab<Entry>,
    /// Keys of the streams that the machine still knows.
    pub(crate) by_id: HashMap<StreamId, usize, BuildHasherDefault<IdHasher>>,
    /// Streams to open once the peer allows it, by priority and then in order.
    pub(crate) waiting: BTreeMap<(Priority, u64), QueuedOpen>,
    pub(crate) next_ticket: u64,
    /// Streams of the peer that are not taken yet: at most `max_concurrent_streams`.
    pub(crate) incoming: VecDeque<usize>,
    pub(crate) incoming_waker: Option<Waker>,
    pub(crate) accepts_streams: bool,
    /// The peer opened a stream that was less urgent than others may be: it ranks them.
    pub(crate) peer_uses_priorities: bool,
    /// Pushes that wait for requests.
    pub(crate) claims: Option<UnclaimedPushes>,
    /// The driver's waker while it sleeps.
    pub(crate) driver: Option<Waker>,
    /// Clones of a client's session handle, that of its [`IncomingStreams`](crate::client::IncomingStreams) among them.
    pub(crate) owners: usize,
    /// To be shut down when the last stream has ended.
    pub(crate) draining: bool,
    /// No new streams of ours: GOAWAY was sent or received.
    pub(crate) closing: bool,
    /// How the session ended.
    pub(crate) ended: Option<Result<(), Error>>,
    /// Wakers of the tasks that wait for the end. A task that stops waiting removes its own.
    pub(crate) ended_wakers: Slab<Waker>,
    pub(crate) io_error: Option<Error>,
    pub(crate) pings: Vec<oneshot::Sender<Duration>>,
    /// Requests and responses so far.
    pub(crate) exchanges: Exchanges,
    pub(crate) meter: Option<Meter>,
}

impl State {
    /// Opens a stream for `entry` and returns its key, or queues it where `may_wait`.
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
        // Someone more urgent, or earlier, already waits: the free slot is not ours.
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
                let key = self.entries.insert(entry);
                self.by_id.insert(id, key);
                Ok(key)
            }
            Some(Err(OpenError::Full { .. })) | None if may_wait => {
                let key = self.entries.insert(entry);
                self.waiting.insert(
                    (open.priority, self.next_ticket),
                    QueuedOpen { key, headers, open },
                );
                self.next_ticket += 1;
                Ok(key)
            }
            Some(Err(error)) => Err(self.open_error(error)),
            None => unreachable!("only what may wait is overtaken"),
        }
    }

    /// Opens the stream of an entry that is there already; it does not wait.
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

    /// Why no new stream is taken.
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
                why: "the request was answered, or given up",
            },
            OpenError::Closing => {
                self.closing = true;
                Error::Closing
            }
        }
    }

    /// Forgets the stream in the machine's table, keeping the entry for its owner.
    pub(crate) fn detach(&mut self, key: usize) {
        let id = self.entries[key].id;
        if !id.is_zero() {
            self.by_id.remove(&id);
        }
    }

    /// Ends the stream from this side: RST_STREAM, and `failure` for its remaining readers and writers.
    pub(crate) fn reset(&mut self, key: usize, status: RstStatus, failure: Error) {
        let entry = &mut self.entries[key];
        // What is dropped unread with its FIN behind it must not pass for an empty whole.
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

    /// As [`reset`](Self::reset), behind what was sent on the stream, which is not dropped.
    pub(crate) fn reset_behind_output(&mut self, key: usize, status: RstStatus) {
        let entry = &mut self.entries[key];
        // A body that is dropped unread, with its FIN received, must not look like a complete empty body.
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

    /// One owner less; with the last the entry goes. A stream whose own half is open is cancelled;
    /// one that we have answered to the end goes on unseen, its DATA discarded.
    #[must_use = "it holds wakers, which are dropped without the lock"]
    pub(crate) fn release(&mut self, key: usize) -> Option<Entry> {
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
        Some(self.entries.remove(key))
    }

    /// A response with `status`, on the stream `key`.
    pub(crate) fn answered(&mut self, key: usize, status: StatusCode) {
        self.exchanges.answered(status);
        if let Some(meter) = &self.meter {
            meter.answered(status);
        }
        if let Some(span) = &mut self.entries[key].span {
            span.status = Some(status.as_u16());
        }
    }

    /// True if more than `limit` streams of the peer are forgotten by the machine, and still have an owner. Our own
    /// streams do not count: a client that leaves answers unread stores only what it requested.
    pub(crate) fn exceeds_ended_work(&self, role: Role, limit: usize) -> bool {
        let known = self.by_id.len() + self.waiting.len();
        if self.entries.len() <= known + limit {
            return false; // not even with ours
        }
        let theirs = match role {
            Role::Server => 1,
            Role::Client => 0,
        };
        let ended = |entry: &Entry| {
            let is_theirs = !entry.id.is_zero() && entry.id.value() % 2 == theirs;
            is_theirs && !self.by_id.contains_key(&entry.id)
        };
        let entries = self.entries.iter();
        entries.filter(|(_, entry)| ended(entry)).count() > limit
    }

    /// Streams that are open, or wait to be.
    pub(crate) fn active_streams(&self) -> usize {
        self.by_id.len() + self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{BoxFuture, Runtime};

    /// A clock that stands.
    struct FrozenClock;

    impl Runtime for FrozenClock {
        fn now(&self) -> spdy_clock::Instant {
            spdy_clock::Instant::ZERO
        }

        fn sleep_until(&self, _: spdy_clock::Instant) -> BoxFuture<()> {
            Box::pin(std::future::pending())
        }

        fn spawn(&self, _: BoxFuture<()>) {}
    }

    fn session() -> Arc<Shared> {
        let config = Config::new(Role::Client, Version::V31);
        Shared::new(
            config,
            SharedRuntime::new(FrozenClock),
            SessionOptions::default(),
        )
    }

    /// Every wait for the end left a waker, and with it its task, until the session was over.
    #[test]
    fn a_dropped_waiter_leaves_no_waker() {
        let shared = session();
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..10 {
            let mut ended = std::pin::pin!(shared.ended());
            let mut ping = std::pin::pin!(shared.ping());
            for _ in 0..3 {
                assert!(ended.as_mut().poll(cx).is_pending());
                assert!(ping.as_mut().poll(cx).is_pending());
            }
            shared.look(|state| {
                assert_eq!((state.ended_wakers.len(), state.pings.len()), (1, 1));
            });
        }
        let mut ended = std::pin::pin!(shared.ended());
        assert!(ended.as_mut().poll(cx).is_pending());
        let mut woken = Vec::new();
        shared.look(|state| state.end(Ok(()), &mut woken));
        assert_eq!(woken.len(), 1);
        assert!(ended.as_mut().poll(cx).is_ready());
    }
}
