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

/// Bytes that may be sent on a new stream, or session, before its first WINDOW_UPDATE.
///
/// 64 KiB, not the 65,535 of HTTP/2 (SPDY/3.1 §2.6.8, *Initial Flow Control Window Size*).
pub(crate) const INITIAL_WINDOW: i64 = 64 * 1024;

/// The greatest window: 2^31 - 1. Draft 3 allows one more; no peer is harmed by the smaller.
pub(crate) const MAX_WINDOW: i64 = 0x7fff_ffff;

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

    /// The peer moved the window by `delta`: WINDOW_UPDATE, or a new INITIAL_WINDOW_SIZE.
    pub(crate) fn shift(&mut self, delta: i64) -> Result<(), Overflow> {
        let moved = self.0 + delta;
        if moved > MAX_WINDOW {
            return Err(Overflow);
        }
        self.0 = moved;
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
    /// Consumed here and not yet given back.
    pending: i64,
}

impl ReceiveWindow {
    /// A stream's: the peer starts with `target`, told by SETTINGS, or with 65,536 if it has not
    /// read them and that is more: with no acknowledgement, overshoot up to the old limit is
    /// tolerated (choice).
    pub(crate) fn of_stream(target: i64) -> Self {
        Self {
            target,
            available: target.max(INITIAL_WINDOW),
            pending: 0,
        }
    }

    /// The session's: the peer starts with 65,536, and the rest up to `target` is owed at once.
    pub(crate) fn of_session(target: i64) -> Self {
        let target = target.clamp(INITIAL_WINDOW, MAX_WINDOW);
        Self {
            target,
            available: INITIAL_WINDOW,
            pending: target - INITIAL_WINDOW,
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
    pub(crate) fn owes(&self) -> bool {
        self.pending > 0 && self.pending * 2 >= self.target
    }

    /// Gives back what was consumed; the delta of the WINDOW_UPDATE, 0 for none.
    pub(crate) fn grant(&mut self) -> u32 {
        let delta = self.pending.min(MAX_WINDOW);
        self.pending -= delta;
        self.available += delta;
        u32::try_from(delta).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lowered_initial_window_makes_the_send_window_negative_and_updates_bring_it_back() {
        let mut window = SendWindow::new(INITIAL_WINDOW);
        window.spend(61_440);
        window.shift(16_384 - INITIAL_WINDOW).unwrap();
        assert_eq!((window.level(), window.credit()), (-45_056, 0));
        window.shift(61_440).unwrap();
        assert_eq!(window.credit(), 16_384);
    }

    #[test]
    fn a_send_window_one_past_the_limit_overflows_and_keeps_its_level() {
        let mut window = SendWindow::new(1);
        assert_eq!(window.shift(MAX_WINDOW), Err(Overflow));
        assert_eq!(window.shift(MAX_WINDOW - 1), Ok(()));
        assert_eq!(window.level(), MAX_WINDOW);
    }

    #[test]
    fn half_the_window_consumed_is_worth_a_grant_and_one_byte_less_is_not() {
        let mut window = ReceiveWindow::of_stream(INITIAL_WINDOW);
        window.receive(50_000);
        window.consume(32_767);
        assert!(!window.owes());
        window.consume(1);
        assert!(window.owes());
        assert_eq!(window.grant(), 32_768);
        assert!(!window.owes());
        assert_eq!(window.available(), INITIAL_WINDOW - 50_000 + 32_768);
    }

    #[test]
    fn a_window_that_is_widened_owes_the_difference_and_never_shrinks() {
        let mut window = ReceiveWindow::of_stream(INITIAL_WINDOW);
        window.receive(10_000);
        window.widen(1024 * 1024);
        window.widen(70_000);
        assert!(window.owes());
        assert_eq!(window.grant(), 983_040);
        assert_eq!(window.available(), 1024 * 1024 - 10_000);
    }

    #[test]
    fn a_session_owes_what_its_window_is_above_the_first_64_kib() {
        let mut window = ReceiveWindow::of_session(1024 * 1024);
        assert_eq!(window.grant(), 983_040);
        assert_eq!(window.available(), 1024 * 1024);
    }
}
