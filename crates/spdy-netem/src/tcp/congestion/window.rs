//! The congestion window: the number of segments that may be in flight, and whether it was the limit.
//!
//! An unused window is no evidence about the network, so it must not grow (RFC 7661). Linux's rule for a used window: it was full at
//! some time in this round trip or, in slow start, more than half full.

use std::time::Duration;

use spdy_clock::Instant;

use crate::tcp::jiffies;

/// A threshold that no window reaches: slow start without an end.
const NO_THRESHOLD: u32 = u32::MAX;

#[derive(Clone, Debug)]
pub(crate) struct Cwnd {
    pub(crate) segments: u32,
    pub(crate) threshold: u32,
    /// Acknowledged segments since the window last grew by one.
    pub(crate) count: u32,
    /// Whether the window was full in this round; else the maximum in flight counts.
    was_limited: bool,
    most_out: u32,
    round_end: u64,
    /// Maximum in flight since the window was last full.
    used: u32,
    /// When the window was last full or changed.
    stamp: Instant,
}

impl Cwnd {
    pub(crate) fn new(segments: u32) -> Self {
        Self {
            segments,
            threshold: NO_THRESHOLD,
            count: 0,
            was_limited: false,
            most_out: 0,
            round_end: 0,
            used: 0,
            stamp: Instant::ZERO,
        }
    }

    /// Data may be sent from now on.
    pub(crate) fn start(&mut self, now: Instant) {
        self.stamp = now;
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.segments < self.threshold
    }

    /// The threshold to store before a reduction: at least three quarters of the window.
    pub(crate) fn current_threshold(&self) -> u32 {
        self.threshold
            .max((self.segments >> 1) + (self.segments >> 2))
    }

    pub(crate) fn touch(&mut self, now: Instant) {
        self.stamp = now;
    }

    /// True if the window may grow.
    pub(crate) fn is_limiting(&self) -> bool {
        self.was_limited
            || (self.in_slow_start() && self.segments < self.most_out.saturating_mul(2))
    }

    /// Grows by slow start; returns the rest of `acked` for congestion avoidance.
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.segments.saturating_add(acked).min(self.threshold);
        let used = grown - self.segments;
        self.segments = grown;
        acked - used
    }

    /// Grows by one segment for each `every` acknowledged.
    pub(crate) fn avoid(&mut self, every: u32, acked: u32) {
        let every = every.max(1);
        // Credit from a higher `every` is worth one segment now.
        if self.count >= every {
            self.count = 0;
            self.segments += 1;
        }
        self.count += acked;
        if self.count >= every {
            self.segments = self.segments.saturating_add(self.count / every);
            self.count %= every;
        }
    }

    /// Records the end of a burst: `out` segments are unacknowledged, and the window was full or not.
    pub(crate) fn note_use(&mut self, una: u64, nxt: u64, out: u32, is_full: bool) {
        // Not reset on a timeout: otherwise the window would never count as used, and would stay at one segment.
        let higher = !self.was_limited && out > self.most_out;
        if una >= self.round_end || is_full || higher {
            self.was_limited = is_full;
            self.most_out = out;
            self.round_end = nxt;
        }
    }

    /// Called after [`note_use`](Self::note_use): reduces a window that was unused for a timeout half the way to its used size (RFC
    /// 2861); `true` if reduced.
    pub(crate) fn validate(
        &mut self,
        now: Instant,
        out: u32,
        initial: u32,
        may_cut_after: Option<Duration>,
    ) -> bool {
        if self.is_limiting() {
            self.used = 0;
            self.stamp = now;
            return false;
        }
        self.used = self.used.max(out);
        if may_cut_after.is_none_or(|timeout| jiffies::between(self.stamp, now) < timeout) {
            return false;
        }
        let used = self.used.max(initial);
        let cut = used < self.segments;
        if cut {
            self.threshold = self.current_threshold();
            self.segments = (self.segments + used) >> 1;
        }
        self.used = 0;
        self.stamp = now;
        cut
    }

    /// After `idle` without sending: halves the window for each timeout, down to `initial`. Returns `true` if the
    /// window is smaller now.
    pub(crate) fn restart(
        &mut self,
        now: Instant,
        idle: Duration,
        rto: Duration,
        initial: u32,
    ) -> bool {
        let before = self.segments;
        let floor = initial.min(self.segments);
        self.threshold = self.current_threshold();
        let mut remaining = idle.saturating_sub(rto);
        while !remaining.is_zero() && self.segments > floor {
            self.segments >>= 1;
            remaining = remaining.saturating_sub(rto);
        }
        self.segments = self.segments.max(floor);
        self.stamp = now;
        self.used = 0;
        self.segments < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_adds_acknowledged_segments_up_to_the_threshold() {
        let mut cwnd = Cwnd::new(10);
        assert_eq!(cwnd.slow_start(10), 0);
        assert_eq!(cwnd.segments, 20);
        cwnd.threshold = 25;
        assert_eq!(
            cwnd.slow_start(10),
            5,
            "five are left for congestion avoidance"
        );
        assert_eq!(cwnd.segments, 25);
        assert!(!cwnd.in_slow_start());
    }

    #[test]
    fn avoidance_adds_one_segment_per_count() {
        let mut cwnd = Cwnd::new(10);
        (0..9).for_each(|_| cwnd.avoid(10, 1));
        assert_eq!(cwnd.segments, 10);
        cwnd.avoid(10, 1);
        assert_eq!((cwnd.segments, cwnd.count), (11, 0));
    }

    #[test]
    fn a_window_at_most_half_full_is_not_limiting() {
        let mut cwnd = Cwnd::new(10);
        cwnd.note_use(0, 5_000, 5, false);
        assert!(!cwnd.is_limiting(), "half is not more than half");
        cwnd.note_use(0, 6_000, 6, false);
        assert!(cwnd.is_limiting());
    }

    #[test]
    fn idleness_halves_once_a_timeout_down_to_the_initial_window() {
        let rto = Duration::from_millis(300);
        let after = |idle_ms| {
            let mut cwnd = Cwnd::new(80);
            cwnd.restart(Instant::ZERO, Duration::from_millis(idle_ms), rto, 10);
            (cwnd.segments, cwnd.threshold)
        };
        assert_eq!(after(301), (40, NO_THRESHOLD));
        assert_eq!(after(601), (20, NO_THRESHOLD));
        assert_eq!(after(10_000), (10, NO_THRESHOLD));
    }
}
