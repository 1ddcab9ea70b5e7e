//! Flow-control windows: how much we may send, and how much the peer may send (SPDY/3.1 §2.6.8).
//!
//! Only DATA payload counts. Windows are signed, in 64 bits: SETTINGS can make a send window negative, and the sums of a peer's
//! frames cannot overflow.
//!
//! ```text
//! receive:   |<--------------------- target --------------------->|
//!            | pending: consumed,   | unread: with    | available |
//!            | not yet given back   | the owner       | to peer   |
//! ```
//!
//! A stream's target grows if its reader is fast. If a window is smaller than what the reader consumes in a round trip, it limits the
//! peer to one window per round trip. The round trip time is not known here.

use std::time::Duration;

use spdy_clock::Instant;

/// Bytes that may be sent on a new stream, or session, before its first WINDOW_UPDATE.
///
/// 64 KiB, not the 65,535 of HTTP/2 (SPDY/3.1 §2.6.8, *Initial Flow Control Window Size*).
pub(crate) const INITIAL_WINDOW: i64 = 64 * 1024;

/// The largest window: 2^31 - 1. Draft 3 allows one more; the smaller limit harms no peer.
pub(crate) const MAX_WINDOW: i64 = 0x7fff_ffff;

/// A stream's window doubles when its owner has consumed a whole window within this time, which is longer than nearly any round
/// trip.
const GROWTH_PERIOD: Duration = Duration::from_secs(1);

/// A window increased above [`MAX_WINDOW`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Overflow;

/// A send window: bytes that we may still send. Negative after the peer lowered INITIAL_WINDOW_SIZE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SendWindow(i64);

impl SendWindow {
    pub(crate) fn new(initial: i64) -> Self {
        Self(initial)
    }

    /// Remaining bytes; may be negative.
    pub(crate) fn level(self) -> i64 {
        self.0
    }

    /// Bytes that may be sent now.
    pub(crate) fn credit(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Subtracts `bytes` of sent DATA.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// Changes the window by `delta`: the peer sent WINDOW_UPDATE, or a new INITIAL_WINDOW_SIZE.
    pub(crate) fn adjust(&mut self, delta: i64) -> Result<(), Overflow> {
        let adjusted = self.0 + delta;
        if adjusted > MAX_WINDOW {
            return Err(Overflow);
        }
        self.0 = adjusted;
        Ok(())
    }
}

/// A receive window: bytes that the peer may still send, and bytes to return to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    /// The size of the window when everything was consumed and returned.
    target: i64,
    /// Bytes that the peer may still send, by our count.
    available: i64,
    /// Consumed bytes that were not returned to the peer yet. Negative after the target was lowered.
    pending: i64,
    /// The part of the target that is growth.
    grown: i64,
    /// When counting of `consumed` began: at the first DATA, or when the last whole window was consumed.
    since: Option<Instant>,
    /// Bytes returned to the peer since then.
    consumed: i64,
}

impl ReceiveWindow {
    /// The window of a stream. The peer starts with `target`, which is sent in SETTINGS, or with 65,536 if that is more: the peer
    /// may not have read SETTINGS yet. There is no acknowledgement, so DATA up to the old limit is tolerated (choice).
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

    /// The window of the session. The peer starts with 65,536, and the rest up to `target` is due at once.
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

    /// Subtracts `bytes` of received DATA.
    pub(crate) fn receive(&mut self, bytes: usize) {
        self.available -= bytes as i64;
    }

    /// Starts measuring the owner's pace at `now`, unless that has begun already.
    pub(crate) fn measure_from(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Counts the bytes that are about to be returned. Returns true if the owner has consumed a whole window within
    /// [`GROWTH_PERIOD`].
    pub(crate) fn keeps_up(&mut self, now: Instant) -> bool {
        self.consumed += self.pending.max(0);
        if self.consumed < self.target {
            return false;
        }
        self.consumed = 0;
        let since = self.since.replace(now);
        since.is_some_and(|since| now - since <= GROWTH_PERIOD)
    }

    /// The growth of the window, bytes.
    pub(crate) fn grown(&self) -> i64 {
        self.grown
    }

    /// The number of bytes by which the window may grow if `most` is its limit: at most its current size.
    pub(crate) fn room_to_grow(&self, most: i64) -> i64 {
        self.target.min(most - self.target).max(0)
    }

    /// Grows the window by `bytes`, which are due at once.
    pub(crate) fn grow(&mut self, bytes: i64) {
        self.target += bytes;
        self.pending += bytes;
        self.grown += bytes;
    }

    /// Takes back growth of `bytes`: the same number of consumed bytes is not returned to the peer.
    pub(crate) fn shrink(&mut self, bytes: i64) {
        self.grow(-bytes);
    }

    /// Adds `bytes` that were consumed or discarded.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.pending += bytes as i64;
    }

    /// Raises the target to `target`, if that is more; the difference is due at once.
    pub(crate) fn widen(&mut self, target: i64) {
        self.pending += (target - self.target).max(0);
        self.target = self.target.max(target);
    }

    /// True if enough was consumed for a WINDOW_UPDATE to be worth its 16 bytes: half of the window. A later WINDOW_UPDATE could
    /// deadlock: OkHttp holds up to 8 KiB back when the window is nearly closed, so a receiver that waits for the last byte waits
    /// forever.
    pub(crate) fn is_update_due(&self) -> bool {
        self.pending > 0 && self.pending * 2 >= self.target
    }

    /// Like [`is_update_due`](Self::is_update_due), for the session: half of the part without unread DATA is enough.
    /// If most of the window is unread on some streams, the other streams could never consume half of the whole.
    pub(crate) fn is_session_update_due(&self) -> bool {
        let is_large = self.pending * 2 >= INITIAL_WINDOW && self.pending >= self.available;
        self.is_update_due() || is_large
    }

    /// Returns the consumed bytes to the peer: the delta of the WINDOW_UPDATE, 0 for none.
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
