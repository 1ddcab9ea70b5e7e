//! The retransmission timer (RFC 6298), and F-RTO's test for spurious timeouts (RFC 5682).

use spdy_clock::Instant;

use super::ack::AckSummary;
use super::recovery_state::Phase;
use crate::tcp::config::LossDetection;
use crate::tcp::send::sender::{Sender, TimerKind};

impl Sender {
    /// Handles an expired timer: all segments that could have been acknowledged by now count as lost, and the window is one segment.
    /// Then [`has_given_up`](Self::has_given_up) states whether the connection must be given up.
    pub(crate) fn on_rto(&mut self, now: Instant) {
        if self.board.is_empty() {
            return;
        }
        self.stats.timeouts += 1;
        self.timeouts_in_row += 1;
        self.enter_loss(now);
        self.rtt.back_off();
        self.set_timer(TimerKind::Retransmit, now, self.rtt.rto());
    }

    /// True after more consecutive timeouts than the limit, or as many window probes without a response.
    pub(crate) fn has_given_up(&self) -> bool {
        self.timeouts_in_row > self.config.data_retries || self.gave_up_probing
    }

    fn enter_loss(&mut self, now: Instant) {
        let first = self.timeouts_in_row == 1;
        let is_new = !self.phase.is_recovering();
        self.duplicates = 0;
        self.mark_timed_out(now);
        if is_new || self.una >= self.high || (self.phase == Phase::Loss && first) {
            self.undo.threshold = Some(self.cwnd.current_threshold());
            self.reduction.prior_cwnd = self.cwnd.segments;
            self.cwnd.threshold = self.congestion.reduced_threshold(self.cwnd.segments);
            self.begin_undo();
        }
        self.cwnd.segments = self.in_flight() + 1;
        self.cwnd.count = 0;
        self.cwnd.touch(now);
        self.probe = None;
        self.is_probe_due = false;
        self.phase = Phase::Loss;
        self.high = self.nxt;
        self.hold_lost = false;
        self.frto = self.config.frto && (is_new || !first);
        self.congestion.on_timeout(now, self.nxt);
    }

    /// With RACK, segments that were sent less than a round trip ago may still arrive.
    fn mark_timed_out(&mut self, now: Instant) {
        let rack = self.config.loss_detection == LossDetection::Rack && self.sack;
        for index in 0..self.board.len() as usize {
            let sent = self.board.segment(index);
            let may_come = rack
                && index > 0
                && !self
                    .rack
                    .time_until_lost(now, sent, Default::default())
                    .is_zero();
            if !may_come {
                self.board.mark_lost(index);
            }
        }
    }

    /// Handles an acknowledgement after a timeout.
    pub(crate) fn on_ack_in_loss(&mut self, now: Instant, summary: &AckSummary) {
        let recovered = self.una >= self.high;
        if summary.una_advanced && self.try_undo_timeout(now, summary.echo_ms, false) {
            return;
        }
        if self.frto {
            // A segment that was never retransmitted was delivered: not everything was lost.
            if summary.original_delivered && self.try_undo_timeout(now, summary.echo_ms, true) {
                return;
            }
            if self.nxt > self.high {
                if summary.sacked > 0 || summary.is_duplicate {
                    self.frto = false;
                }
            } else if summary.una_advanced && !recovered {
                self.high = self.nxt;
                if self.has_unsent() && self.window_admits_next() {
                    self.hold_lost = true; // new data first; the next acknowledgement decides
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(now, summary.echo_ms);
        } else if !self.sack {
            // A duplicate after the timeout is caused by the retransmission: no second recovery.
            if self.nxt > self.high && summary.is_duplicate {
                self.add_duplicate();
            } else if summary.una_advanced {
                self.duplicates = 0;
            }
        }
    }
}
