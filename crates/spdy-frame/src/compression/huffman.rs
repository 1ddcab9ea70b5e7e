//! Deflate's fixed code, and the bits that carry it (RFC 1951 §3.2.5, §3.2.6).
//!
//! ```text
//! symbol      bits   code                meaning
//!   0 - 143    8     0011 0000 and on    literal
//! 144 - 255    9     1 1001 0000 and on  literal
//! 256          7     000 0000            end of the deflate block
//! 257 - 279    7     000 0001 and on     length of a match
//! 280 - 287    8     1100 0000 and on    length of a match
//! distance     5     its number
//! ```
//!
//! Codes go out from their top bit, all else from its low bit, so codes are stored mirrored here.

use bytes::{BufMut, BytesMut};

/// The shortest match.
pub(crate) const MIN_MATCH: usize = 3;
/// The longest match.
pub(crate) const MAX_MATCH: usize = 258;
/// Bits in the order in which they are written, the first one lowest.
#[derive(Clone, Copy)]
pub(crate) struct Bits {
    value: u32,
    len: u32,
}

impl Bits {
    pub(crate) const fn new(value: u32, len: u32) -> Self {
        Self { value, len }
    }

    const fn code(code: u32, len: u32) -> Self {
        Self {
            value: code.reverse_bits() >> (32 - len),
            len,
        }
    }

    const fn then(self, extra: u32, len: u32) -> Self {
        Self {
            value: self.value | extra << self.len,
            len: self.len + len,
        }
    }
}

const fn symbol(symbol: u32) -> Bits {
    match symbol {
        0..=143 => Bits::code(0x30 + symbol, 8),
        144..=255 => Bits::code(0x190 + symbol - 144, 9),
        256..=279 => Bits::code(symbol - 256, 7),
        _ => Bits::code(0xc0 + symbol - 280, 8),
    }
}

/// Ends a deflate block.
pub(crate) const END_OF_BLOCK: Bits = symbol(256);

/// The bits of each literal.
pub(crate) static LITERALS: [Bits; 256] = {
    let mut table = [Bits::new(0, 0); 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = symbol(byte as u32);
        byte += 1;
    }
    table
};

/// The bits of each length of a match, from [`MIN_MATCH`] on, its extra bits included.
pub(crate) static LENGTHS: [Bits; MAX_MATCH - MIN_MATCH + 1] = {
    let mut table = [Bits::new(0, 0); MAX_MATCH - MIN_MATCH + 1];
    let (mut number, mut first) = (0, 0);
    while number < 28 {
        // Eight symbols without extra bits, then four with one, four with two, ...
        let extra = if number < 8 { 0 } else { number / 4 - 1 };
        let mut offset = 0;
        while offset < 1 << extra && first + offset < table.len() {
            table[first + offset] = symbol(257 + number).then(offset as u32, extra);
            offset += 1;
        }
        first += 1 << extra;
        number += 1;
    }
    // The longest has a symbol of its own.
    table[MAX_MATCH - MIN_MATCH] = symbol(285);
    table
};

/// The bits of a distance from 1 to 2^15, its extra bits included.
#[inline]
const fn distance(distance: u32) -> Bits {
    // Four numbers without extra bits, then two with one, two with two, ...: the number gives the
    // highest bit of the distance and the one under it, the extra bits all others.
    let from_zero = distance - 1;
    if from_zero < 4 {
        return Bits::code(from_zero, 5);
    }
    let extra = from_zero.ilog2() - 1;
    let number = 2 * extra + (from_zero >> extra);
    Bits::code(number, 5).then(from_zero & ((1 << extra) - 1), extra)
}

/// Appends bits to bytes.
pub(crate) struct BitWriter<'a> {
    out: &'a mut BytesMut,
    /// Whole words that are not in `out` yet: `out` grows once for all of them.
    words: [u8; WORDS_BYTES],
    words_len: usize,
    pending: u64,
    len: u32,
}

/// Bytes that a [`BitWriter`] collects.
const WORDS_BYTES: usize = 64;

impl<'a> BitWriter<'a> {
    pub(crate) const fn new(out: &'a mut BytesMut) -> Self {
        Self {
            out,
            words: [0; WORDS_BYTES],
            words_len: 0,
            pending: 0,
            len: 0,
        }
    }

    /// Appends `bits`.
    #[inline]
    pub(crate) fn put(&mut self, bits: Bits) {
        // At most 31 bits wait, and no code has more than 32.
        self.pending |= u64::from(bits.value) << self.len;
        self.len += bits.len;
        if self.len >= 32 {
            let word = (self.pending as u32).to_le_bytes();
            self.words[self.words_len..self.words_len + word.len()].copy_from_slice(&word);
            self.words_len += word.len();
            if self.words_len == WORDS_BYTES {
                self.put_words();
            }
            self.pending >>= 32;
            self.len -= 32;
        }
    }

    fn put_words(&mut self) {
        self.out.put_slice(&self.words[..self.words_len]);
        self.words_len = 0;
    }

    /// Appends a repetition of `len` bytes, 3 to 258, from `from` bytes before, 1 to 2^15.
    #[inline]
    pub(crate) fn put_match(&mut self, len: usize, from: usize) {
        self.put(LENGTHS[len - MIN_MATCH]);
        self.put(distance(from as u32));
    }

    /// Fills up the last byte with zero bits.
    pub(crate) fn align(&mut self) {
        self.put_words();
        let bytes = self.len.div_ceil(8) as usize;
        self.out.put_slice(&self.pending.to_le_bytes()[..bytes]);
        (self.pending, self.len) = (0, 0);
    }

    /// Appends whole bytes; only after [`align`](Self::align).
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        assert_eq!(
            (self.words_len, self.len),
            (0, 0),
            "appending bytes before the bits are aligned"
        );
        self.out.put_slice(bytes);
    }
}
