//! A deflate encoder that never lets a secret meet anything else (RFC 1951, and CRIME).
//!
//! Compression tells by the length of its output whether two texts are alike. If one is a cookie and
//! the other is written by an attacker, he guesses the cookie a byte at a time (CVE-2012-4929). No
//! switch of zlib prevents that: text compressed at level 0 or without matches is still in the window,
//! and later matches reach it. So this encoder cuts a block into public and secret parts:
//!
//! ```text
//! block    | count  name  length  value  name  length  SECRET  name  length  value |
//! written  | matches and literals ...................  literals  matches and ..... |
//! window   | as it stands ...........................  zeros     as it stands .... |
//!                                                      masked
//! ```
//!
//! - A secret is written as literals of the fixed code: its bits depend on its own bytes alone, and not
//!   even on them for ASCII, where each takes eight.
//! - The window here holds zeros in its place, so the search cannot see it. The peer's window holds the
//!   secret, so a match must not run over those zeros: no position whose three bytes touch them is
//!   entered into the tables, and every match ends where its source meets them.
//! - A match ends where the secret begins also at the place that is being written.
//!
//! What then holds is more than that a right guess costs as much as a wrong one: *the length of a block
//! is a function of its public bytes and of the lengths of its secrets*, for secrets in ASCII; and the
//! state left behind has no byte of a secret in it. Chosen text may match the dictionary and other
//! public text as it likes. Lengths of secrets do show, as they do without compression.
//!
//! The fixed code costs some percent against zlib's dynamic codes, which would have to be computed from
//! public bytes alone, and saves their tables (RFC 1951 §3.2.6).
//!
//! Memory: 6 KiB of tables, 3 KiB of window and block, 16 bytes for each secret in the window.

use bytes::{BufMut, BytesMut};

use crate::block_rules::put_int;
use crate::dictionary::dictionary;
use crate::header_block::HeaderBlock;
use crate::huffman::{
    BitWriter, Bits, DISTANCES, END_OF_BLOCK, LENGTHS, LITERALS, MAX_DISTANCE, MAX_MATCH, MIN_MATCH,
};
use crate::version::Version;

/// Bytes that a match can reach back: 2^11, as the zlib head says.
const WINDOW: usize = MAX_DISTANCE;

/// Room for the window and a usual block; a longer block borrows more and gives it back.
const TEXT_CAPACITY: usize = WINDOW + 1024;

/// Candidates looked at for one match.
const CHAIN: usize = 48;

/// A match so long that the next byte is not tried for a longer one.
const GOOD_MATCH: usize = 64;

/// `BFINAL = 0`, `BTYPE = 01`: a block of the fixed code that is not the last (RFC 1951 §3.2.3).
const FIXED_BLOCK: Bits = Bits::new(0b010, 3);

/// `BFINAL = 0`, `BTYPE = 00`: a stored block; an empty one is the sync flush that ends every block.
const STORED_BLOCK: Bits = Bits::new(0, 3);
const EMPTY_STORED: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

/// Whether the value of `name` is a secret.
fn is_secret(name: &[u8]) -> bool {
    const SECRETS: [&[u8]; 4] = [
        b"cookie",
        b"set-cookie",
        b"authorization",
        b"proxy-authorization",
    ];
    SECRETS
        .iter()
        .any(|secret| name.eq_ignore_ascii_case(secret))
}

/// The encoder of one direction: everything after the zlib head.
pub(crate) struct Masked {
    version: Version,
    tables: Box<Tables>,
    /// The last [`WINDOW`] bytes of plain text, then the block at hand; zeros for secrets.
    text: Vec<u8>,
    /// Where `text[0]` stands in the stream, modulo 2^16.
    origin: u16,
    /// Where in `text` secrets are: start and end, ascending.
    secrets: Vec<(usize, usize)>,
    /// The first place in `text` that is not in the tables yet.
    unentered: usize,
}

/// A repetition of earlier text.
#[derive(Clone, Copy)]
struct Match {
    len: usize,
    distance: usize,
}

impl Masked {
    pub(crate) fn new(version: Version) -> Self {
        let mut text = Vec::with_capacity(TEXT_CAPACITY);
        text.extend_from_slice(dictionary(version));
        Self {
            version,
            tables: Box::new(Tables::of(version).clone()),
            unentered: text.len() - (MIN_MATCH - 1),
            text,
            origin: 0,
            secrets: Vec::new(),
        }
    }

    /// Appends the compressed block to `out`; returns its plain length.
    pub(crate) fn deflate(&mut self, headers: &HeaderBlock, out: &mut BytesMut) -> usize {
        let plain_bytes = headers.plain_len(self.version);
        // Nine bits at most for each byte, and a little for the ends: nothing grows while bits flow.
        out.reserve(plain_bytes + plain_bytes / 8 + 16);
        self.text.reserve(plain_bytes);
        let mut bits = BitWriter::new(out);
        bits.put(FIXED_BLOCK);

        let mut public = self.text.len();
        put_int(self.version, headers.count(self.version), &mut self.text);
        for (name, value) in headers.written(self.version) {
            put_int(self.version, name.len(), &mut self.text);
            self.text.put_slice(name);
            put_int(self.version, value.len(), &mut self.text);
            if is_secret(name) {
                self.write_public(public, &mut bits);
                self.write_secret(value, &mut bits);
                public = self.text.len();
            } else {
                self.text.put_slice(value);
            }
        }
        self.write_public(public, &mut bits);

        bits.put(END_OF_BLOCK);
        bits.put(STORED_BLOCK);
        bits.align();
        bits.put_bytes(&EMPTY_STORED);
        self.forget();
        plain_bytes
    }

    /// Writes `value` byte by byte, and leaves zeros where it stood.
    fn write_secret(&mut self, value: &[u8], bits: &mut BitWriter<'_>) {
        value
            .iter()
            .for_each(|byte| bits.put(LITERALS[usize::from(*byte)]));
        let start = self.text.len();
        let end = start + value.len();
        self.text.resize(end, 0);
        if start < end {
            self.secrets.push((start, end));
        }
        self.unentered = end;
    }

    /// Writes all text from `at` on, none of it secret, as matches where there are any.
    fn write_public(&mut self, mut at: usize, bits: &mut BitWriter<'_>) {
        let end = self.text.len();
        self.enter(at, end);
        let mut found = self.longest_match(at, end, MIN_MATCH - 1);
        while at < end {
            self.enter(at + 1, end);
            let Some(here) = found else {
                bits.put(LITERALS[usize::from(self.text[at])]);
                at += 1;
                found = self.longest_match(at, end, MIN_MATCH - 1);
                continue;
            };
            // A longer match may begin one byte later; then this byte is better a literal.
            if here.len < GOOD_MATCH {
                let next = self.longest_match(at + 1, end, here.len);
                if next.is_some() {
                    bits.put(LITERALS[usize::from(self.text[at])]);
                    at += 1;
                    found = next;
                    continue;
                }
            }
            bits.put(LENGTHS[here.len - MIN_MATCH]);
            bits.put(DISTANCES[here.distance - 1]);
            at += here.len;
            self.enter(at, end);
            found = self.longest_match(at, end, MIN_MATCH - 1);
        }
    }

    /// The longest match for the text from `at` to `end` that is longer than `longer_than`.
    #[inline]
    fn longest_match(&self, at: usize, end: usize, longer_than: usize) -> Option<Match> {
        let most = MAX_MATCH.min(end.saturating_sub(at));
        if most <= longer_than {
            return None;
        }
        let (text, place) = (&self.text[..end], self.place(at));
        let mut candidate = self.tables.head[hash(text, at)];
        let (mut best, mut distance) = (longer_than, 0);
        let mut nearer = 0;
        for _ in 0..CHAIN {
            let back = usize::from(place.wrapping_sub(candidate));
            // Places are counted modulo 2^16 and old entries stay until overwritten, so a candidate may
            // be anything. Every one is compared in full and measured against the mask, which makes a
            // stale one harmless; distances that do not grow end the chain.
            if back <= nearer || back > MAX_DISTANCE || back > at {
                break;
            }
            nearer = back;
            let source = at - back;
            if text[source + best] == text[at + best] {
                let len = common(&text[source..], &text[at..at + most]);
                let len = len.min(self.unmasked(source));
                if len > best {
                    (best, distance) = (len, back);
                    if len == most {
                        break;
                    }
                }
            }
            candidate = self.tables.prev[usize::from(candidate) % WINDOW];
        }
        (distance > 0).then_some(Match {
            len: best,
            distance,
        })
    }

    /// Bytes from `source` on before the first masked one.
    #[inline]
    fn unmasked(&self, source: usize) -> usize {
        match self.secrets.last() {
            Some((_, end)) if *end > source => {
                let next = self.secrets.partition_point(|(_, end)| *end <= source);
                self.secrets[next].0.saturating_sub(source)
            }
            _ => usize::MAX,
        }
    }

    /// Enters the places before `limit` into the tables, as far as their three bytes lie before `end`.
    #[inline]
    fn enter(&mut self, limit: usize, end: usize) {
        let limit = limit.min(end.saturating_sub(MIN_MATCH - 1));
        while self.unentered < limit {
            let place = self.place(self.unentered);
            self.tables.enter(hash(&self.text, self.unentered), place);
            self.unentered += 1;
        }
    }

    /// Where `text[at]` stands in the stream, modulo 2^16.
    #[inline]
    const fn place(&self, at: usize) -> u16 {
        self.origin.wrapping_add(at as u16)
    }

    /// Drops what no match can reach any more.
    fn forget(&mut self) {
        let Some(gone) = self.text.len().checked_sub(WINDOW) else {
            return;
        };
        self.text.copy_within(gone.., 0);
        self.text.truncate(WINDOW);
        if self.text.capacity() > 4 * TEXT_CAPACITY {
            self.text.shrink_to(TEXT_CAPACITY);
        }
        self.origin = self.place(gone);
        self.unentered = self.unentered.saturating_sub(gone);
        self.secrets.retain_mut(|(start, end)| {
            (*start, *end) = (start.saturating_sub(gone), end.saturating_sub(gone));
            *end > 0
        });
    }
}

/// How many bytes `text` and `wanted` have in common; `text` is the longer one.
#[inline]
fn common(text: &[u8], wanted: &[u8]) -> usize {
    let mut len = 0;
    while let (Some(a), Some(b)) = (text[len..].first_chunk(), wanted[len..].first_chunk()) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return len + differ.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + text[len..]
        .iter()
        .zip(&wanted[len..])
        .take_while(|(a, b)| a == b)
        .count()
}

const HASH_BITS: u32 = 10;

/// A number for the three bytes at `at`.
#[inline]
const fn hash(text: &[u8], at: usize) -> usize {
    let three = (text[at] as u32) << 16 | (text[at + 1] as u32) << 8 | text[at + 2] as u32;
    (three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

/// Where in the stream, modulo 2^16, the same three bytes stood.
#[derive(Clone)]
struct Tables {
    /// The last place for each hash.
    head: [u16; 1 << HASH_BITS],
    /// The place before, for each place in the window.
    prev: [u16; WINDOW],
}

impl Tables {
    /// What a stream begins with: the places of the dictionary. Computed by the compiler, shared by all
    /// streams, copied by each.
    fn of(version: Version) -> &'static Self {
        static V2: Tables = Tables::entered(dictionary(Version::V2));
        static V3: Tables = Tables::entered(dictionary(Version::V3));
        match version {
            Version::V2 => &V2,
            Version::V3 | Version::V31 => &V3,
        }
    }

    const fn entered(text: &[u8]) -> Self {
        let mut tables = Self {
            head: [0; 1 << HASH_BITS],
            prev: [0; WINDOW],
        };
        let mut at = 0;
        while at + MIN_MATCH <= text.len() {
            tables.enter(hash(text, at), at as u16);
            at += 1;
        }
        tables
    }

    #[inline]
    const fn enter(&mut self, hash: usize, place: u16) {
        self.prev[place as usize % WINDOW] = self.head[hash];
        self.head[hash] = place;
    }
}
