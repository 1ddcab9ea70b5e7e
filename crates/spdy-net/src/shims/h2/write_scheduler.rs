//! Chooses the body that writes next on an HTTP/2 connection, by priority, and tracks why others wait.
//!
//! h2 writes streams in turn. So that urgent bytes are not queued behind others, a response passes its next chunk to h2 only when
//! no more urgent response could send instead:
//!
//! ```text
//! response --chunk ready--> ready --the most urgent that could send--> h2 --> socket
//!     ^                       |
//!     `---- body not ready: idle; stream window closed: does not block the others ----'
//! ```
//!
//! Urgency is RFC 9218's `u`, 0 to 7, with the same levels as SPDY. Among equal ones the older is first, as RFC 9218 §10 recommends
//! for responses that are not incremental; incremental ones share. h2 does not report the size of a stream's window, so
//! `shims/h2/window_tracker.rs` tracks it from the wire (RFC 9113 §6.9). It distinguishes a stream whose window the peer keeps
//! closed from one that only waits for its turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::{Mutex, MutexGuard};
use spdy_clock::Instant;
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::timing::block_reason::{BlockReason, SendProgress};

/// Window of a stream before SETTINGS change it (RFC 9113 §6.9.2).
const INITIAL_WINDOW: i64 = 65_535;
/// Limit of credits stored for streams without a response: not begun yet, or already sent, because clients also send credit for
/// what they have read completely. Above it the oldest are dropped.
const MAX_EARLY_CREDITS: usize = 1024;

/// The bodies that one side of a connection sends. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct WriteScheduler(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    initial_window: i64,
    /// WINDOW_UPDATE credit for streams without a response yet.
    early: BTreeMap<u32, i64>,
    open: BTreeMap<u32, StreamState>,
    progress: SendProgress,
}

#[derive(Debug)]
struct StreamState {
    precedence: HttpPriority,
    /// Sum of WINDOW_UPDATEs minus bytes passed to h2; plus `initial_window` this is the window.
    credit: i64,
    /// Bytes passed to h2 that are not on the wire yet.
    held: i64,
    /// True if it has a chunk to send.
    has_chunk: bool,
    waker: Option<Waker>,
}

impl WriteScheduler {
    pub(crate) fn new() -> Self {
        let (early, open) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(State {
            initial_window: INITIAL_WINDOW,
            early,
            open,
            progress: SendProgress::default(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Adds a response on stream `id`, before it is written.
    pub(crate) fn open(&self, id: u32, precedence: HttpPriority) -> ScheduledStream {
        let mut state = self.lock();
        let credit = state.early.remove(&id).unwrap_or(0);
        state.open.insert(
            id,
            StreamState {
                precedence,
                credit,
                held: 0,
                has_chunk: false,
                waker: None,
            },
        );
        ScheduledStream {
            scheduler: self.clone(),
            id,
        }
    }

    /// Sets the initial window of streams, from the peer's SETTINGS, bytes.
    pub(crate) fn set_initial_window(&self, initial_window: u32) {
        let mut state = self.lock();
        state.initial_window = initial_window.into();
        // A response whose window was closed by this no longer blocks others.
        state.wake_all();
    }

    /// Adds `bytes` of credit from the peer for stream `id`.
    pub(crate) fn add_credit(&self, id: u32, bytes: u32) {
        let mut state = self.lock();
        let initial = state.initial_window;
        if let Some(open) = state.open.get_mut(&id) {
            let was_closed = open.is_closed(initial);
            open.credit += i64::from(bytes);
            open.wake_if(was_closed != open.is_closed(initial));
            return;
        }
        *state.early.entry(id).or_default() += i64::from(bytes);
        if state.early.len() > MAX_EARLY_CREDITS {
            state.early.pop_first();
        }
    }

    /// Records that `bytes` of the body on stream `id` are on the wire.
    pub(crate) fn record_sent(&self, id: u32, bytes: usize, now: Instant) {
        let mut state = self.lock();
        state.progress.bytes += bytes as u64;
        state.progress.at = now;
        let initial = state.initial_window;
        if let Some(open) = state.open.get_mut(&id) {
            let was_closed = open.is_closed(initial);
            open.held -= i64::try_from(bytes).unwrap_or(i64::MAX);
            open.wake_if(was_closed != open.is_closed(initial));
        }
    }

    /// Removes the credit stored for stream `id`, which has ended.
    pub(crate) fn remove(&self, id: u32) {
        self.lock().early.remove(&id);
    }
}

impl StreamState {
    /// True if the stream's window is used up.
    fn is_closed(&self, initial_window: i64) -> bool {
        initial_window + self.credit + self.held <= 0
    }

    /// Wakes the task if the reason for its wait has changed (`is`).
    fn wake_if(&mut self, is: bool) {
        if let Some(waker) = self.waker.take_if(|_| is) {
            waker.wake();
        }
    }
}

impl State {
    fn may_send(&self, id: u32) -> bool {
        let Some(mine) = self.open.get(&id) else {
            return true;
        };
        self.open.iter().all(|(other_id, other)| {
            let closed = self.initial_window + other.credit <= 0;
            let first = match other.precedence.urgency.cmp(&mine.precedence.urgency) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => *other_id < id && !mine.precedence.incremental,
                std::cmp::Ordering::Greater => false,
            };
            *other_id == id || !other.has_chunk || closed || !first
        })
    }

    /// Wakes all waiting tasks to check again, the oldest first.
    fn wake_all(&mut self) {
        for open in self.open.values_mut() {
            if let Some(waker) = open.waker.take() {
                waker.wake();
            }
        }
    }
}

/// One response's position in the order. Dropping it unblocks other responses.
#[derive(Debug)]
pub(crate) struct ScheduledStream {
    scheduler: WriteScheduler,
    id: u32,
}

impl ScheduledStream {
    /// Reports that a chunk is available; ready when no more urgent response could send instead.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.scheduler.lock();
        let may_send = state.may_send(self.id);
        if let Some(mine) = state.open.get_mut(&self.id) {
            mine.has_chunk = true;
            mine.waker = if may_send {
                None
            } else {
                Some(cx.waker().clone())
            };
        }
        if may_send {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Why an available chunk cannot be sent. Wakes the task when the reason changes.
    pub(crate) fn block_reason(&self, cx: &mut Context<'_>) -> BlockReason {
        let mut state = self.scheduler.lock();
        let (initial, outflow) = (state.initial_window, state.progress);
        let Some(mine) = state.open.get_mut(&self.id) else {
            return BlockReason::Connection(outflow);
        };
        mine.waker = Some(cx.waker().clone());
        match mine.is_closed(initial) {
            true => BlockReason::Window,
            false => BlockReason::Connection(outflow),
        }
    }

    /// Reports that no chunk is available.
    pub(crate) fn rest(&self) {
        let mut state = self.scheduler.lock();
        if let Some(mine) = state.open.get_mut(&self.id)
            && mine.has_chunk
        {
            mine.has_chunk = false;
            state.wake_all();
        }
    }

    /// Records that `bytes` were passed to h2.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut state = self.scheduler.lock();
        let initial = state.initial_window;
        if let Some(mine) = state.open.get_mut(&self.id) {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            mine.credit -= bytes;
            mine.held += bytes;
            if initial + mine.credit <= 0 {
                state.wake_all();
            }
        }
    }
}

impl Drop for ScheduledStream {
    fn drop(&mut self) {
        let mut state = self.scheduler.lock();
        state.open.remove(&self.id);
        state.wake_all();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// True if it may send.
    pub(crate) fn ready(turn: &ScheduledStream) -> bool {
        turn.poll_ready(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    /// The priority of a response that is not incremental.
    pub(crate) fn of(urgency: u8) -> HttpPriority {
        HttpPriority {
            urgency,
            incremental: false,
        }
    }

    #[test]
    fn the_more_urgent_goes_first_and_of_equals_the_older() {
        let turns = WriteScheduler::new();
        let (image, style, late) = (
            turns.open(1, of(4)),
            turns.open(3, of(1)),
            turns.open(5, of(4)),
        );
        assert!(ready(&image), "a single stream may send");
        assert!(ready(&style));
        assert!(!ready(&image), "a style sheet is waiting");
        style.rest();
        assert!(ready(&image));
        assert!(!ready(&late), "an older image is waiting");
        drop(image);
        assert!(ready(&late));
    }

    #[test]
    fn incremental_responses_share() {
        let turns = WriteScheduler::new();
        let share = HttpPriority {
            urgency: 4,
            incremental: true,
        };
        let (one, two) = (turns.open(1, share), turns.open(3, share));
        assert!(ready(&one) && ready(&two));
    }
}
