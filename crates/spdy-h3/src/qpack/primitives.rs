//! Integers and strings of QPACK (RFC 9204 §4.1).

use bytes::{BufMut, Bytes, BytesMut};
use octets::{Octets, OctetsMut, huffman_encoding_len};

/// The largest integer of QUIC and of QPACK.
const MAX_INTEGER: u64 = (1 << 62) - 1;
/// Lengths of Huffman's codes, bits (RFC 7541, Appendix B).
const SHORTEST_CODE_BITS: usize = 5;
const LONGEST_CODE_BITS: usize = 30;

/// Why an integer or a string was not read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadError {
    /// The rest of it did not arrive yet.
    Incomplete,
    /// It is invalid. In a section also: it is truncated.
    Invalid,
    /// The string exceeds the limit.
    TooLong,
}

/// Bytes to be read.
#[derive(Debug)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
    /// What the end of the bytes means.
    at_end: ReadError,
}

impl<'a> Input<'a> {
    /// A part of a stream: the rest may follow.
    pub(super) fn stream(rest: &'a [u8]) -> Self {
        Self {
            rest,
            at_end: ReadError::Incomplete,
        }
    }

    /// A whole field section.
    pub(super) fn whole(rest: &'a [u8]) -> Self {
        Self {
            rest,
            at_end: ReadError::Invalid,
        }
    }

    /// Number of bytes that are left.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next byte, which is not consumed.
    pub(super) fn peek(&self) -> Result<u8, ReadError> {
        self.rest.first().copied().ok_or(self.at_end)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(self.at_end)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads an integer of at most 62 bits that begins in the low `bits` of the next byte (RFC 9204 §4.1.1).
    pub(super) fn integer(&mut self, bits: u32) -> Result<u64, ReadError> {
        let most = (1_u64 << bits) - 1;
        let mut value = u64::from(self.take(1)?[0]) & most;
        if value < most {
            return Ok(value);
        }
        for shift in (0..=56).step_by(7) {
            let byte = self.take(1)?[0];
            value += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return match value <= MAX_INTEGER {
                    true => Ok(value),
                    false => Err(ReadError::Invalid),
                };
            }
        }
        Err(ReadError::Invalid)
    }

    /// Reads a string after its length in `bits`. If the string certainly exceeds `limit` bytes, none of it is read or waited for. The
    /// returned string may still exceed `limit`.
    pub(super) fn string(&mut self, bits: u32, limit: usize) -> Result<Bytes, ReadError> {
        let is_huffman = self.peek()? & (1 << bits) != 0;
        let len = usize::try_from(self.integer(bits)?).map_err(|_| ReadError::Invalid)?;
        let most = match is_huffman {
            true => limit.saturating_mul(LONGEST_CODE_BITS) / 8,
            false => limit,
        };
        if len > most && (self.at_end == ReadError::Incomplete || len <= self.len()) {
            return Err(ReadError::TooLong);
        }
        let text = self.take(len)?;
        if !is_huffman {
            return Ok(Bytes::copy_from_slice(text));
        }
        let decoded = Octets::with_slice(text)
            .get_huffman_decoded_with_max_length(len * 8 / SHORTEST_CODE_BITS);
        decoded.map(Bytes::from).map_err(|_| ReadError::Invalid)
    }
}

/// Appends an integer: in the low `bits` of a byte with `flags` above them, and in as many further bytes as needed (RFC 7541 §5.1).
pub(super) fn put_integer(out: &mut BytesMut, flags: u8, bits: u32, value: u64) {
    let most = (1_u64 << bits) - 1;
    if value < most {
        out.put_u8(flags | value as u8);
        return;
    }
    out.put_u8(flags | most as u8);
    let mut rest = value - most;
    while rest >= 128 {
        out.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}

/// Appends a string after its length in `bits`, with Huffman coding if that is shorter.
pub(super) fn put_string(out: &mut BytesMut, flags: u8, bits: u32, text: &[u8]) {
    match huffman_encoding_len::<false>(text) {
        Ok(len) if len < text.len() => {
            put_integer(out, flags | 1 << bits, bits, len as u64);
            let start = out.len();
            out.resize(start + len, 0);
            OctetsMut::with_slice(&mut out[start..])
                .put_huffman_encoded::<false>(text)
                .expect("the length was computed before");
        }
        _ => {
            put_integer(out, flags, bits, text.len() as u64);
            out.put_slice(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_string_over_the_limit_is_not_waited_for() {
        let of = |bytes: &[u8]| Input::stream(bytes).string(7, 10);
        assert_eq!(of(&[10]), Err(ReadError::Incomplete));
        assert_eq!(of(&[11]), Err(ReadError::TooLong));
        // 30 bits for each byte are the most that Huffman coding needs.
        assert_eq!(of(&[0x80 | 37]), Err(ReadError::Incomplete));
        assert_eq!(of(&[0x80 | 38]), Err(ReadError::TooLong));
        // A section is complete, so missing bytes are a different error.
        assert_eq!(Input::whole(&[11]).string(7, 10), Err(ReadError::Invalid));
    }

    proptest! {
        #[test]
        fn integers_and_strings_read_back_and_truncated_ones_are_incomplete(
            value in 0..=MAX_INTEGER, bits in 3_u32..8, text: Vec<u8>, cut: prop::sample::Index
        ) {
            let mut out = BytesMut::new();
            put_integer(&mut out, 0, bits, value);
            let mut input = Input::stream(&out);
            prop_assert_eq!(input.integer(bits), Ok(value));
            prop_assert_eq!(input.len(), 0);
            let part = &out[..cut.index(out.len())];
            prop_assert_eq!(Input::stream(part).integer(bits), Err(ReadError::Incomplete));
            out.clear();
            put_string(&mut out, 0, bits, &text);
            let mut input = Input::stream(&out);
            prop_assert_eq!(input.string(bits, text.len()), Ok(Bytes::from(text)));
            let part = &out[..cut.index(out.len())];
            prop_assert_eq!(Input::stream(part).string(bits, usize::MAX), Err(ReadError::Incomplete));
        }
    }
}
