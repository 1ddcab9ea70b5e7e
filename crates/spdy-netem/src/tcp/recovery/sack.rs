//! Evaluates selective acknowledgements (RFC 2018), including duplicate ones (RFC 2883).

use std::time::Duration;

use spdy_clock::Instant;

use super::ack::AckSummary;
use crate::segment::{SackBlock, Segment};
use crate::tcp::send::sender::Sender;

/// Maximum threshold after reordering, segments.
const MAX_REORDERING: u32 = 300;

impl Sender {
    /// Marks the segments that `segment` selectively acknowledges.
    pub(crate) fn read_sack(&mut self, now: Instant, segment: &Segment, summary: &mut AckSummary) {
        let mut blocks = segment.sack.as_slice();
        if let Some(duplicate) = duplicate_block(blocks, segment.ack) {
            blocks = &blocks[1..];
            summary.duplicate_block = true;
            summary.probe_duplicated = self.probe.is_some_and(|probe| duplicate.end == probe.end);
            self.note_duplicate(duplicate.start);
            // As in Linux: a probe is sent by a timer, so its duplicate says nothing about RACK's window.
            if self.rack.reordering_seen && !summary.probe_duplicated {
                self.rack.on_duplicate(self.una, self.nxt);
            }
        }
        let highest_before = self.highest_sacked;
        let mut lowest_late = None;
        let min_rtt = self.min_rtt();
        for block in blocks {
            if block.end > self.nxt || block.start < self.una {
                continue;
            }
            for index in self.board.within(block.start, block.end) {
                let sent = self.board.segment(index);
                if sent.sacked {
                    continue;
                }
                self.rack.on_delivered(now, sent, min_rtt);
                if !sent.ever_resent {
                    summary.note_sacked_time(sent.sent_at);
                    summary.original_delivered |= sent.end <= self.high;
                    if sent.seq < highest_before {
                        lowest_late =
                            Some(lowest_late.map_or(sent.seq, |low: u64| low.min(sent.seq)));
                    }
                }
                self.board.mark_sacked(index);
                summary.sacked += 1;
            }
            self.highest_sacked = self.highest_sacked.max(block.end);
        }
        if let Some(low) = lowest_late {
            self.note_reordering(low);
        }
    }

    /// An original arrived at `low`, below segments that were delivered before: the network reorders.
    pub(crate) fn note_reordering(&mut self, low: u64) {
        let Some(depth) = self
            .highest_sacked
            .checked_sub(low)
            .filter(|depth| *depth > 0)
        else {
            return;
        };
        self.rack.reordering_seen = true;
        let segments = depth.div_ceil(self.mss_bytes.max(1) as u64);
        let segments = u32::try_from(segments)
            .unwrap_or(MAX_REORDERING)
            .min(MAX_REORDERING);
        self.reordering = self.reordering.max(segments);
    }

    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        self.rtt.min_us().map(Duration::from_micros)
    }
}

/// The first block, if it reports a duplicate: it is before the acknowledgement, or within the second block.
fn duplicate_block(blocks: &[SackBlock], ack: u64) -> Option<SackBlock> {
    let first = *blocks.first()?;
    let within = |outer: &SackBlock| outer.start <= first.start && first.end <= outer.end;
    (first.start < ack || blocks.get(1).is_some_and(within)).then_some(first)
}
