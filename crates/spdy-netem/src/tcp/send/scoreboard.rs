//! Sent and unacknowledged segments (RFC 6675).
//!
//! ```text
//!  una                                                   nxt
//!   |  lost  | lost, sent again | sacked |  in flight ... |
//! ```
//!
//! In flight = all - sacked - lost + sent again. The counts are stored beside the queue, so a common acknowledgement without losses
//! costs nothing for segments in flight.

use std::collections::VecDeque;

use bytes::Bytes;
use spdy_clock::Instant;

/// A sent segment.
#[derive(Clone, Debug)]
pub(crate) struct SentSegment {
    pub(crate) seq: u64,
    /// One past its last sequence number; a FIN counts.
    pub(crate) end: u64,
    pub(crate) payload: Bytes,
    pub(crate) push: bool,
    pub(crate) fin: bool,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// Retransmitted, and the retransmission is not marked as lost.
    pub(crate) resent: bool,
    /// Ever retransmitted: its acknowledgement gives no round trip.
    pub(crate) ever_resent: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    queue: VecDeque<SentSegment>,
    sacked: u32,
    lost: u32,
    resent: u32,
}

impl Scoreboard {
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    pub(crate) fn resent(&self) -> u32 {
        self.resent
    }

    /// Segments believed to be in the network.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.len() + self.resent).saturating_sub(self.sacked + self.lost)
    }

    pub(crate) fn head(&self) -> Option<&SentSegment> {
        self.queue.front()
    }

    pub(crate) fn tail_index(&self) -> Option<usize> {
        self.queue.len().checked_sub(1)
    }

    pub(crate) fn segment(&self, index: usize) -> &SentSegment {
        &self.queue[index]
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &SentSegment> {
        self.queue.iter()
    }

    pub(crate) fn push(&mut self, sent: SentSegment) {
        self.queue.push_back(sent);
    }

    /// Removes the first segment if all of it is before `ack`.
    pub(crate) fn pop_acked(&mut self, ack: u64) -> Option<SentSegment> {
        let sent = self.queue.pop_front_if(|sent| sent.end <= ack)?;
        self.sacked -= u32::from(sent.sacked);
        self.lost -= u32::from(sent.lost);
        self.resent -= u32::from(sent.resent);
        Some(sent)
    }

    /// Indices of the segments that are completely within `start..end`.
    pub(crate) fn within(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let first = self.queue.partition_point(|sent| sent.seq < start);
        let last = self.queue.partition_point(|sent| sent.end <= end);
        first..last.max(first)
    }

    /// Marks a segment as delivered; it is neither lost nor in flight any more.
    pub(crate) fn mark_sacked(&mut self, index: usize) {
        let sent = &mut self.queue[index];
        assert!(!sent.sacked, "sacked twice: {sent:?}");
        sent.sacked = true;
        self.sacked += 1;
        self.lost -= u32::from(std::mem::take(&mut sent.lost));
        self.resent -= u32::from(std::mem::take(&mut sent.resent));
    }

    /// Marks a segment or its retransmission as lost; `true` if it was not marked before.
    pub(crate) fn mark_lost(&mut self, index: usize) -> bool {
        let sent = &mut self.queue[index];
        if sent.sacked {
            return false;
        }
        let copy = std::mem::take(&mut sent.resent);
        self.resent -= u32::from(copy);
        let first = !std::mem::replace(&mut sent.lost, true);
        self.lost += u32::from(first);
        copy || first
    }

    /// Removes all marks of loss.
    pub(crate) fn unmark_lost(&mut self) {
        for sent in &mut self.queue {
            sent.lost = false;
        }
        self.lost = 0;
    }

    /// The first lost segment that waits for its retransmission.
    pub(crate) fn next_lost(&self) -> Option<usize> {
        if self.lost <= self.resent {
            return None;
        }
        self.queue.iter().position(|sent| sent.lost && !sent.resent)
    }

    /// Records a retransmission at `now`. `counted` means that it is in flight in addition to the loss; a probe replaces the segment
    /// that it repeats.
    pub(crate) fn resend(&mut self, index: usize, now: Instant, counted: bool) -> &SentSegment {
        let sent = &mut self.queue[index];
        sent.sent_at = now;
        sent.ever_resent = true;
        if counted && !sent.resent {
            sent.resent = true;
            self.resent += 1;
        }
        sent
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
