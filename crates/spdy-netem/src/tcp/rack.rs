//! RACK (RFC 8985): a segment is lost if one that was sent later was delivered, and a reordering
//! window has passed since.
//!
//! ```text
//!        sent:  A     B     C     D
//!                \     \     \     x
//!   delivered:    A     x     C            B was sent before C: lost at C + reordering window
//! ```
//!
//! The window is zero while no reordering was ever seen and recovery runs or is due (three segments
//! delivered above), and else a quarter of the least round trip, more for each spurious repair.

use std::time::Duration;

use spdy_clock::Instant;

use super::scoreboard::SentSegment;
use super::sender::{Phase, Sender, TimerKind};

/// Round trips (recoveries) that a widened window lasts.
const WIDE_RECOVERIES: u8 = 16;

#[derive(Clone, Debug)]
pub(super) struct Rack {
    /// The delivered segment that was sent last: when, and where it ended.
    newest: Option<(Instant, u64)>,
    /// Its round trip.
    rtt: Duration,
    /// Whether `newest` moved in this acknowledgement.
    pub(super) advanced: bool,
    /// Whether something was ever delivered out of the order of sending.
    pub(super) reordering_seen: bool,
    /// Quarters of the least round trip in the reordering window.
    steps: u8,
    /// Recoveries until `steps` is one again.
    persist: u8,
    /// No second step before this is acknowledged.
    step_end: u64,
}

impl Rack {
    pub(super) fn new() -> Self {
        Self {
            newest: None,
            rtt: Duration::ZERO,
            advanced: false,
            reordering_seen: false,
            steps: 1,
            persist: 0,
            step_end: 0,
        }
    }

    /// A segment was delivered for the first time. A retransmission that comes back sooner than any
    /// round trip is the original's acknowledgement, and says nothing.
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        sent: &SentSegment,
        min_rtt: Option<Duration>,
    ) {
        let rtt = now - sent.sent_at;
        if sent.ever_resent && min_rtt.is_some_and(|least| rtt < least) {
            return;
        }
        let this = (sent.sent_at, sent.end);
        if self.newest.is_none_or(|newest| newest < this) {
            self.newest = Some(this);
            self.rtt = rtt;
            self.advanced = true;
        }
    }

    /// A duplicate SACK: the window was too small. At most one step a round trip.
    pub(super) fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if una >= self.step_end {
            self.steps = self.steps.saturating_add(1);
            self.persist = WIDE_RECOVERIES;
            self.step_end = nxt;
        }
    }

    /// A recovery ended: in time the window narrows again.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Time until `sent` counts as lost, under a reordering window.
    pub(super) fn time_until_lost(
        &self,
        now: Instant,
        sent: &SentSegment,
        window: Duration,
    ) -> Duration {
        (sent.sent_at + self.rtt + window) - now
    }
}

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

    /// Marks what is lost by now; arms the reordering timer for what may be soon. `true` if armed.
    pub(super) fn rack_detect(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.rack.advanced) {
            return false;
        }
        let wait = self.rack_mark(now);
        if let Some(wait) = wait {
            self.set_timer(TimerKind::Reorder, now + wait);
        }
        wait.is_some()
    }

    /// The reordering timer: marks what has waited long enough.
    pub(super) fn on_reorder_timeout(&mut self, now: Instant) {
        self.stats.reorder_timeouts += 1;
        let before = self.board.in_flight();
        let wait = self.rack_mark(now);
        if self.board.in_flight() != before && self.phase != Phase::Recovery {
            self.enter_recovery(now);
            self.reduce_window(1, 0, false);
        }
        match wait {
            Some(wait) => self.set_timer(TimerKind::Reorder, now + wait),
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
            let patience = self.rack.time_until_lost(now, sent, window);
            if patience.is_zero() {
                lost.push(index);
            } else {
                wait = wait.max(Some(patience));
            }
        }
        for index in lost {
            self.stats.losses_detected += u64::from(self.board.mark_lost(index));
        }
        wait
    }
}
