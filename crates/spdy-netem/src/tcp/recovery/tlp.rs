//! Tail loss probe (RFC 8985 §7): when acknowledgements stop, one more segment makes the receiver respond, long before the
//! retransmission timer.
//!
//! The probe is new data if there is some, else the last segment again. It is sent after two round trips, plus the receiver's
//! possible delay if a single segment is in flight.

use std::time::Duration;

use spdy_clock::Instant;

use super::recovery_state::{PendingProbe, Phase};
use crate::tcp::send::sender::{Sender, TimerKind};

/// Linux's minimum for a timer.
pub(crate) const MIN_TIMEOUT: Duration = Duration::from_millis(2);

/// Evidence of an acknowledgement about a probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeEvidence {
    /// It reported the probe as a duplicate.
    pub(crate) duplicate: bool,
    /// It has nothing new: a plain duplicate acknowledgement.
    pub(crate) is_bare_duplicate: bool,
}

impl Sender {
    /// Arms the probe timer instead of the retransmission timer, if a probe may be sent. `fresh` measures the timeout from now,
    /// otherwise from when the first segment was sent.
    pub(crate) fn schedule_probe(&mut self, now: Instant, fresh: bool) -> bool {
        let may = self.config.tlp && self.sack && !self.board.is_empty();
        if !may || self.phase != Phase::Open || self.board.sacked() > 0 {
            return false;
        }
        let mut timeout = match self.rtt.srtt_us() {
            0 => self.config.initial_rto,
            srtt => {
                // The receiver may delay the acknowledgement of a single segment.
                let slack = if self.board.len() == 1 {
                    self.config.min_rto
                } else {
                    MIN_TIMEOUT
                };
                Duration::from_micros(2 * srtt) + slack
            }
        };
        let rto = if fresh {
            self.rtt.rto()
        } else {
            self.remaining_rto(now)
        };
        if !rto.is_zero() {
            timeout = timeout.min(rto);
        }
        self.set_timer(TimerKind::LossProbe, now, timeout);
        true
    }

    /// The probe timer expired: a probe becomes due, if none is in flight.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant) {
        if self.probe.is_none() && !self.board.is_empty() {
            self.is_probe_due = true;
            self.stats.loss_probes += 1;
        }
        self.rearm_rto(now);
    }

    /// Evaluates the probe by an acknowledgement up to `ack`.
    pub(crate) fn evaluate_probe(&mut self, now: Instant, ack: u64, evidence: ProbeEvidence) {
        let Some(PendingProbe { end, was_repeat }) = self.probe else {
            return;
        };
        if ack < end {
            return;
        }
        if !was_repeat || evidence.duplicate {
            self.probe = None;
        } else if ack > end {
            // More than the probe was acknowledged: the probe repaired a loss that was not detected otherwise.
            self.probe = None;
            self.stats.recoveries += 1;
            self.begin_reduction();
            self.cwnd.segments = self.cwnd.threshold;
            self.cwnd.touch(now);
            self.keep_open();
        } else if evidence.is_bare_duplicate {
            self.probe = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::segment::{Flags, SackBlock, SackBlocks, Segment};
    use crate::tcp::config::TcpConfig;

    const MSS: usize = 1_000;

    fn send(sender: &mut Sender, now: Instant, bytes: usize) -> usize {
        sender.write(now, &vec![7; bytes]);
        std::iter::from_fn(|| sender.poll_transmit(now)).count()
    }

    fn ack(sender: &mut Sender, now: Instant, ack: u64, duplicate: Option<SackBlock>) {
        let mut sack = SackBlocks::default();
        if let Some(duplicate) = duplicate {
            sack.push(duplicate, 3);
        }
        let segment = Segment {
            seq: 1,
            ack,
            flags: Flags {
                ack: true,
                ..Flags::default()
            },
            window_bytes: 100_000,
            sack,
            timestamps: None,
            syn_options: None,
            payload: Bytes::new(),
        };
        sender.handle_ack(now, &segment);
    }

    /// Recoveries after a probe for segments that were only late, if the receiver reports the probe as a duplicate or does not.
    fn recoveries(reports_duplicate: bool) -> u64 {
        let mut sender = Sender::new(TcpConfig::today());
        sender.sack = true;
        sender.set_window(100_000);
        sender.start(Instant::ZERO, MSS);
        assert_eq!(send(&mut sender, Instant::ZERO, 2 * MSS), 2);
        let (_, due) = sender.timer.expect("a probe is armed");
        sender.handle_timeout(due);
        assert_eq!(send(&mut sender, due, 0), 1, "the probe");
        let now = due + MIN_TIMEOUT;
        ack(&mut sender, now, 2_001, None);
        if reports_duplicate {
            let (start, end) = (1_001, 2_001);
            ack(&mut sender, now, 2_001, Some(SackBlock { start, end }));
        }
        assert_eq!(send(&mut sender, now, MSS), 1);
        ack(&mut sender, now + MIN_TIMEOUT, 3_001, None);
        assert_eq!(
            sender.rack.steps, 1,
            "a probe says nothing about reordering"
        );
        sender.stats.recoveries
    }

    /// Regression: the report was ignored if nothing was in flight any more. The next acknowledgement then counted as proof of a loss.
    #[test]
    fn a_late_report_of_a_needless_probe_is_no_loss() {
        assert_eq!(recoveries(true), 0);
        assert_eq!(recoveries(false), 1, "the probe repaired a loss");
    }
}
