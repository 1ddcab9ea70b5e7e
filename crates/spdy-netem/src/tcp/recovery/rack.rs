//! RACK (RFC 8985): a segment is lost if a later one was delivered, and a reordering window has passed since.
//!
//! ```text
//!        sent:  A     B     C     D
//!                \     \     \     x
//!   delivered:    A     x     C            B was sent before C: lost at C + reordering window
//! ```
//!
//! The window is zero if reordering was never observed and a recovery runs or is due (three segments delivered above). Else it is a
//! quarter of the minimum round trip, and more after each spurious retransmission.

use std::time::Duration;

use spdy_clock::Instant;

use super::recovery_state::Phase;
use super::tlp::MIN_TIMEOUT;
use crate::tcp::send::sender::{Sender, TimerKind};

impl Sender {
    fn reordering_window(&self) -> Duration {
        let recovering = self.phase.is_recovering();
        if !self.rack.reordering_seen && (recovering || self.sacked() >= self.reordering) {
            return Duration::ZERO;
        }
        let quarter = self.rtt.min_us().unwrap_or(0) >> 2;
        let window = (quarter * u64::from(self.rack.steps)).min(self.rtt.srtt_us());
        Duration::from_micros(window)
    }

    /// Marks lost segments; arms the reordering timer for segments that may be lost soon. `true` if armed.
    pub(crate) fn rack_detect(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.rack.advanced) {
            return false;
        }
        let wait = self.rack_mark(now);
        if let Some(wait) = wait {
            self.set_timer(TimerKind::Reorder, now, wait + MIN_TIMEOUT);
        }
        wait.is_some()
    }

    /// Handles the reordering timer: marks segments that have waited long enough.
    pub(crate) fn on_reorder_timeout(&mut self, now: Instant) {
        self.stats.reorder_timeouts += 1;
        let before = self.board.in_flight();
        let wait = self.rack_mark(now);
        if self.board.in_flight() != before && self.phase != Phase::Recovery {
            self.enter_recovery(now);
            self.reduce_window(1, 0, false);
        }
        match wait {
            Some(wait) => self.set_timer(TimerKind::Reorder, now, wait + MIN_TIMEOUT),
            None => self.rearm_rto(now),
        }
    }

    fn rack_mark(&mut self, now: Instant) -> Option<Duration> {
        let newest = self.rack.newest?;
        let window = self.reordering_window();
        let mut wait: Option<Duration> = None;
        let mut lost = Vec::new();
        for (index, sent) in self.board.iter().enumerate() {
            let waits_already = sent.lost && !sent.resent;
            if sent.sacked || waits_already || (sent.sent_at, sent.end) >= newest {
                continue;
            }
            let remaining = self.rack.time_until_lost(now, sent, window);
            if remaining.is_zero() {
                lost.push(index);
            } else {
                wait = wait.max(Some(remaining));
            }
        }
        for index in lost {
            self.stats.losses_detected += u64::from(self.board.mark_lost(index));
        }
        wait
    }
}
