//! Reassembles one direction of a TCP connection (RFC 9293 §3.4).
//!
//! ```text
//!          done          hole         held
//! |####################|......|###########|....|######|
//! 0                  next                                    offsets of 64 bits
//! ```
//!
//! The first copy of a byte is used: a retransmission, or an overlapping part of a segment, is dropped and counted. A hole stays open
//! while the missing segment may still come. It is reported as a gap when it cannot: the receiver has acknowledged bytes behind it
//! and more packets followed, the limit of stored bytes is exceeded, or the capture ends.
//! is held, or the capture ends.

use std::collections::BTreeMap;

use bytes::Bytes;
use spdy_clock::Instant;

/// Packets of a connection that may follow before an acknowledged hole becomes a gap: captures of several queues are not exactly in
/// order.
const MAX_HOLE_PACKETS: u32 = 16;

/// Output, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Piece {
    /// The next bytes, with the time of their arrival.
    Bytes(Instant, Bytes),
    /// This many bytes are not in the capture.
    Gap { at: Instant, offset: u64, len: u64 },
}

/// Statistics of the segments of a direction.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Segments {
    /// Segments whose bytes had all arrived before.
    pub retransmitted: u64,
    /// Segments of which a part had arrived before.
    pub overlapping: u64,
    /// Segments that arrived before one that precedes them.
    pub out_of_order: u64,
    /// Bytes that are not in the capture.
    pub missing_bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    /// The sequence number of offset `next`; `None` before the first segment.
    next_seq: Option<u32>,
    next: u64,
    /// By offset; never overlapping, never at or before `next`.
    held: BTreeMap<u64, (Instant, Bytes)>,
    held_bytes: usize,
    /// Packets since the receiver acknowledged bytes behind the hole.
    packets_behind_hole: u32,
    pub(crate) segments: Segments,
}

impl Reassembly {
    /// The first byte has the sequence number `seq`.
    pub(crate) fn begin(&mut self, seq: u32) {
        if self.next_seq.is_none() {
            self.next_seq = Some(seq);
        }
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.next_seq.is_some()
    }

    /// True if `seq` is the start of the direction: its SYN was retransmitted.
    pub(crate) fn is_at_start(&self, seq: u32) -> bool {
        self.next_seq
            .is_none_or(|next| next.wrapping_sub(self.next as u32) == seq)
    }

    /// Drops the stored bytes: they are not needed.
    pub(crate) fn forget(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
    }

    pub(crate) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Handles a segment that arrived at `at`, and appends to `out` what is now in order.
    pub(crate) fn push(&mut self, at: Instant, seq: u32, payload: &[u8], out: &mut Vec<Piece>) {
        if payload.is_empty() {
            return;
        }
        let next_seq = *self.next_seq.get_or_insert(seq);
        // Half of the sequence numbers are before it, half after it (RFC 9293 §3.4).
        let distance = i64::from(seq.wrapping_sub(next_seq) as i32);
        let end = self.next as i64 + distance + payload.len() as i64;
        if end <= self.next as i64 {
            self.segments.retransmitted += 1;
            return;
        }
        let received_len = usize::try_from(-distance).unwrap_or(0);
        let offset = self.next + u64::try_from(distance).unwrap_or(0);
        let fresh = Bytes::copy_from_slice(&payload[received_len..]);
        if received_len > 0 {
            self.segments.overlapping += 1;
        }
        if offset > self.next {
            self.segments.out_of_order += 1;
            self.hold(at, offset, fresh);
            return;
        }
        self.emit(at, fresh, out);
        self.drain(out);
    }

    /// Stores those bytes behind a hole that are not stored yet.
    fn hold(&mut self, at: Instant, mut offset: u64, mut bytes: Bytes) {
        let len_before = bytes.len();
        let mut held_len = 0;
        while !bytes.is_empty() {
            let before = self.held.range(..=offset).next_back();
            let covered = before.map_or(0, |(start, (_, held))| {
                (start + held.len() as u64).saturating_sub(offset)
            });
            let covered = usize::try_from(covered)
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            let _ = bytes.split_to(covered);
            offset += covered as u64;
            let room = self
                .held
                .range(offset..)
                .next()
                .map(|(start, _)| start - offset);
            let room = room.map_or(bytes.len(), |room| {
                usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len())
            });
            if room == 0 {
                continue;
            }
            let piece = bytes.split_to(room);
            self.held_bytes += piece.len();
            held_len += piece.len();
            self.held.insert(offset, (at, piece));
            offset += room as u64;
        }
        match held_len {
            0 => self.segments.retransmitted += 1,
            held_len if held_len < len_before => self.segments.overlapping += 1,
            _ => {}
        }
    }

    fn emit(&mut self, at: Instant, bytes: Bytes, out: &mut Vec<Piece>) {
        self.next += bytes.len() as u64;
        self.next_seq = self
            .next_seq
            .map(|seq| seq.wrapping_add(bytes.len() as u32));
        out.push(Piece::Bytes(at, bytes));
    }

    /// Emits the stored bytes that are now in order.
    fn drain(&mut self, out: &mut Vec<Piece>) {
        while let Some(entry) = self.held.first_entry() {
            if *entry.key() > self.next {
                return;
            }
            let (offset, (at, mut bytes)) = entry.remove_entry();
            self.held_bytes -= bytes.len();
            let received_len = usize::try_from(self.next - offset).unwrap_or(usize::MAX);
            if received_len < bytes.len() {
                let _ = bytes.split_to(received_len);
                self.emit(at, bytes, out);
            }
        }
        self.packets_behind_hole = 0;
    }

    /// Handles the receiver's acknowledgement of everything before `ack`.
    pub(crate) fn acknowledged(&mut self, ack: u32, out: &mut Vec<Piece>) {
        let (Some(next_seq), Some(first)) = (self.next_seq, self.held.keys().next()) else {
            return;
        };
        let distance = i64::from(ack.wrapping_sub(next_seq) as i32);
        if distance > 0 && self.next + distance as u64 >= *first {
            self.packets_behind_hole += 1;
            if self.packets_behind_hole > MAX_HOLE_PACKETS {
                self.give_up(out);
            }
        }
    }

    /// Reports the first hole as a gap, and the bytes behind it.
    pub(crate) fn give_up(&mut self, out: &mut Vec<Piece>) {
        let Some((&offset, &(at, _))) = self.held.first_key_value() else {
            return;
        };
        let len = offset - self.next;
        self.segments.missing_bytes += len;
        out.push(Piece::Gap {
            at,
            offset: self.next,
            len,
        });
        self.next = offset;
        self.next_seq = self.next_seq.map(|seq| seq.wrapping_add(len as u32));
        self.packets_behind_hole = 0;
        self.drain(out);
    }
}
