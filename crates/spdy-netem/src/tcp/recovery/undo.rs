//! Undoes an unnecessary reduction.
//!
//! There are two proofs that no segment was lost. An acknowledgement echoes a time before the first retransmission (Eifel, RFC 3522),
//! so the original arrived; or there are duplicate SACKs for all retransmissions (RFC 3708). The window is then restored.

use spdy_clock::Instant;

use super::recovery_state::Phase;
use crate::tcp::send::sender::Sender;

impl Sender {
    /// Records the start of a reduction, which may be undone later.
    pub(crate) fn begin_undo(&mut self) {
        self.undo.marker = Some(self.una);
        self.undo.unproved = Some(self.board.resent()).filter(|resent| *resent > 0);
    }

    /// Records a retransmission.
    pub(crate) fn note_resend(&mut self, clock_ms: u64) {
        self.undo.unproved = Some(self.undo.unproved.unwrap_or(0) + 1);
        self.undo.first_resend_ms.get_or_insert(clock_ms);
    }

    /// Handles a duplicate SACK for `start`.
    pub(crate) fn note_duplicate(&mut self, start: u64) {
        if self.undo.marker.is_some_and(|marker| start >= marker)
            && let Some(unproved) = &mut self.undo.unproved
        {
            *unproved = unproved.saturating_sub(1);
        }
    }

    /// True if an original was acknowledged, by its echo.
    pub(crate) fn is_original(&self, echo_ms: Option<u64>) -> bool {
        match (self.undo.first_resend_ms, echo_ms) {
            (Some(first), Some(echo)) => echo < first,
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    fn may_undo(&self, echo_ms: Option<u64>) -> bool {
        let proved = self.undo.unproved == Some(0) || self.is_original(echo_ms);
        self.config.undo && self.undo.marker.is_some() && proved
    }

    fn undo_reduction(&mut self, now: Instant, unmark_lost: bool) {
        if unmark_lost {
            self.board.unmark_lost();
        }
        if let Some(threshold) = self.undo.threshold {
            self.cwnd.segments = self.cwnd.segments.max(self.reduction.prior_cwnd);
            self.cwnd.threshold = self.cwnd.threshold.max(threshold);
        }
        self.cwnd.touch(now);
        self.undo.marker = None;
        self.rack.advanced = true; // check the remaining segments again
        self.stats.undos += 1;
    }

    /// The phase is Open unless a segment is still out of order.
    pub(crate) fn keep_open(&mut self) {
        let is_disordered = self.sacked() + self.board.lost() > 0 || self.board.resent() > 0;
        let phase = if is_disordered {
            Phase::Disorder
        } else {
            Phase::Open
        };
        if self.phase != phase {
            self.phase = phase;
            self.high = self.nxt;
        }
    }

    /// Handles the complete acknowledgement of a recovery: undoes it if it was unnecessary, and returns to Open. `false` if the
    /// recovery must continue a little longer.
    pub(crate) fn try_undo_recovery(&mut self, now: Instant, echo_ms: Option<u64>) -> bool {
        if self.may_undo(echo_ms) {
            self.undo_reduction(now, false);
        } else {
            self.rack.on_recovered();
        }
        if !self.sack && self.una == self.high && self.board.resent() > 0 {
            // RFC 6582: duplicates of retransmissions must not start another recovery.
            return false;
        }
        self.phase = Phase::Open;
        self.undo.first_resend_ms = None;
        true
    }

    /// Handles the partial acknowledgement of a recovery by an original: `true` if lost marks must wait, because retransmissions are
    /// still in flight.
    pub(crate) fn try_undo_partial(
        &mut self,
        now: Instant,
        echo_ms: Option<u64>,
        low: u64,
    ) -> bool {
        if !self.config.undo || self.undo.marker.is_none() || !self.is_original(echo_ms) {
            return false;
        }
        self.note_reordering(low);
        if self.board.resent() > 0 {
            return true;
        }
        self.undo.first_resend_ms = None;
        self.undo_reduction(now, true);
        self.keep_open();
        false
    }

    /// True if duplicate SACKs proved every retransmission unnecessary, and the reduction was undone.
    pub(crate) fn try_undo_by_duplicates(&mut self, now: Instant) -> bool {
        let proved = self.undo.marker.is_some() && self.undo.unproved == Some(0);
        if self.config.undo && proved {
            self.undo_reduction(now, false);
        }
        self.config.undo && proved
    }

    /// Undoes an unnecessary timeout; `by_frto` is a proof by itself.
    pub(crate) fn try_undo_timeout(
        &mut self,
        now: Instant,
        echo_ms: Option<u64>,
        by_frto: bool,
    ) -> bool {
        let may = self.config.undo && self.undo.marker.is_some() && by_frto;
        if !may && !self.may_undo(echo_ms) {
            return false;
        }
        self.undo_reduction(now, true);
        self.timeouts_in_row = 0;
        if by_frto || self.sack {
            self.phase = Phase::Open;
        }
        true
    }
}
