//! The field sections that refer to the dynamic table and that the peer has not acknowledged (RFC 9204 §2.1).

use std::collections::{BTreeMap, VecDeque};

/// Limit of sections of a connection. A peer that acknowledges none gets further sections without the dynamic table.
const MAX_SECTIONS: usize = 1024;

/// A section that was sent.
#[derive(Clone, Copy, Debug)]
struct Section {
    /// The oldest entry that it refers to, by absolute index. It must not be evicted.
    oldest: u64,
    /// Required Insert Count.
    required: u64,
}

/// The sections by stream.
#[derive(Debug, Default)]
pub(super) struct UnacknowledgedSections {
    /// In the order of sending.
    streams: BTreeMap<u64, VecDeque<Section>>,
    count: usize,
}

impl UnacknowledgedSections {
    /// True if no more sections may be sent that need an acknowledgment.
    pub(super) fn is_full(&self) -> bool {
        self.count >= MAX_SECTIONS
    }

    /// Notes a section.
    pub(super) fn push(&mut self, stream: u64, oldest: u64, required: u64) {
        let sections = self.streams.entry(stream).or_default();
        sections.push_back(Section { oldest, required });
        self.count += 1;
    }

    /// Forgets the first section of `stream`, and returns its Required Insert Count; `None` if there is no section.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<u64> {
        let sections = self.streams.get_mut(&stream)?;
        let section = sections.pop_front()?;
        if sections.is_empty() {
            self.streams.remove(&stream);
        }
        self.count -= 1;
        Some(section.required)
    }

    /// Forgets all sections of `stream`; false if there are none.
    pub(super) fn cancel(&mut self, stream: u64) -> bool {
        let sections = self.streams.remove(&stream);
        self.count -= sections.as_ref().map_or(0, VecDeque::len);
        sections.is_some()
    }

    /// The oldest entry that a section refers to, by absolute index; `u64::MAX` if there is none.
    pub(super) fn oldest_reference(&self) -> u64 {
        let sections = self.streams.values().flatten();
        sections.map(|it| it.oldest).min().unwrap_or(u64::MAX)
    }

    /// True if one more section on `stream` may refer to entries from `known_received` on: at most `max_blocked` streams do.
    pub(super) fn may_block(&self, stream: u64, known_received: u64, max_blocked: u64) -> bool {
        let is_blocked =
            |sections: &VecDeque<Section>| sections.iter().any(|it| it.required > known_received);
        if self.streams.get(&stream).is_some_and(is_blocked) {
            return true;
        }
        let blocked = self.streams.values().filter(|it| is_blocked(it)).count();
        (blocked as u64) < max_blocked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_a_stream_are_acknowledged_in_order_and_cancelled_together() {
        let mut sections = UnacknowledgedSections::default();
        sections.push(0, 5, 9);
        sections.push(0, 3, 7);
        sections.push(4, 4, 5);
        assert_eq!(sections.oldest_reference(), 3);
        assert_eq!(sections.acknowledge(0), Some(9));
        assert_eq!(sections.acknowledge(8), None);
        assert!(sections.cancel(0) && !sections.cancel(0));
        assert_eq!(sections.oldest_reference(), 4);
        assert_eq!(sections.acknowledge(4), Some(5));
        assert_eq!(sections.acknowledge(4), None);
        assert_eq!((sections.oldest_reference(), sections.count), (u64::MAX, 0));
    }

    #[test]
    fn a_stream_that_is_already_blocked_counts_once() {
        let mut sections = UnacknowledgedSections::default();
        assert!(!sections.may_block(0, 0, 0));
        assert!(sections.may_block(0, 0, 1));
        sections.push(0, 0, 1);
        assert!(sections.may_block(0, 0, 1) && !sections.may_block(4, 0, 1));
        assert!(sections.may_block(4, 1, 1)); // the entry arrived
    }

    #[test]
    fn a_peer_that_acknowledges_nothing_has_a_limit() {
        let mut sections = UnacknowledgedSections::default();
        for nth in 0..MAX_SECTIONS as u64 {
            assert!(!sections.is_full());
            sections.push(nth, 0, 1);
        }
        assert!(sections.is_full());
        sections.acknowledge(0);
        assert!(!sections.is_full());
    }
}
