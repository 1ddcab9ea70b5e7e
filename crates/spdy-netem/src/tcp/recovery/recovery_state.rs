//! What the sender keeps of losses: the phase, RACK, the probe that is out, and what may be taken back.
//!
//! The types only. `fast_recovery.rs`, `rack.rs`, `tlp.rs` and `undo.rs` have the methods of the [`Sender`](crate::tcp::send::sender::Sender) that use them.

use std::time::Duration;

use spdy_clock::Instant;

use crate::tcp::send::scoreboard::SentSegment;

/// Round trips (recoveries) that a widened window lasts.
const WIDE_RECOVERIES: u8 = 16;

/// What the sender believes of the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// Nothing is wrong.
    Open,
    /// Something was delivered out of order.
    Disorder,
    /// A loss is being repaired; the window shrinks to the threshold.
    Recovery,
    /// The timer expired; everything starts from a window of one.
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
    /// The delivered segment that was sent last: when, and where it ended.
    pub(crate) newest: Option<(Instant, u64)>,
    /// Its round trip.
    rtt: Duration,
    /// Whether `newest` moved in this acknowledgement.
    pub(crate) advanced: bool,
    /// Whether something was ever delivered out of the order of sending.
    pub(crate) reordering_seen: bool,
    /// Quarters of the least round trip in the reordering window.
    pub(crate) steps: u8,
    /// Recoveries until `steps` is one again.
    persist: u8,
    /// No second step before this is acknowledged.
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

    /// A segment was delivered for the first time. A retransmission that comes back sooner than any
    /// round trip is the original's acknowledgement, and says nothing.
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

    /// A duplicate SACK: the window was too small. At most one step a round trip.
    pub(crate) fn on_duplicate(&mut self, una: u64, nxt: u64) {
        if una >= self.step_end {
            self.steps = self.steps.saturating_add(1);
            self.persist = WIDE_RECOVERIES;
            self.step_end = nxt;
        }
    }

    /// A recovery ended: in time the window narrows again.
    pub(crate) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Time until `sent` counts as lost, under a reordering window.
    pub(crate) fn time_until_lost(
        &self,
        now: Instant,
        sent: &SentSegment,
        window: Duration,
    ) -> Duration {
        (sent.sent_at + self.rtt + window) - now
    }
}

/// A probe that was sent and not yet judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PendingProbe {
    /// Next sequence number when it was sent.
    pub(crate) end: u64,
    /// It repeated a segment.
    pub(crate) was_repeat: bool,
}

/// Proportional rate reduction's account of one recovery (RFC 6937).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reduction {
    /// The window before.
    pub(crate) prior_cwnd: u32,
    pub(crate) delivered: u32,
    pub(crate) sent: u32,
}

/// What is needed to take back a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    /// `una` when the reduction began; none if there is nothing to take back.
    pub(crate) marker: Option<u64>,
    /// Threshold before the reduction.
    pub(crate) threshold: Option<u32>,
    /// Retransmissions since then that no duplicate SACK has proved needless; none if nothing was
    /// sent again yet.
    pub(crate) unproved: Option<u32>,
    /// Peer's echo of this or later may be of a retransmission.
    pub(crate) first_resend_ms: Option<u64>,
}
