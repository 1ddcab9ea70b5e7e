//! Bytes that were written and not yet sent, in segments as they were written.
//!
//! A write fills the last segment before it starts another, as Linux fills the last buffer of its write queue. Nagle's algorithm is
//! off, so a segment that is not full is sent as it is.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// The payload of one unsent segment.
#[derive(Clone, Debug)]
struct Piece {
    bytes: BytesMut,
    /// A write ended in it.
    push: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    pieces: VecDeque<Piece>,
    len_bytes: usize,
}

impl SendBuffer {
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Appends one write, in segments of at most `mss_bytes`.
    pub(crate) fn write(&mut self, mut bytes: &[u8], mss_bytes: usize) {
        self.len_bytes += bytes.len();
        while !bytes.is_empty() {
            let room = self
                .pieces
                .back()
                .map_or(0, |last| mss_bytes.saturating_sub(last.bytes.len()));
            if room == 0 {
                let bytes = BytesMut::with_capacity(bytes.len().min(mss_bytes));
                self.pieces.push_back(Piece { bytes, push: false });
                continue;
            }
            let (now, later) = bytes.split_at(bytes.len().min(room));
            let last = self.pieces.back_mut().expect("the buffer has free space");
            last.bytes.extend_from_slice(now);
            bytes = later;
        }
        if let Some(last) = self.pieces.back_mut() {
            last.push = true;
        }
    }

    /// Length of the next segment if it may have `mss_bytes`.
    pub(crate) fn next_len(&self, mss_bytes: usize) -> Option<usize> {
        self.pieces
            .front()
            .map(|piece| piece.bytes.len().min(mss_bytes))
    }

    /// Removes the next segment of at most `most` bytes. Also returns whether a write ended in it.
    pub(crate) fn take(&mut self, most: usize) -> Option<(Bytes, bool)> {
        let first = self.pieces.front_mut()?;
        let chunk = if first.bytes.len() > most {
            (first.bytes.split_to(most).freeze(), false)
        } else {
            let piece = self.pieces.pop_front()?;
            (piece.bytes.freeze(), piece.push)
        };
        self.len_bytes -= chunk.0.len();
        Some(chunk)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_writes_share_a_segment_and_large_ones_are_cut() {
        let mut buffer = SendBuffer::default();
        buffer.write(b"ab", 4);
        buffer.write(b"cdefghi", 4);
        assert_eq!(buffer.len_bytes(), 9);
        assert_eq!(buffer.next_len(4), Some(4));
        assert_eq!(buffer.take(4), Some((Bytes::from("abcd"), true)));
        assert_eq!(buffer.take(4), Some((Bytes::from("efgh"), false)));
        assert_eq!(buffer.take(4), Some((Bytes::from("i"), true)));
        assert_eq!(buffer.take(4), None);
        assert_eq!(buffer.len_bytes(), 0);
    }

    #[test]
    fn a_piece_longer_than_the_limit_is_split() {
        let mut buffer = SendBuffer::default();
        buffer.write(b"abcdef", 6);
        assert_eq!(buffer.take(2), Some((Bytes::from("ab"), false)));
        assert_eq!(buffer.take(6), Some((Bytes::from("cdef"), true)));
    }
}
