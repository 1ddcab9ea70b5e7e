//! What was sent and is not yet acknowledged, segment by segment (RFC 6675).
//!
//! ```text
//!  una                                                   nxt
//!   |  lost  | lost, sent again | sacked |  in flight ... |
//! ```
//!
//! In flight = all - sacked - lost + sent again. The counts are kept beside the queue so that the
//! common acknowledgement, which finds nothing wrong, costs nothing for what is in flight.

use std::collections::VecDeque;

use bytes::Bytes;
use spdy_clock::Instant;

/// One segment that was sent.
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
    /// Sent again, and that copy is not known to be lost.
    pub(crate) resent: bool,
    /// Sent again ever: its acknowledgement times nothing.
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

    /// Takes the first segment if all of it lies before `ack`.
    pub(crate) fn pop_acked(&mut self, ack: u64) -> Option<SentSegment> {
        let sent = self.queue.pop_front_if(|sent| sent.end <= ack)?;
        self.sacked -= u32::from(sent.sacked);
        self.lost -= u32::from(sent.lost);
        self.resent -= u32::from(sent.resent);
        Some(sent)
    }

    /// Indices of the segments that lie wholly within `start..end`.
    pub(crate) fn within(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let first = self.queue.partition_point(|sent| sent.seq < start);
        let last = self.queue.partition_point(|sent| sent.end <= end);
        first..last.max(first)
    }

    /// Marks a segment delivered; it is neither lost nor on its way any more.
    pub(crate) fn mark_sacked(&mut self, index: usize) {
        let sent = &mut self.queue[index];
        assert!(!sent.sacked, "sacked twice: {sent:?}");
        sent.sacked = true;
        self.sacked += 1;
        self.lost -= u32::from(std::mem::take(&mut sent.lost));
        self.resent -= u32::from(std::mem::take(&mut sent.resent));
    }

    /// Marks a segment lost, or its second copy; `true` if that is news.
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

    /// Takes back every mark of loss.
    pub(crate) fn unmark_lost(&mut self) {
        for sent in &mut self.queue {
            sent.lost = false;
        }
        self.lost = 0;
    }

    /// The first lost segment that waits to be sent again.
    pub(crate) fn next_lost(&self) -> Option<usize> {
        if self.lost <= self.resent {
            return None;
        }
        self.queue.iter().position(|sent| sent.lost && !sent.resent)
    }

    /// Notes that a segment is sent again at `now`. `counted` says that the copy is in flight
    /// beside the loss; a probe replaces what it repeats.
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
