//! What an acknowledgement changes: the order of Linux's `tcp_ack`.
//!
//! First the peer's window and `una`; then what was delivered, selectively and for good; the round
//! trip; a probe's verdict; loss and recovery; the timer; and the window last.

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
    /// It contained nothing new: no data, no window, nothing acknowledged.
    pub(crate) is_duplicate: bool,
    /// It carried a duplicate SACK.
    pub(crate) duplicate_block: bool,
    /// And that was the probe's.
    pub(crate) probe_duplicated: bool,
    /// Something never sent again was delivered from before the recovery.
    pub(crate) original_delivered: bool,
    /// Segments that it made us count as lost.
    pub(crate) lost: u32,
    pub(crate) echo_ms: Option<u64>,
    /// The timer should be restarted.
    pub(crate) sets_timer: bool,
    /// First and last sending time of what was newly and selectively acknowledged.
    sacked_times: Option<(Instant, Instant)>,
    /// The same of what was acknowledged for good, and whether some of it was sent again.
    acked_times: Option<(Instant, Instant)>,
    resent_acked: bool,
}

impl AckSummary {
    pub(crate) fn note_sacked_time(&mut self, sent_at: Instant) {
        let first = self.sacked_times.map_or(sent_at, |(first, _)| first);
        self.sacked_times = Some((first, sent_at));
    }
}

impl Sender {
    /// Takes the acknowledgement that every segment carries.
    pub(crate) fn handle_ack(&mut self, now: Instant, segment: &Segment) {
        if segment.ack > self.nxt || segment.ack < self.una {
            return;
        }
        self.probes_unanswered = 0;
        let una_before = self.una;
        let mut news = AckSummary {
            una_advanced: segment.ack > self.una,
            echo_ms: segment
                .timestamps
                .map(|times| times.echo_ms)
                .filter(|echo| *echo > 0),
            ..AckSummary::default()
        };
        let window_told = self.update_window(segment);
        self.una = segment.ack;
        self.hold_lost = false;
        if news.una_advanced {
            self.timeouts_in_row = 0;
        }
        if self.board.is_empty() {
            return;
        }
        let carries_data = segment.seq_len() > 0;
        news.is_duplicate = !(carries_data || window_told || news.una_advanced);
        let lost_before = self.stats.losses_detected;

        if self.sack && !segment.sack.is_empty() {
            self.read_sack(now, segment, &mut news);
        }
        self.take_acked(now, &mut news);
        self.take_round_trip(now, &news);
        news.sets_timer |= self.head_is_younger(&news);
        let evidence = ProbeEvidence {
            duplicate: news.probe_duplicated,
            is_bare_duplicate: news.is_duplicate && news.sacked == 0,
        };
        self.judge_probe(now, segment.ack, evidence);

        news.is_duplicate &= !news.duplicate_block;
        let quiet = self.phase == Phase::Open
            && (carries_data || window_told || news.una_advanced)
            && news.sacked == 0
            && !news.duplicate_block;
        if !quiet {
            self.judge_losses(now, una_before, &mut news);
        }
        if news.sets_timer && !self.schedule_probe(now, true) {
            self.rearm_rto(now);
        }
        news.lost = u32::try_from(self.stats.losses_detected - lost_before).unwrap_or(u32::MAX);
        self.adjust_window(now, &news);
        self.grow_buffer();
    }

    /// RFC 9293 §3.10.7.4: a segment that is newer, or that widens the window, tells of it.
    fn update_window(&mut self, segment: &Segment) -> bool {
        let wider = segment.window_bytes > self.window_bytes || segment.window_bytes == 0;
        let tells = segment.ack > self.una
            || segment.seq > self.window_seq
            || (segment.seq == self.window_seq && wider);
        if tells {
            self.window_bytes = segment.window_bytes;
            self.window_seq = segment.seq;
        }
        tells
    }

    /// Takes what is acknowledged for good off the scoreboard.
    fn take_acked(&mut self, now: Instant, news: &mut AckSummary) {
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
                news.resent_acked = true;
            } else if !sent.sacked {
                let first = news.acked_times.map_or(sent.sent_at, |(first, _)| first);
                news.acked_times = Some((first, sent.sent_at));
                news.original_delivered |= sent.end <= self.high;
                lowest_late = lowest_late.or(Some(sent.seq).filter(|seq| *seq < highest_before));
            }
            if !sent.sacked {
                news.delivered += 1;
                if !is_originals(&sent, news.echo_ms) {
                    self.rack.on_delivered(now, &sent, min_rtt);
                }
            }
        }
        news.sets_timer = acked > 0;
        if !self.sack && acked > 0 {
            // What the duplicates stood for is among what is acknowledged now.
            self.duplicates = self.duplicates.saturating_sub(acked - 1);
            self.duplicates = self.duplicates.min(self.board.len().saturating_sub(1));
        }
        if let Some(low) = lowest_late {
            self.note_reordering(low);
        }
        news.delivered += news.sacked;
    }

    /// The round trip: of the first segment acknowledged, if none of them was sent again; else of
    /// the first selectively acknowledged; else by the peer's echo of our clock, which a
    /// retransmission does not blur. Without the last, a link slower than the first timeout would
    /// repeat every segment for ever.
    fn take_round_trip(&mut self, now: Instant, news: &AckSummary) {
        let acked = news.acked_times.filter(|_| !news.resent_acked);
        let echoed = || {
            let echo_ms = news.echo_ms.filter(|_| news.una_advanced)?;
            let trip_ms = clock_ms(now).saturating_sub(echo_ms).max(1);
            Some((trip_ms * 1_000, trip_ms * 1_000))
        };
        let since = |(first, last)| (micros(now - first), micros(now - last));
        let sample = acked.or(news.sacked_times).map(since).or_else(echoed);
        let Some((first_us, last_us)) = sample else {
            return;
        };
        self.rtt.note_min(last_us);
        self.rtt.sample(first_us, self.una, self.nxt);
        if self.rtt_can_end_slow_start(now, last_us) {
            self.cwnd.threshold = self.cwnd.segments;
        }
    }

    /// Whether the head was sent again after what is now selectively acknowledged: then the timer
    /// runs for the head's copy. Else a stream of such news would push the timer for ever.
    fn head_is_younger(&self, news: &AckSummary) -> bool {
        let head = self.board.head();
        news.sacked_times
            .zip(head)
            .is_some_and(|((first, _), head)| head.sent_at > first)
    }

    fn rtt_can_end_slow_start(&mut self, now: Instant, sample_us: u64) -> bool {
        let slow_start = self.cwnd.in_slow_start();
        let round = (self.una, self.nxt);
        self.congestion
            .on_sample(now, sample_us, self.cwnd.segments, slow_start, round)
    }

    /// Whether segments may be found lost by time of sending.
    pub(crate) fn uses_rack(&self) -> bool {
        self.sack && self.config.loss_detection == LossDetection::Rack
    }

    /// Shrinks the window in recovery; else grows it, if it was the limit.
    fn adjust_window(&mut self, now: Instant, news: &AckSummary) {
        if self.phase == Phase::Recovery {
            self.reduce_window(news.delivered, news.lost, news.una_advanced);
            return;
        }
        let reorders = self.reordering > DUPLICATE_THRESHOLD;
        let progress = news.una_advanced || (reorders && news.sacked > 0);
        if !progress {
            return;
        }
        self.cwnd.touch(now);
        if !self.cwnd.is_limiting() {
            return;
        }
        let mut acked = news.delivered;
        if self.cwnd.in_slow_start() {
            acked = self.cwnd.slow_start(acked);
        }
        if acked > 0 {
            let every = self.congestion.count(now, self.cwnd.segments, acked);
            self.cwnd.avoid(every, acked);
        }
    }
}

/// Whether `sent` was sent again for nothing: the acknowledgement echoes a time before that, so it is the original's.
/// Taken for the copy's, it would make RACK think everything lost that was sent with the original.
fn is_originals(sent: &SentSegment, echo_ms: Option<u64>) -> bool {
    sent.ever_resent && echo_ms.is_some_and(|echo| echo < clock_ms(sent.sent_at))
}

/// The clock that segments show the peer: milliseconds, never zero.
pub(crate) fn clock_ms(now: Instant) -> u64 {
    now.as_nanos() / 1_000_000 + 1
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
