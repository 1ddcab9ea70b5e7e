//! Loss detection and repair: the decisions of Linux's `tcp_fastretrans_alert`.

use spdy_clock::Instant;

use super::ack::AckSummary;
use super::recovery_state::{Phase, Reduction};
use crate::tcp::send::sender::Sender;

impl Sender {
    /// Detects losses by an acknowledgement that is not ordinary progress.
    pub(crate) fn evaluate_losses(
        &mut self,
        now: Instant,
        una_before: u64,
        summary: &mut AckSummary,
    ) {
        if self.phase == Phase::Open {
            self.undo.first_resend_ms = None;
        } else if self.phase == Phase::Recovery && self.una >= self.high {
            self.duplicates = 0;
            if !self.try_undo_recovery(now, summary.echo_ms) {
                return;
            }
            self.end_reduction(now);
        }
        match self.phase {
            Phase::Recovery => {
                if !summary.una_advanced {
                    self.count_duplicate(summary);
                } else if self.try_undo_partial(now, summary.echo_ms, una_before) {
                    self.hold_lost = true;
                    return;
                }
                if self.try_undo_by_duplicates(now) {
                    self.keep_open();
                }
                self.detect_losses(now, summary);
                if self.phase == Phase::Recovery {
                    self.mark_first_hole(summary.una_advanced);
                    return;
                }
            }
            Phase::Loss => {
                self.on_ack_in_loss(now, summary);
                let copies = self.board.resent();
                self.detect_losses(now, summary);
                let copy_lost = self.board.resent() < copies;
                if self.phase != Phase::Open && !copy_lost {
                    return;
                }
            }
            Phase::Open | Phase::Disorder => {
                if !self.sack && summary.una_advanced {
                    self.duplicates = 0;
                }
                self.count_duplicate(summary);
                self.try_undo_by_duplicates(now);
                self.detect_losses(now, summary);
            }
        }
        let has_enough_duplicates = !self.uses_rack() && self.sacked() >= self.reordering;
        if self.board.lost() == 0 && !has_enough_duplicates {
            self.keep_open();
            return;
        }
        self.enter_recovery(now);
        self.mark_first_hole(true);
    }

    /// Without SACK a duplicate acknowledgement represents one delivered segment.
    fn count_duplicate(&mut self, summary: &AckSummary) {
        if !self.sack && summary.is_duplicate {
            self.add_duplicate();
        }
    }

    pub(crate) fn add_duplicate(&mut self) {
        self.duplicates = (self.duplicates + 1).min(self.board.len().saturating_sub(1));
    }

    fn detect_losses(&mut self, now: Instant, summary: &mut AckSummary) {
        if self.uses_rack() {
            if self.rack_detect(now) {
                summary.sets_timer = false; // the reordering timer stays
            }
        } else if self.sack {
            self.mark_below_duplicates();
        }
    }

    /// RFC 6675: a segment is lost if as many segments above it as the threshold were delivered. A retransmitted segment is not
    /// evaluated again: only the timer detects its second loss.
    fn mark_below_duplicates(&mut self) {
        let (mut above, mut lost) = (0, Vec::new());
        for (from_end, sent) in self.board.iter().rev().enumerate() {
            if sent.sacked {
                above += 1;
            } else if above >= self.reordering && !sent.lost && !sent.resent {
                lost.push(self.board.len() as usize - 1 - from_end);
            }
        }
        for index in lost {
            self.stats.losses_detected += u64::from(self.board.mark_lost(index));
        }
    }

    /// Without RACK: marks the first gap as lost when recovery begins, and when an acknowledgement stops at it.
    fn mark_first_hole(&mut self, may_mark: bool) {
        let head_waits = self
            .board
            .head()
            .is_some_and(|head| !head.sacked && !head.lost && !head.resent);
        if may_mark && head_waits && !self.uses_rack() {
            self.stats.losses_detected += u64::from(self.board.mark_lost(0));
        }
    }

    /// Begins a recovery: the window shrinks to the threshold.
    pub(crate) fn enter_recovery(&mut self, now: Instant) {
        self.stats.recoveries += 1;
        self.undo.threshold = None;
        self.begin_undo();
        if self.phase != Phase::Recovery {
            self.undo.threshold = Some(self.cwnd.current_threshold());
            self.begin_reduction();
        }
        self.phase = Phase::Recovery;
        self.cwnd.touch(now);
    }

    /// Sets the threshold and starts counting for the reduction.
    pub(crate) fn begin_reduction(&mut self) {
        self.high = self.nxt;
        self.probe = None;
        self.cwnd.count = 0;
        self.reduction = Reduction {
            prior_cwnd: self.cwnd.segments,
            ..Reduction::default()
        };
        self.cwnd.threshold = self.congestion.reduced_threshold(self.cwnd.segments);
    }

    fn end_reduction(&mut self, now: Instant) {
        if self.undo.marker.is_some() {
            self.cwnd.segments = match self.config.prr {
                true => self.cwnd.threshold,
                false => self.cwnd.segments.min(self.cwnd.threshold),
            };
            self.cwnd.touch(now);
        }
    }

    /// Reduces the window in recovery, for `delivered` segments that left the network.
    pub(crate) fn reduce_window(&mut self, delivered: u32, lost: u32, una_advanced: bool) {
        if delivered == 0 {
            return;
        }
        if self.config.prr {
            self.reduce_in_proportion(delivered, lost, una_advanced);
        } else {
            self.halve_rate(delivered);
        }
    }

    /// RFC 6937: while more segments are in flight than the threshold, send in proportion to delivered ones. Below it, grow as in
    /// slow start, but only without further losses.
    fn reduce_in_proportion(&mut self, delivered: u32, lost: u32, una_advanced: bool) {
        let Reduction { prior_cwnd, .. } = self.reduction;
        self.reduction.delivered += delivered;
        let Reduction {
            delivered: all,
            sent,
            ..
        } = self.reduction;
        let (threshold, in_flight) = (self.cwnd.threshold, self.in_flight());
        let mut more = match threshold.checked_sub(in_flight) {
            None => {
                let share =
                    (u64::from(threshold) * u64::from(all)).div_ceil(u64::from(prior_cwnd.max(1)));
                u32::try_from(share)
                    .unwrap_or(u32::MAX)
                    .saturating_sub(sent)
            }
            Some(room) => {
                let bound = all.saturating_sub(sent).max(delivered);
                (bound + u32::from(una_advanced && lost == 0)).min(room)
            }
        };
        // The first retransmission is always sent.
        more = more.max(u32::from(sent == 0));
        self.cwnd.segments = in_flight + more;
    }

    /// Before PRR: one segment less for every two acknowledgements, without a burst.
    fn halve_rate(&mut self, delivered: u32) {
        let steps = self.cwnd.count + delivered;
        self.cwnd.count = steps & 1;
        let floor = self.cwnd.threshold.max(2);
        let less = self
            .cwnd
            .segments
            .saturating_sub(steps >> 1)
            .max(floor.min(self.cwnd.segments));
        self.cwnd.segments = less.min(self.in_flight() + 1);
    }
}
