//! Whose turn it is to write on an HTTP/2 connection: priority among responses.
//!
//! h2 writes what it is given, stream by stream in turn. So that urgent bytes are not queued behind
//! others, a response hands its next chunk to h2 only when no more urgent one could use the room:
//!
//! ```text
//! response --chunk ready--> wants --the most urgent that could send--> h2 --> socket
//!     ^                       |
//!     `---- body not ready: rests; stream window closed: does not hold up the others ----'
//! ```
//!
//! Urgency is RFC 9218's `u`, 0 to 7, the same scale as SPDY's. Of equals the older goes first, as
//! RFC 9218 §10 has it for responses that are of no use in part; incremental ones share.
//! h2 does not tell how wide a stream's window is, so that is kept here too (RFC 9113 §6.9).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use spdy_session::observe::Direction;

use crate::byte_count::{FrameWalk, Watch};

/// Window of a stream before SETTINGS say otherwise (RFC 9113 §6.9.2).
const INITIAL_WINDOW: i64 = 65_535;
/// SETTINGS_INITIAL_WINDOW_SIZE.
const SETTING_INITIAL_WINDOW: u16 = 4;
/// Credits kept for streams that nobody answers yet, or that were answered: clients grant what they have
/// read to the end. Past it the oldest go.
const MAX_EARLY_CREDITS: usize = 1024;

/// Precedence of a response (RFC 9218 §4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Precedence {
    /// 0 the most urgent, 7 the least.
    pub(crate) urgency: u8,
    /// Useful in part, so it may share.
    pub(crate) incremental: bool,
}

impl Default for Precedence {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Precedence {
    /// Reads a `priority` header field: `u=N`, `i`, `i=?1`, in any order; what is odd is skipped.
    pub(crate) fn parse(field: &str) -> Self {
        let mut precedence = Self::default();
        for item in field.split(',') {
            match item.trim().split_once('=') {
                Some(("u", level)) => {
                    if let Ok(urgency @ 0..=7) = level.trim().parse() {
                        precedence.urgency = urgency;
                    }
                }
                Some(("i", flag)) => precedence.incremental = flag.trim() == "?1",
                None if item.trim() == "i" => precedence.incremental = true,
                _ => {}
            }
        }
        precedence
    }
}

/// The responses of one connection. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    initial_window: i64,
    /// WINDOW_UPDATEs for streams without a response yet.
    early: BTreeMap<u32, i64>,
    open: BTreeMap<u32, Open>,
}

#[derive(Debug)]
struct Open {
    precedence: Precedence,
    /// Sum of WINDOW_UPDATEs less bytes handed to h2; with `initial_window` this is the window.
    credit: i64,
    /// It has a chunk to hand over.
    wants: bool,
    waker: Option<Waker>,
}

impl Turns {
    pub(crate) fn new() -> Self {
        let (early, open) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(State {
            initial_window: INITIAL_WINDOW,
            early,
            open,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A response on stream `id` is about to be written.
    pub(crate) fn open(&self, id: u32, precedence: Precedence) -> Turn {
        let mut state = self.lock();
        let credit = state.early.remove(&id).unwrap_or(0);
        state.open.insert(
            id,
            Open {
                precedence,
                credit,
                wants: false,
                waker: None,
            },
        );
        Turn {
            turns: self.clone(),
            id,
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
            *other_id == id || !other.wants || closed || !first
        })
    }

    /// Lets those that wait look again, the oldest first.
    fn wake_all(&mut self) {
        for open in self.open.values_mut() {
            if let Some(waker) = open.waker.take() {
                waker.wake();
            }
        }
    }
}

/// One response's place. Dropped, it holds up nobody.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Turns,
    id: u32,
}

impl Turn {
    /// There is a chunk to send; ready when no more urgent response could send instead.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.turns.lock();
        let may_send = state.may_send(self.id);
        if let Some(mine) = state.open.get_mut(&self.id) {
            mine.wants = true;
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

    /// There is nothing to send for now.
    pub(crate) fn rest(&self) {
        let mut state = self.turns.lock();
        if let Some(mine) = state.open.get_mut(&self.id)
            && mine.wants
        {
            mine.wants = false;
            state.wake_all();
        }
    }

    /// `bytes` were handed to h2.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut state = self.turns.lock();
        let initial = state.initial_window;
        if let Some(mine) = state.open.get_mut(&self.id) {
            mine.credit -= i64::try_from(bytes).unwrap_or(i64::MAX);
            if initial + mine.credit <= 0 {
                state.wake_all();
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.open.remove(&self.id);
        state.wake_all();
    }
}

/// Reads the windows off what the client sends.
#[derive(Debug)]
pub(crate) struct WindowWatch {
    received: FrameWalk,
    turns: Turns,
}

impl WindowWatch {
    pub(crate) fn new(turns: Turns) -> Self {
        Self {
            received: FrameWalk::of_client(),
            turns,
        }
    }
}

impl Watch for WindowWatch {
    fn passed(&mut self, direction: Direction, bytes: &[u8]) {
        if direction == Direction::Sent {
            return;
        }
        let turns = &self.turns;
        self.received
            .walk(bytes, |frame, payload| match (frame.kind, payload) {
                (4, entries) if frame.flags & 1 == 0 => {
                    for entry in entries.chunks_exact(6) {
                        if u16::from_be_bytes([entry[0], entry[1]]) == SETTING_INITIAL_WINDOW {
                            let window = [entry[2], entry[3], entry[4], entry[5]];
                            let mut state = turns.lock();
                            state.initial_window = i64::from(u32::from_be_bytes(window));
                            // A window that this closed holds up nobody any more.
                            state.wake_all();
                        }
                    }
                }
                (8, &[a, b, c, d]) if frame.stream_id != 0 => {
                    let delta = i64::from(u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff);
                    let mut state = turns.lock();
                    if let Some(open) = state.open.get_mut(&frame.stream_id) {
                        open.credit += delta;
                    } else {
                        *state.early.entry(frame.stream_id).or_default() += delta;
                        if state.early.len() > MAX_EARLY_CREDITS {
                            state.early.pop_first();
                        }
                    }
                }
                // The end of a stream's life: what was kept for it is of no use.
                (3, _) => drop(turns.lock().early.remove(&frame.stream_id)),
                _ => {}
            });
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn ready(turn: &Turn) -> bool {
        turn.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    fn of(urgency: u8) -> Precedence {
        Precedence {
            urgency,
            incremental: false,
        }
    }

    #[test]
    fn the_more_urgent_goes_first_and_of_equals_the_older() {
        let turns = Turns::new();
        let (image, style, late) = (
            turns.open(1, of(4)),
            turns.open(3, of(1)),
            turns.open(5, of(4)),
        );
        assert!(ready(&image), "alone it may send");
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
        let turns = Turns::new();
        let share = Precedence {
            urgency: 4,
            incremental: true,
        };
        let (one, two) = (turns.open(1, share), turns.open(3, share));
        assert!(ready(&one) && ready(&two));
    }

    #[test]
    fn a_closed_window_holds_up_nobody() {
        let turns = Turns::new();
        let (urgent, other) = (turns.open(1, of(0)), turns.open(3, of(7)));
        assert!(ready(&urgent));
        urgent.sent(65_535);
        assert!(ready(&urgent), "h2 itself makes it wait");
        assert!(ready(&other));
        let mut watch = WindowWatch::new(turns.clone());
        watch.passed(Direction::Received, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        watch.passed(
            Direction::Received,
            &[0, 0, 4, 8, 0, 0, 0, 0, 1, 0, 0, 0, 1],
        );
        assert!(!ready(&other), "one byte of window is a turn");
    }

    fn watch(turns: &Turns) -> WindowWatch {
        let mut watch = WindowWatch::new(turns.clone());
        watch.passed(Direction::Received, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        watch
    }

    fn window_update(watch: &mut WindowWatch, stream_id: u32, delta: u32) {
        let frame = [
            &[0, 0, 4, 8, 0][..],
            &stream_id.to_be_bytes(),
            &delta.to_be_bytes(),
        ];
        watch.passed(Direction::Received, &frame.concat());
    }

    #[test]
    fn early_credit_counts_however_many_streams_got_late_credit_before() {
        let turns = Turns::new();
        let mut watch = watch(&turns);
        for nth in 0..=MAX_EARLY_CREDITS as u32 {
            window_update(&mut watch, 2 * nth + 1, 1);
        }
        window_update(&mut watch, 9_001, 100_000);
        assert!(turns.lock().early.len() <= MAX_EARLY_CREDITS);
        let (urgent, other) = (turns.open(9_001, of(0)), turns.open(9_003, of(7)));
        assert!(ready(&urgent));
        urgent.sent(65_535);
        assert!(!ready(&other), "the urgent one has credit left");
    }

    #[test]
    fn a_window_that_settings_close_lets_those_go_that_waited() {
        struct Flag(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let turns = Turns::new();
        let mut watch = watch(&turns);
        let (urgent, other) = (turns.open(1, of(0)), turns.open(3, of(7)));
        assert!(ready(&urgent));
        urgent.sent(1_000);
        let flag = Arc::new(Flag(false.into()));
        let waker = Waker::from(flag.clone());
        assert!(other.poll(&mut Context::from_waker(&waker)).is_pending());
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0];
        watch.passed(Direction::Received, &settings);
        assert!(flag.0.load(std::sync::atomic::Ordering::Relaxed));
        assert!(ready(&other));
    }

    #[test]
    fn a_priority_field_is_read_and_what_is_odd_is_skipped() {
        for (field, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i=?1,u=1", 1, true),
            ("u=8", 3, false),
            ("u=x, q=7", 3, false),
        ] {
            assert_eq!(
                Precedence::parse(field),
                Precedence {
                    urgency,
                    incremental
                },
                "{field:?}"
            );
        }
    }
}
