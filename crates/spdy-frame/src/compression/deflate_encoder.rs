//! A deflate encoder that never matches a private value but with an equal one as a whole (RFC 1951, and CRIME).
//!
//! The length of compressed output reveals whether two texts are alike. If one is a cookie and an attacker writes
//! the other, the attacker can guess the cookie byte by byte (CVE-2012-4929). No option of zlib prevents that: text that is
//! compressed at level 0 or without matches is still in the window, and later matches reach it. So this encoder cuts a
//! block into public and private runs ([`secrets`](crate::secrets)):
//!
//! ```text
//! block      | count  name  length  value  name  length  PRIVATE  name  length  value |
//! written    | matches and literals ...................  whole!   matches and ..... |
//! window     | as it stands ...........................  zeros    as it stands .... |
//! beside it                                              PRIVATE, and where it stood
//! ```
//!
//! - The window holds zeros in place of private text, so the search cannot see it. The peer's window holds the text, so
//!   no match found by the search may run over those zeros: no position whose bytes touch them is entered into the
//!   tables, every match ends where its source meets them, and where private text begins at the place that is being
//!   written.
//! - Private text is written as literals of the fixed code, always eight bits each in ASCII; or, if it is of a
//!   header that may [repeat](crate::secrets::Repeatable), long enough, and equal to an earlier piece of the same name
//!   and host, as one repetition of all of it. Earlier pieces are kept beside the window, and compared whole.
//!
//! So *the length of a block is a function of its public bytes, of the lengths of its private values, and of which of the
//! long repeatable ones are equal*, for private values in ASCII. That is more than that a right guess costs as much as a
//! wrong one. Lengths of private values do show, as they do without compression.
//!
//! zlib's dynamic codes would save half a point more of what is public, and their tables would have to be computed from
//! public bytes alone. The fixed code needs no tables (RFC 1951 §3.2.6).

use bytes::{BufMut, BytesMut};

use crate::blocks::block_rules::put_int;
use crate::blocks::header_block::HeaderBlock;
use crate::blocks::secrets::{Repeatable, Rule, Run, Secrets};
use crate::blocks::value_history::ValueHistory;
use crate::compression::dictionary::dictionary;
use crate::compression::huffman::{BitWriter, Bits, END_OF_BLOCK, LITERALS, MAX_MATCH, MIN_MATCH};
use crate::compression::match_table::{MatchTable, WAYS};
use crate::version::Version;

/// Bytes that a match found by the search has at least: as many as a hash is made of.
pub(crate) const MIN_FOUND_MATCH: usize = 4;

/// A match so long that nothing longer is looked for.
const GOOD_MATCH: usize = 32;

/// A match under this length gives way to a longer one that begins a byte later.
const LAZY_BELOW: usize = 16;

/// `BFINAL = 0`, `BTYPE = 01`: a block of the fixed code that is not the last (RFC 1951 §3.2.3).
const FIXED_BLOCK: Bits = Bits::new(0b010, 3);

/// `BFINAL = 0`, `BTYPE = 00`: a stored block; an empty one is the sync flush that ends every block.
const STORED_BLOCK: Bits = Bits::new(0, 3);
const EMPTY_STORED: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

/// The encoder of one direction: everything after the zlib head.
pub(crate) struct DeflateEncoder {
    version: Version,
    /// Bytes that a match can reach back.
    window: usize,
    secrets: Secrets,
    matches: MatchTable,
    /// At least the last `window` bytes of plain text, then the current block; zeros for private text.
    text: Vec<u8>,
    /// Position of `text[0]` in the stream, modulo 2^16.
    origin: u16,
    /// Where in `text` private runs are: start and end, ascending.
    private: Vec<(usize, usize)>,
    history: ValueHistory,
    /// Up to where in `text` everything is written, but for `pending`.
    written: usize,
    /// A match that ends at `written` and may go on.
    pending: Option<Match>,
    /// How far back the last match went; at the start of a block, to the start of the block before.
    last_distance: usize,
    /// Where in `text` the last block begins.
    last_block: usize,
    /// Where in `text` the last block begins of which every place is entered, and whether that is the one
    /// at hand.
    inserted_block: usize,
    insert_all: bool,
}

/// A repetition of earlier text.
#[derive(Clone, Copy)]
struct Match {
    len: usize,
    distance: usize,
}

impl DeflateEncoder {
    pub(crate) fn new(version: Version, window: usize, secrets: Secrets) -> Self {
        let text = dictionary(version).to_vec();
        Self {
            version,
            window,
            secrets,
            matches: MatchTable::new(version),
            written: text.len(),
            last_distance: 0,
            last_block: text.len(),
            inserted_block: text.len(),
            insert_all: true,
            text,
            origin: 0,
            private: Vec::new(),
            history: ValueHistory::default(),
            pending: None,
        }
    }

    /// Appends the compressed block to `out`; returns its plain length.
    pub(crate) fn deflate(&mut self, headers: &HeaderBlock, out: &mut BytesMut) -> usize {
        let plain_bytes = headers.plain_len(self.version);
        // Nine bits at most for each byte, and a little for the ends: nothing grows while bits flow.
        out.reserve(plain_bytes + plain_bytes / 8 + 16);
        self.reserve_text(plain_bytes);
        self.begin_block();
        let mut bits = BitWriter::new(out);
        bits.put(FIXED_BLOCK);

        put_int(self.version, headers.count(self.version), &mut self.text);
        match self.version {
            Version::V2 => {
                for (name, value) in headers.written(self.version) {
                    put_int(self.version, name.len(), &mut self.text);
                    self.text.put_slice(name);
                    put_int(self.version, value.len(), &mut self.text);
                    match self.rule(headers, name) {
                        None => self.text.put_slice(value),
                        Some(rule) => self.write_private(rule, value, headers, &mut bits),
                    }
                }
            }
            // Blocks are stored in the form of SPDY/3: the bytes between private values are copied at once.
            Version::V3 | Version::V31 => {
                let (pairs, mut copied, mut at) = (headers.pairs(), 0, 0);
                for (name, value) in headers.iter() {
                    at += 4 + name.len() + 4;
                    if let Some(rule) = self.rule(headers, name) {
                        self.text.put_slice(&pairs[copied..at]);
                        self.write_private(rule, value, headers, &mut bits);
                        copied = at + value.len();
                    }
                    at += value.len();
                }
                self.text.put_slice(&pairs[copied..]);
            }
        }
        self.write_public(&mut bits);
        self.end_match(&mut bits);

        bits.put(END_OF_BLOCK);
        bits.put(STORED_BLOCK);
        bits.align();
        bits.put_bytes(&EMPTY_STORED);
        self.trim();
        plain_bytes
    }

    /// Makes room for a block. Grows by little: most sessions send few blocks, and then wait.
    fn reserve_text(&mut self, plain_bytes: usize) {
        const STEP: usize = 256;
        let needed = self.text.len() + plain_bytes;
        if needed > self.text.capacity() {
            let larger = needed.max(self.text.capacity() + self.text.capacity() / 4);
            let room = larger.next_multiple_of(STEP) - self.text.len();
            self.text.reserve_exact(room);
        }
    }

    /// Gets ready for a block behind all that is written.
    fn begin_block(&mut self) {
        let start = self.text.len();
        self.last_distance = start - self.last_block;
        self.last_block = start;
        self.insert_all = start - self.inserted_block >= self.window / 4;
        if self.insert_all {
            self.inserted_block = start;
        }
    }

    /// How the value of `name` is written; `None` if it is public.
    #[inline]
    fn rule(&self, headers: &HeaderBlock, name: &[u8]) -> Option<Rule> {
        match headers.is_marked_secret(name) {
            true => Some(Rule::Literal),
            false => self.secrets.rule(self.version, name),
        }
    }

    /// Writes a private value.
    fn write_private(
        &mut self,
        rule: Rule,
        value: &[u8],
        headers: &HeaderBlock,
        bits: &mut BitWriter<'_>,
    ) {
        match rule {
            Rule::Literal => self.write_piece(None, value, bits),
            Rule::Pieces(name) => {
                self.history.set_host(host(self.version, headers));
                name.runs(value, |run| match run {
                    Run::Public(bytes) => self.text.put_slice(bytes),
                    Run::Piece(bytes, is_long) => {
                        self.write_piece(is_long.then_some(name), bytes, bits);
                    }
                });
            }
        }
    }

    /// Writes `piece` as a unit, after all public text before it, and leaves zeros in its place in the window. With `repeats` it
    /// may be written as a repetition.
    fn write_piece(&mut self, repeats: Option<Repeatable>, piece: &[u8], bits: &mut BitWriter<'_>) {
        if piece.is_empty() {
            return;
        }
        self.write_public(bits);
        let start = self.text.len();
        let earlier = repeats.and_then(|name| self.history.replace(name, piece, start));
        match earlier {
            Some(source) if start - source <= self.window => {
                self.extend_match(start - source, piece.len(), bits);
            }
            _ => {
                self.end_match(bits);
                piece
                    .iter()
                    .for_each(|byte| bits.put(LITERALS[usize::from(*byte)]));
            }
        }
        let end = start + piece.len();
        self.text.resize(end, 0);
        self.private.push((start, end));
        self.written = end;
    }

    /// Writes all text that is not written, none of it private, as matches where there are any.
    fn write_public(&mut self, bits: &mut BitWriter<'_>) {
        let (mut at, end) = (self.written, self.text.len());
        if let Some(pending) = self.pending {
            // What follows equal text is often equal too.
            let len = self.match_at(at, end, pending.distance);
            self.extend_match(pending.distance, len, bits);
            at += len;
        }
        while at < end {
            if let Some(again) = self.long_match_as_before(at, end) {
                self.extend_match(again.distance, again.len, bits);
                if self.insert_all {
                    self.insert_positions(at, at + again.len, end);
                }
                at += again.len;
                continue;
            }
            match self.longest_match(at, end) {
                Some(found) => {
                    if found.len < LAZY_BELOW
                        && self
                            .longest_match(at + 1, end)
                            .is_some_and(|next| next.len > found.len)
                    {
                        self.end_match(bits);
                        bits.put(LITERALS[usize::from(self.text[at])]);
                        self.insert_positions(at, at + 1, end);
                        at += 1;
                        continue;
                    }
                    self.extend_match(found.distance, found.len, bits);
                    self.insert_positions(at, at + found.len, end);
                    at += found.len;
                }
                None => {
                    self.end_match(bits);
                    bits.put(LITERALS[usize::from(self.text[at])]);
                    self.insert_positions(at, at + 1, end);
                    at += 1;
                }
            }
        }
        self.written = end;
    }

    /// A long match at the last distance, which is worth no search.
    ///
    /// A block is often the one before again, but for a byte or two. Its places need not be entered either, as long
    /// as those of a block not far before are, which is what [`begin_block`](Self::begin_block) sees to.
    #[inline]
    fn long_match_as_before(&self, at: usize, end: usize) -> Option<Match> {
        let distance = self.last_distance;
        if distance == 0 || distance > self.window.min(at) {
            return None;
        }
        let len = self.match_at(at, end, distance);
        (len >= GOOD_MATCH).then_some(Match { len, distance })
    }

    /// The longest match for the text from `at` to `end`.
    #[inline]
    fn longest_match(&self, at: usize, end: usize) -> Option<Match> {
        if end - at < MIN_FOUND_MATCH {
            return None;
        }
        let (text, here, mut best) = (&self.text[..end], self.place(at), MIN_FOUND_MATCH - 1);
        let mut distance = 0;
        let mut nearer = 0;
        let mut candidates = self.matches.candidates(u32_at(text, at));
        for _ in 0..WAYS {
            // Places are counted modulo 2^16 and old ones stay until pushed out, so a candidate may be
            // anything. Every one is compared in full and ends at private text, which makes a
            // stale one harmless; distances that do not grow end the search.
            let back = usize::from(here.wrapping_sub(candidates as u16));
            if back <= nearer || back > self.window || back > at {
                break;
            }
            nearer = back;
            if text[at - back + best] == text[at + best] {
                let len = self.match_at(at, end, back);
                if len > best {
                    (best, distance) = (len, back);
                    if len >= GOOD_MATCH || at + len == end {
                        break;
                    }
                }
            }
            candidates >>= 16;
        }
        (distance > 0).then_some(Match {
            len: best,
            distance,
        })
    }

    /// How many public bytes from `at` to `end` are those that stand `distance` before.
    #[inline]
    fn match_at(&self, at: usize, end: usize, distance: usize) -> usize {
        let source = at - distance;
        let most = (end - at).min(self.public_len(source));
        common_prefix_len(&self.text[source..], &self.text[at..at + most])
    }

    /// Bytes from `source` on before the first private one.
    #[inline]
    fn public_len(&self, source: usize) -> usize {
        match self.private.last() {
            Some((_, end)) if *end > source => {
                let next = self.private.partition_point(|(_, end)| *end <= source);
                self.private[next].0.saturating_sub(source)
            }
            _ => usize::MAX,
        }
    }

    /// Repeats `len` bytes from `distance` before: more of the pending match, or a match of its own.
    #[inline]
    fn extend_match(&mut self, distance: usize, len: usize, bits: &mut BitWriter<'_>) {
        match &mut self.pending {
            Some(pending) if pending.distance == distance => pending.len += len,
            _ => {
                self.end_match(bits);
                self.pending = Some(Match { len, distance });
                self.last_distance = distance;
            }
        }
    }

    /// Writes the pending match.
    #[inline]
    fn end_match(&mut self, bits: &mut BitWriter<'_>) {
        let Some(Match { mut len, distance }) = self.pending.take() else {
            return;
        };
        while len > 0 {
            // What is left over must be a match again.
            let piece = match len {
                0..=MAX_MATCH => len,
                _ => MAX_MATCH.min(len - MIN_MATCH),
            };
            bits.put_match(piece, distance);
            len -= piece;
        }
    }

    /// Enters the places from `at` to `until`, as far as their bytes lie before `end`.
    #[inline]
    fn insert_positions(&mut self, at: usize, until: usize, end: usize) {
        let mut place = self.place(at);
        let bytes = self.text[at..end.min(until + MIN_FOUND_MATCH - 1)].windows(MIN_FOUND_MATCH);
        for bytes in bytes {
            self.matches.insert(u32_at(bytes, 0), place);
            place = place.wrapping_add(1);
        }
    }

    /// Position of `text[at]` in the stream, modulo 2^16.
    #[inline]
    const fn place(&self, at: usize) -> u16 {
        self.origin.wrapping_add(at as u16)
    }

    /// Drops text that no match can reach any more, when it is enough to be worth moving the rest.
    fn trim(&mut self) {
        let slack = self.window / 2;
        if self.text.len() < self.window + slack {
            return;
        }
        let removed_len = self.text.len() - self.window;
        self.text.copy_within(removed_len.., 0);
        self.text.truncate(self.window);
        self.text.shrink_to(self.window + 2 * slack);
        self.origin = self.place(removed_len);
        self.written -= removed_len;
        self.last_block = self.last_block.saturating_sub(removed_len);
        self.inserted_block = self.inserted_block.saturating_sub(removed_len);
        self.private.retain_mut(|(start, end)| {
            (*start, *end) = (
                start.saturating_sub(removed_len),
                end.saturating_sub(removed_len),
            );
            *end > 0
        });
        self.history.trim(removed_len);
    }
}

/// The host that a block names, or nothing: private values of different hosts are never compared.
fn host(version: Version, headers: &HeaderBlock) -> &[u8] {
    let name: &[u8] = match version {
        Version::V2 => b"host",
        Version::V3 | Version::V31 => b":host",
    };
    headers
        .iter()
        .find(|(other, _)| *other == name)
        .map_or(&[], |(_, value)| value)
}

/// The four bytes at `at`.
#[inline]
pub(crate) const fn u32_at(text: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]])
}

/// The number of equal bytes at the start of `text` and `other`; `text` is the longer one.
#[inline]
fn common_prefix_len(text: &[u8], other: &[u8]) -> usize {
    let text = &text[..other.len()];
    let differ = |at: usize, chunk: &[u8; 8], other_chunk: &[u8; 8]| {
        let bits = u64::from_le_bytes(*chunk) ^ u64::from_le_bytes(*other_chunk);
        (bits != 0).then(|| at + bits.trailing_zeros() as usize / 8)
    };
    let (chunks, tail) = text.as_chunks();
    let (other_chunks, other_tail) = other.as_chunks();
    for (number, (chunk, other_chunk)) in chunks.iter().zip(other_chunks).enumerate() {
        if let Some(len) = differ(number * 8, chunk, other_chunk) {
            return len;
        }
    }
    match (text.last_chunk(), other.last_chunk()) {
        // Begins before the tail, in bytes that are known to be equal.
        (Some(chunk), Some(other_chunk)) => {
            differ(other.len() - 8, chunk, other_chunk).unwrap_or(other.len())
        }
        _ => {
            let pairs = tail.iter().zip(other_tail);
            pairs.take_while(|(a, b)| a == b).count()
        }
    }
}
