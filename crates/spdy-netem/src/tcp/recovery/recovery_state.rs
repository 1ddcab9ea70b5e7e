//! The sender's state of losses: the phase, RACK, the pending probe, and data to undo a reduction.
//!
//! The types only. `fast_recovery.rs`, `rack.rs`, `tlp.rs` and `undo.rs` have the methods of the [`Sender`](crate::tcp::send::sender::Sender) that use them.

use std::time::Duration;

use spdy_clock::Instant;

use crate::tcp::send::scoreboard::SentSegment;

/// Recoveries (round trips) after which a widened window shrinks.
const WIDE_RECOVERIES: u8 = 16;

/// The sender's estimate of the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// No loss.
    Open,
    /// Segments were delivered out of order.
    Disorder,
    /// A loss is being repaired; the window shrinks to the threshold.
    Recovery,
    /// The timer expired; sending restarts with a window of one.
    Loss,
}

impl Phase {
    pub(crate) fn is_recovering(self) -> bool {
        matches!(self, Self::Recovery | Self::Loss)
    }
}

/// State of RACK: the newest delivery, and the reordering window.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The last sent of all delivered segments: its sending time and end.
    pub(crate) newest: Option<(Instant, u64)>,
    /// Its round trip.
    rtt: Duration,
    /// Whether this acknowledgement changed `newest`.
    pub(crate) advanced: bool,
    /// Whether segments were ever delivered out of order.
    pub(crate) reordering_seen: bool,
    /// Reordering window in quarters of the minimum round trip.
    pub(crate) steps: u8,
    /// Recoveries until `steps` is one again.
    persist: u8,
    /// The reordering window does not grow again before this is acknowledged.
    step_end: u64,
}

impl Rack {
    pub(crate) fn new() -> Self {
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

    /// Handles the first delivery of a segment. An acknowledgement that arrives sooner than any round trip after a retransmission is
    /// that of the original, and is ignored.
    pub(crate) fn on_delivered(
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

    /// Handles a duplicate SACK: the window was too small. It grows at most once per round trip.
    pub(crate) fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if una >= self.step_end {
            self.steps = self.steps.saturating_add(1);
            self.persist = WIDE_RECOVERIES;
            self.step_end = nxt;
        }
    }

    /// Handles the end of a recovery: after several the window shrinks again.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Time until `sent` counts as lost, with a reordering window.
    pub(crate) fn time_until_lost(
        &self,
        now: Instant,
        sent: &SentSegment,
        window: Duration,
    ) -> Duration {
        (sent.sent_at + self.rtt + window) - now
    }
}

/// A probe without a result yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PendingProbe {
    /// Next sequence number when it was sent.
    pub(crate) end: u64,
    /// It retransmitted a segment.
    pub(crate) was_repeat: bool,
}

/// Proportional rate reduction's counters of one recovery (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reduction {
    /// The window before the reduction.
    pub(crate) prior_cwnd: u32,
    pub(crate) delivered: u32,
    pub(crate) sent: u32,
}

/// Data to undo a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// `una` at the start of the reduction; `None` if there is nothing to undo.
    pub(crate) marker: Option<u64>,
    /// Threshold before the reduction.
    pub(crate) threshold: Option<u32>,
    /// Retransmissions since then that no duplicate SACK has proved unnecessary; `None` if nothing was retransmitted yet.
    pub(crate) unproved: Option<u32>,
    /// An echo of this time or later may be of a retransmission.
    pub(crate) first_resend_ms: Option<u64>,
}
