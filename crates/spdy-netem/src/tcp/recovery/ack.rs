//! Handles acknowledgements in the order of Linux's `tcp_ack`.
//!
//! First the peer's window and `una`; then selective and cumulative acknowledgements; the round trip; the evaluation of a probe; loss
//! and recovery; the timer; and finally the window.

use std::time::Duration;

use spdy_clock::Instant;

use super::recovery_state::Phase;
use super::tlp::ProbeEvidence;
use crate::segment::Segment;
use crate::tcp::config::LossDetection;
use crate::tcp::send::scoreboard::SentSegment;
use crate::tcp::send::sender::{DUPLICATE_THRESHOLD, Fin, Sender};

/// The information of one acknowledgement.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckSummary {
    pub(crate) una_advanced: bool,
    /// Segments delivered for the first time, by their SACK.
    pub(crate) sacked: u32,
    /// Segments delivered for the first time, in all.
    pub(crate) delivered: u32,
    /// It has nothing new: no data, no window, no acknowledgement.
    pub(crate) is_duplicate: bool,
    /// It has a duplicate SACK.
    pub(crate) duplicate_block: bool,
    /// The duplicate SACK is of the probe.
    pub(crate) probe_duplicated: bool,
    /// A segment from before the recovery that was never retransmitted was delivered.
    pub(crate) original_delivered: bool,
    /// Segments that it marks as lost.
    pub(crate) lost: u32,
    pub(crate) echo_ms: Option<u64>,
    /// The timer should be restarted.
    pub(crate) sets_timer: bool,
    /// First and last sending time of newly and selectively acknowledged segments.
    sacked_times: Option<(Instant, Instant)>,
    /// The same of cumulatively acknowledged segments, and whether some were retransmitted.
    acked_times: Option<(Instant, Instant)>,
    resent_acked: bool,
}

impl AckSummary {
    pub(crate) fn note_sacked_time(&mut self, sent_at: Instant) {
        let first = self.sacked_times.map_or(sent_at, |(first, _)| first);
        self.sacked_times = Some((first, sent_at));
    }

    fn probe_evidence(&self) -> ProbeEvidence {
        ProbeEvidence {
            duplicate: self.probe_duplicated,
            is_bare_duplicate: self.is_duplicate && self.sacked == 0,
        }
    }
}

impl Sender {
    /// Handles the acknowledgement of a segment.
    pub(crate) fn handle_ack(&mut self, now: Instant, segment: &Segment) {
        if segment.ack > self.nxt || segment.ack < self.una {
            return;
        }
        self.probes_unanswered = 0;
        self.is_space_check_due = true;
        let una_before = self.una;
        let mut summary = AckSummary {
            una_advanced: segment.ack > self.una,
            echo_ms: segment
                .timestamps
                .map(|times| times.echo_ms)
                .filter(|echo| *echo > 0),
            ..AckSummary::default()
        };
        let window_updated = self.update_window(segment);
        self.una = segment.ack;
        self.hold_lost = false;
        if summary.una_advanced {
            self.timeouts_in_row = 0;
        }
        let carries_data = segment.seq_len() > 0;
        summary.is_duplicate = !(carries_data || window_updated || summary.una_advanced);
        let lost_before = self.stats.losses_detected;

        if self.sack && !segment.sack.is_empty() {
            self.read_sack(now, segment, &mut summary);
        }
        if self.board.is_empty() {
            // Nothing is in flight. The receiver may still report duplicates: of the probe, or of needless retransmissions.
            if summary.duplicate_block {
                self.try_undo_by_duplicates(now);
            }
            self.evaluate_probe(now, segment.ack, summary.probe_evidence());
            return;
        }
        self.take_acked(now, &mut summary);
        self.take_round_trip(now, &summary);
        summary.sets_timer |= self.head_is_younger(&summary);
        self.evaluate_probe(now, segment.ack, summary.probe_evidence());

        summary.is_duplicate &= !summary.duplicate_block;
        let quiet = self.phase == Phase::Open
            && (carries_data || window_updated || summary.una_advanced)
            && summary.sacked == 0
            && !summary.duplicate_block;
        if !quiet {
            self.evaluate_losses(now, una_before, &mut summary);
        }
        if summary.sets_timer && !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
        summary.lost = u32::try_from(self.stats.losses_detected - lost_before).unwrap_or(u32::MAX);
        self.adjust_window(now, &summary);
    }

    /// RFC 9293 §3.10.7.4: a newer segment, or one with a larger window, updates it.
    fn update_window(&mut self, segment: &Segment) -> bool {
        let wider = segment.window_bytes > self.window_bytes || segment.window_bytes == 0;
        let is_newer = segment.ack > self.una
            || segment.seq > self.window_seq
            || (segment.seq == self.window_seq && wider);
        if is_newer {
            self.set_window(segment.window_bytes);
            self.window_seq = segment.seq;
        }
        is_newer
    }

    /// Removes acknowledged segments from the scoreboard.
    fn take_acked(&mut self, now: Instant, summary: &mut AckSummary) {
        let min_rtt = self.min_rtt();
        let highest_before = self.highest_sacked;
        let mut lowest_late = None;
        let mut acked = 0;
        while let Some(sent) = self.board.pop_acked(self.una) {
            acked += 1;
            if sent.fin {
                self.fin = Fin::Acked;
            }
            if sent.ever_resent {
                summary.resent_acked = true;
            } else if !sent.sacked {
                let first = summary.acked_times.map_or(sent.sent_at, |(first, _)| first);
                summary.acked_times = Some((first, sent.sent_at));
                summary.original_delivered |= sent.end <= self.high;
                lowest_late = lowest_late.or(Some(sent.seq).filter(|seq| *seq < highest_before));
            }
            if !sent.sacked {
                summary.delivered += 1;
                if !is_originals(&sent, summary.echo_ms) {
                    self.rack.on_delivered(now, &sent, min_rtt);
                }
            }
        }
        summary.sets_timer = acked > 0;
        if !self.sack && acked > 0 {
            // The segments of the duplicate acknowledgements are acknowledged now.
            self.duplicates = self.duplicates.saturating_sub(acked - 1);
            self.duplicates = self.duplicates.min(self.board.len().saturating_sub(1));
        }
        if let Some(low) = lowest_late {
            self.note_reordering(low);
        }
        summary.delivered += summary.sacked;
    }

    /// Samples the round trip: of the first acknowledged segment, if none of them was retransmitted; else of the first selectively
    /// acknowledged one; else by the peer's echo of our timestamp, which is unambiguous after a retransmission. Without the last one,
    /// a link slower than the first timeout would repeat every segment forever.
    fn take_round_trip(&mut self, now: Instant, summary: &AckSummary) {
        let acked = summary.acked_times.filter(|_| !summary.resent_acked);
        let echoed = || {
            let echo_ms = summary.echo_ms.filter(|_| summary.una_advanced)?;
            let trip_ms = clock_ms(now).saturating_sub(echo_ms).max(1);
            Some((trip_ms * 1_000, trip_ms * 1_000))
        };
        let since = |(first, last)| (micros(now - first), micros(now - last));
        let sample = acked.or(summary.sacked_times).map(since).or_else(echoed);
        let Some((first_us, last_us)) = sample else {
            return;
        };
        self.rtt.note_min(last_us);
        self.rtt.sample(first_us, self.una, self.nxt);
        if self.rtt_can_end_slow_start(now, last_us) {
            self.cwnd.threshold = self.cwnd.segments;
        }
    }

    /// True if the first segment was retransmitted after the selectively acknowledged segments were sent: then the timer is for the
    /// retransmission. Otherwise a stream of such acknowledgements would postpone the timer forever.
    fn head_is_younger(&self, summary: &AckSummary) -> bool {
        let head = self.board.head();
        summary
            .sacked_times
            .zip(head)
            .is_some_and(|((first, _), head)| head.sent_at > first)
    }

    fn rtt_can_end_slow_start(&mut self, now: Instant, sample_us: u64) -> bool {
        let slow_start = self.cwnd.in_slow_start();
        let round = (self.una, self.nxt);
        self.congestion
            .on_sample(now, sample_us, self.cwnd.segments, slow_start, round)
    }

    /// True if losses are detected by sending time.
    pub(crate) fn uses_rack(&self) -> bool {
        self.sack && self.config.loss_detection == LossDetection::Rack
    }

    /// Reduces the window in recovery; otherwise grows it, if it was the limit.
    fn adjust_window(&mut self, now: Instant, summary: &AckSummary) {
        if self.phase == Phase::Recovery {
            self.reduce_window(summary.delivered, summary.lost, summary.una_advanced);
            return;
        }
        let reorders = self.reordering > DUPLICATE_THRESHOLD;
        let progress = summary.una_advanced || (reorders && summary.sacked > 0);
        if !progress {
            return;
        }
        self.cwnd.touch(now);
        if !self.cwnd.is_limiting() {
            return;
        }
        let mut acked = summary.delivered;
        if self.cwnd.in_slow_start() {
            acked = self.cwnd.slow_start(acked);
        }
        if acked > 0 {
            let every = self.congestion.count(now, self.cwnd.segments, acked);
            self.cwnd.avoid(every, acked);
        }
    }
}

/// True if `sent` was retransmitted unnecessarily: the echo is older than the retransmission, so the acknowledgement is for the
/// original. If it counted for the retransmission, RACK would mark everything as lost that was sent with the original.
fn is_originals(sent: &SentSegment, echo_ms: Option<u64>) -> bool {
    sent.ever_resent && echo_ms.is_some_and(|echo| echo < clock_ms(sent.sent_at))
}

/// The clock in timestamps: milliseconds, never zero.
pub(crate) fn clock_ms(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000 + 1
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
