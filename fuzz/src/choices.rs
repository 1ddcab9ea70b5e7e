//! Splits the bytes of an input into choices (how a target is run) and wire (what the target receives).
//!
//! ```text
//! input    | n | n choices ... | wire ....................................... |
//! ```
//!
//! The choices come first and are used in a cycle, so that a mutation in the wire leaves them
//! unchanged, and a few of them drive a run of any length.

/// Decisions of a run: versions, splits, times, commands. They never run out: the first follows the last.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Choices<'a> {
    /// Maximum number of choice bytes in an input.
    pub const MAX: usize = 64;

    /// Splits an input into choices and wire.
    #[must_use]
    pub fn split(input: &'a [u8]) -> (Self, &'a [u8]) {
        let Some((&count, rest)) = input.split_first() else {
            return (Self { bytes: &[], at: 0 }, &[]);
        };
        let count = usize::from(count).min(Self::MAX).min(rest.len());
        let (bytes, wire) = rest.split_at(count);
        (Self { bytes, at: 0 }, wire)
    }

    /// The input that [`split`](Self::split) splits into these.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX`](Self::MAX) choices.
    #[must_use]
    pub fn join(choices: &[u8], wire: &[u8]) -> Vec<u8> {
        assert!(
            choices.len() <= Self::MAX,
            "{} choices exceed the limit",
            choices.len()
        );
        [&[choices.len() as u8], choices, wire].concat()
    }

    /// The next byte; 0 if there are no choices.
    pub fn byte(&mut self) -> u8 {
        let Some(&byte) = self.bytes.get(self.at) else {
            return 0;
        };
        self.at = (self.at + 1) % self.bytes.len();
        byte
    }

    /// A boolean.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of `items`.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::from(self.byte()) % items.len()]
    }

    /// A length: often small, sometimes large; the byte 0 means unlimited.
    pub fn length(&mut self) -> usize {
        match usize::from(self.byte()) {
            0 => usize::MAX,
            small @ 1..128 => small,
            large => (large - 127) * 97,
        }
    }

    /// Cuts `wire` into pieces, none of them empty.
    pub fn cut<'w>(&mut self, mut wire: &'w [u8]) -> Vec<&'w [u8]> {
        let mut pieces = Vec::new();
        while !wire.is_empty() {
            let (piece, rest) = wire.split_at(self.length().min(wire.len()));
            pieces.push(piece);
            wire = rest;
        }
        pieces
    }
}
