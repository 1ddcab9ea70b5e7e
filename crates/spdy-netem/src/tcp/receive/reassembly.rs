//! Reassembles received bytes in order, and records received ranges (RFC 2018, RFC 2883).

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};

use crate::segment::{MAX_SACK_BLOCKS, SackBlock, SackBlocks};

#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    /// In order, not yet read.
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    /// Data after a gap, by first byte; pieces do not overlap.
    early: BTreeMap<u64, Bytes>,
    early_bytes: usize,
    /// Ranges of data after gaps, the newest first; at most [`MAX_SACK_BLOCKS`].
    ranges: Vec<SackBlock>,
    /// A duplicate that the next acknowledgement reports.
    duplicate: Option<SackBlock>,
}

impl Reassembly {
    pub(crate) fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// Stored bytes, in order or not.
    pub(crate) fn held_bytes(&self) -> usize {
        self.ready_bytes + self.early_bytes
    }

    pub(crate) fn has_holes(&self) -> bool {
        !self.early.is_empty()
    }

    pub(crate) fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate = Some(SackBlock { start, end });
    }

    /// Adds bytes that start exactly at `next`, and stored bytes that follow them. Returns the new `next`.
    pub(crate) fn push_in_order(&mut self, next: u64, bytes: Bytes) -> u64 {
        let mut next = next + bytes.len() as u64;
        self.push_ready(bytes);
        while let Some(entry) = self.early.first_entry() {
            let start = *entry.key();
            if start > next {
                break;
            }
            let mut early = entry.remove();
            self.early_bytes -= early.len();
            let end = start + early.len() as u64;
            if end > next {
                early.advance((next - start) as usize); // below its length
                next = end;
                self.push_ready(early);
            }
        }
        self.ranges.retain(|range| range.end > next);
        next
    }

    fn push_ready(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.ready_bytes += bytes.len();
            self.ready.push_back(bytes);
        }
    }

    /// Adds bytes that start after a gap.
    pub(crate) fn push_early(&mut self, start: u64, bytes: Bytes) {
        let end = start + bytes.len() as u64;
        self.note_range(SackBlock { start, end });
        self.insert_early(start, bytes);
    }

    /// Stores the part of `bytes` that is not stored yet.
    fn insert_early(&mut self, mut start: u64, mut bytes: Bytes) {
        if let Some((&before, there)) = self.early.range(..=start).next_back() {
            let covered = (before + there.len() as u64).saturating_sub(start);
            if covered >= bytes.len() as u64 {
                self.note_duplicate(start, start + bytes.len() as u64);
                return;
            }
            bytes.advance(covered as usize); // below its length
            start += covered;
        }
        while !bytes.is_empty() {
            let end = start + bytes.len() as u64;
            let Some((&after, there)) = self.early.range(start..end).next() else {
                self.early_bytes += bytes.len();
                self.early.insert(start, bytes);
                return;
            };
            let gap = bytes.split_to((after - start) as usize); // within: after < end
            let skip = there.len().min(bytes.len());
            if !gap.is_empty() {
                self.early_bytes += gap.len();
                self.early.insert(start, gap);
            }
            bytes.advance(skip);
            start = after + skip as u64;
        }
    }

    /// Moves the range that contains `block` to the front, extended by it.
    fn note_range(&mut self, mut block: SackBlock) {
        self.ranges.retain(|range| {
            let touches = range.start <= block.end && block.start <= range.end;
            if touches {
                block.start = block.start.min(range.start);
                block.end = block.end.max(range.end);
            }
            !touches
        });
        self.ranges.insert(0, block);
        self.ranges.truncate(MAX_SACK_BLOCKS);
    }

    /// The blocks for the next acknowledgement, at most `most` of them.
    pub(crate) fn take_blocks(&mut self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if most > 0
            && let Some(duplicate) = self.duplicate.take()
        {
            blocks.push(duplicate, most);
        }
        for range in &self.ranges {
            blocks.push(*range, most);
        }
        blocks
    }

    /// Removes up to `max` bytes: one piece as received, never joined.
    pub(crate) fn read(&mut self, max: usize) -> Bytes {
        let Some(first) = self.ready.front_mut() else {
            return Bytes::new();
        };
        let bytes = if first.len() > max {
            first.split_to(max)
        } else {
            self.ready.pop_front().unwrap_or_default()
        };
        self.ready_bytes -= bytes.len();
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(reassembly: &mut Reassembly) -> Vec<u8> {
        let mut all = Vec::new();
        while reassembly.ready_bytes() > 0 {
            all.extend_from_slice(&reassembly.read(3));
        }
        all
    }

    #[test]
    fn a_filled_gap_joins_waiting_bytes() {
        let mut reassembly = Reassembly::default();
        reassembly.push_early(5, Bytes::from("fgh"));
        assert!(reassembly.has_holes());
        assert_eq!(reassembly.push_in_order(1, Bytes::from("bcde")), 8);
        assert!(!reassembly.has_holes());
        assert_eq!(read_all(&mut reassembly), b"bcdefgh");
        assert!(reassembly.take_blocks(3).is_empty());
    }

    #[test]
    fn overlaps_are_stored_once() {
        let mut reassembly = Reassembly::default();
        reassembly.push_early(4, Bytes::from("ef"));
        reassembly.push_early(8, Bytes::from("i"));
        reassembly.push_early(3, Bytes::from("defghijk"));
        reassembly.push_early(5, Bytes::from("fg"));
        assert_eq!(reassembly.held_bytes(), 8);
        assert_eq!(reassembly.push_in_order(0, Bytes::from("abcd")), 11);
        assert_eq!(read_all(&mut reassembly), b"abcdefghijk");
    }

    #[test]
    fn the_freshest_range_comes_first_and_a_duplicate_before_it() {
        let mut reassembly = Reassembly::default();
        let block = |start, end| SackBlock { start, end };
        for start in [10, 30, 50, 70, 90] {
            reassembly.push_early(start, Bytes::from_static(&[0; 10]));
        }
        let blocks = reassembly.take_blocks(3);
        assert_eq!(
            blocks.as_slice(),
            [block(90, 100), block(70, 80), block(50, 60)]
        );
        reassembly.push_early(60, Bytes::from_static(&[0; 10]));
        reassembly.note_duplicate(1, 5);
        let blocks = reassembly.take_blocks(3);
        assert_eq!(
            blocks.as_slice(),
            [block(1, 5), block(50, 80), block(90, 100)]
        );
        assert_eq!(
            reassembly.take_blocks(1).as_slice(),
            [block(50, 80)],
            "reported once"
        );
    }
}
