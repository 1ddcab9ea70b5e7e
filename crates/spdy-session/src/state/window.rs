//! Flow-control windows: what we may send, and what we let the peer send (SPDY/3.1 §2.6.8).
//!
//! Only DATA payload counts. Windows are signed, in 64 bits: SETTINGS can push a send window below
//! zero, and no sum of what a peer sends can wrap.
//!
//! ```text
//! receive:   |<--------------------- target --------------------->|
//!            | pending: consumed,   | unread: with    | available |
//!            | not yet given back   | the owner       | to peer   |
//! ```
//!
//! A stream's target grows with its reader: a window that holds less than the reader takes in a round trip limits the peer to one
//! window per round trip, and how long that is, is not known here.

use std::time::Duration;

use spdy_clock::Instant;

/// Bytes that may be sent on a new stream, or session, before its first WINDOW_UPDATE.
///
/// 64 KiB, not the 65,535 of HTTP/2 (SPDY/3.1 §2.6.8, *Initial Flow Control Window Size*).
pub(crate) const INITIAL_WINDOW: i64 = 64 * 1024;

/// The greatest window: 2^31 - 1. Draft 3 allows one more; no peer is harmed by the smaller.
pub(crate) const MAX_WINDOW: i64 = 0x7fff_ffff;

/// A stream's window doubles when its owner has consumed as much as it holds within this time: longer than nearly any round trip.
const GROWTH_PERIOD: Duration = Duration::from_secs(1);

/// A window rose past [`MAX_WINDOW`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Overflow;

/// What we may still send. Negative after the peer lowered INITIAL_WINDOW_SIZE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) fn new(initial: i64) -> Self {
        Self(initial)
    }

    /// Bytes left, as counted: may be negative.
    pub(crate) fn level(self) -> i64 {
        self.0
    }

    /// Bytes that may be sent now.
    pub(crate) fn credit(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// `bytes` of DATA were sent.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// The peer changed the window by `delta`: WINDOW_UPDATE, or a new INITIAL_WINDOW_SIZE.
    pub(crate) fn adjust(&mut self, delta: i64) -> Result<(), Overflow> {
        let adjusted = self.0 + delta;
        if adjusted > MAX_WINDOW {
            return Err(Overflow);
        }
        self.0 = adjusted;
        Ok(())
    }
}

/// What the peer may still send, and what we owe it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// The size at which it is held open.
    target: i64,
    /// What the peer has left, by our count.
    available: i64,
    /// Consumed here and not yet given back. Negative after the target was lowered.
    pending: i64,
    /// How much of the target is growth.
    grown: i64,
    /// Since when `consumed` counts: the first DATA, or when the last whole window had been consumed.
    since: Option<Instant>,
    /// Given back since then.
    consumed: i64,
}

impl ReceiveWindow {
    /// A stream's: the peer starts with `target`, sent in SETTINGS, or with 65,536 if it has not read them and that is more: with no
    /// acknowledgement, overshoot up to the old limit is tolerated (choice).
    pub(crate) fn of_stream(target: i64) -> Self {
        Self {
            target,
            available: target.max(INITIAL_WINDOW),
            pending: 0,
            grown: 0,
            since: None,
            consumed: 0,
        }
    }

    /// The session's: the peer starts with 65,536, and the rest up to `target` is owed at once.
    pub(crate) fn of_session(target: i64) -> Self {
        let target = target.clamp(INITIAL_WINDOW, MAX_WINDOW);
        Self {
            target,
            available: INITIAL_WINDOW,
            pending: target - INITIAL_WINDOW,
            grown: 0,
            since: None,
            consumed: 0,
        }
    }

    /// Bytes that the peer may still send.
    pub(crate) fn available(&self) -> i64 {
        self.available
    }

    /// `bytes` came.
    pub(crate) fn receive(&mut self, bytes: usize) {
        self.available -= bytes as i64;
    }

    /// The pace of the owner is measured from `now` on, unless it is being measured.
    pub(crate) fn measure_from(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Bytes that are about to be given back count for the pace of the owner; whether a whole window of it has been consumed
    /// within [`GROWTH_PERIOD`].
    pub(crate) fn keeps_up(&mut self, now: Instant) -> bool {
        self.consumed += self.pending.max(0);
        if self.consumed < self.target {
            return false;
        }
        self.consumed = 0;
        let since = self.since.replace(now);
        since.is_some_and(|since| now - since <= GROWTH_PERIOD)
    }

    /// How much of it is growth, bytes.
    pub(crate) fn grown(&self) -> i64 {
        self.grown
    }

    /// By how much it may double, if it may hold `most`.
    pub(crate) fn room_to_grow(&self, most: i64) -> i64 {
        self.target.min(most - self.target).max(0)
    }

    /// Holds the window open at `bytes` more; they are owed.
    pub(crate) fn grow(&mut self, bytes: i64) {
        self.target += bytes;
        self.pending += bytes;
        self.grown += bytes;
    }

    /// Takes back growth of `bytes`: this many consumed bytes are not given back.
    pub(crate) fn shrink(&mut self, bytes: i64) {
        self.grow(-bytes);
    }

    /// `bytes` were used up, or thrown away.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.pending += bytes as i64;
    }

    /// Holds the window open at `target`, if that is more; the difference is owed.
    pub(crate) fn widen(&mut self, target: i64) {
        self.pending += (target - self.target).max(0);
        self.target = self.target.max(target);
    }

    /// Whether enough was consumed for a WINDOW_UPDATE to be worth its 16 bytes: half of the
    /// window. Not later: OkHttp keeps up to 8 KiB back when it meets a closed window, so a
    /// receiver that waits for the last byte waits for ever.
    pub(crate) fn is_update_due(&self) -> bool {
        self.pending > 0 && self.pending * 2 >= self.target
    }

    /// As [`owes`](Self::owes), of a session: half of what its streams leave of the window. With most of it
    /// unread on some streams, half of the whole would never be consumed on the others.
    pub(crate) fn is_session_update_due(&self) -> bool {
        let is_large = self.pending * 2 >= INITIAL_WINDOW && self.pending >= self.available;
        self.is_update_due() || is_large
    }

    /// Gives back what was consumed; the delta of the WINDOW_UPDATE, 0 for none.
    pub(crate) fn grant(&mut self) -> u32 {
        let delta = self.pending.clamp(0, MAX_WINDOW);
        self.pending -= delta;
        self.available += delta;
        u32::try_from(delta).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_initial_window_can_be_negative_and_recovers() {
        let mut window = SendWindow::new(INITIAL_WINDOW);
        window.spend(61_440);
        window.adjust(16_384 - INITIAL_WINDOW).unwrap();
        assert_eq!((window.level(), window.credit()), (-45_056, 0));
        window.adjust(61_440).unwrap();
        assert_eq!(window.credit(), 16_384);
    }

    #[test]
    fn a_send_window_one_past_the_limit_overflows_and_keeps_its_level() {
        let mut window = SendWindow::new(1);
        assert_eq!(window.adjust(MAX_WINDOW), Err(Overflow));
        assert_eq!(window.adjust(MAX_WINDOW - 1), Ok(()));
        assert_eq!(window.level(), MAX_WINDOW);
    }

    #[test]
    fn half_the_window_consumed_is_worth_a_grant_and_one_byte_less_is_not() {
        let mut window = ReceiveWindow::of_stream(INITIAL_WINDOW);
        window.receive(50_000);
        window.consume(32_767);
        assert!(!window.is_update_due());
        window.consume(1);
        assert!(window.is_update_due());
        assert_eq!(window.grant(), 32_768);
        assert!(!window.is_update_due());
        assert_eq!(window.available(), INITIAL_WINDOW - 50_000 + 32_768);
    }

    #[test]
    fn a_widened_window_grants_the_difference_and_never_shrinks() {
        let mut window = ReceiveWindow::of_stream(INITIAL_WINDOW);
        window.receive(10_000);
        window.widen(1024 * 1024);
        window.widen(70_000);
        assert!(window.is_update_due());
        assert_eq!(window.grant(), 983_040);
        assert_eq!(window.available(), 1024 * 1024 - 10_000);
    }

    #[test]
    fn a_whole_window_consumed_within_a_second_keeps_up_and_later_it_does_not() {
        for (ms, keeps_up) in [(1_000, true), (1_001, false)] {
            let mut window = ReceiveWindow::of_stream(INITIAL_WINDOW);
            window.measure_from(Instant::ZERO);
            let mut take = |bytes: usize, ms| {
                window.receive(bytes);
                window.consume(bytes);
                let keeps_up = window.keeps_up(Instant::from_millis(ms));
                window.grant();
                keeps_up
            };
            assert!(!take(65_535, 0));
            assert_eq!(take(1, ms), keeps_up);
            // Measured again from there.
            assert!(!take(65_535, ms + 500));
            assert!(take(1, ms + 1_000));
        }
    }

    #[test]
    fn revoked_growth_is_withheld_from_later_grants() {
        let mut window = ReceiveWindow::of_session(INITIAL_WINDOW);
        window.grow(100_000);
        assert_eq!(window.grant(), 100_000);
        window.receive(150_000);
        window.shrink(100_000);
        window.consume(100_000);
        assert!(!window.is_update_due());
        assert_eq!(window.grant(), 0);
        window.consume(50_000);
        assert_eq!(window.grant(), 50_000);
        assert_eq!((window.available(), window.grown()), (INITIAL_WINDOW, 0));
    }

    #[test]
    fn a_mostly_unread_session_window_is_updated_at_half_of_the_rest() {
        let mut window = ReceiveWindow::of_session(1024 * 1024);
        window.grant();
        window.receive(1024 * 1024 - 100_000); // which stays unread
        window.receive(49_999);
        window.consume(49_999);
        assert!(!window.is_session_update_due());
        window.receive(1);
        window.consume(1);
        assert!(window.is_session_update_due());
        assert_eq!(window.grant(), 50_000);
        window.receive(100_000 - 32_767);
        window.consume(32_767);
        assert!(
            !window.is_session_update_due(),
            "small window updates are not sent"
        );
        window.consume(1);
        assert!(window.is_session_update_due());
    }

    #[test]
    fn a_session_grants_what_its_window_has_above_the_first_64_kib() {
        let mut window = ReceiveWindow::of_session(1024 * 1024);
        assert_eq!(window.grant(), 983_040);
        assert_eq!(window.available(), 1024 * 1024);
    }
}
