//! Names and values in a header block, uncompressed (SPDY/3.1 §2.6.10).
//!
//! ```text
//! +-------------------+
//! |       count       |   32 bits, 16 in SPDY/2
//! +-------------------+   then count times:
//! |  length of name   |   32 bits, 16 in SPDY/2
//! |     name ...      |   a lower-case token; in SPDY/3 and 3.1 optionally with a colon before it
//! |  length of value  |   32 bits, 16 in SPDY/2
//! |     value ...     |   components, separated by a NUL
//! +-------------------+
//! ```
//!
//! Choices where the spec is open: a count, a length and the end of the block must agree to the byte. Names are tokens
//! of RFC 9110 §5.6.2 without capitals. Values contain no line end, because they are forwarded to HTTP/1.1. Empty values
//! are accepted in every version. Pairs with an empty value are not written in SPDY/2: its spec forbids them, and its
//! receivers reset the stream.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::blocks::block_rules::{
    NameSet, Reader, check_len, check_name, check_value, lowercase_names, max_string_len,
    printable, put_int, read, width,
};
use crate::error::BlockError;
use crate::version::Version;

/// Limits of one block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockLimits {
    /// Plain bytes of a block. A longer block is a stream error. Default 64 KiB.
    pub plain_bytes: usize,
    /// Plain bytes up to which a block is inflated even if it exceeds `plain_bytes`, so that the compression context
    /// stays valid. With one more byte the context is lost. Default 1 MiB.
    pub inflated_bytes: usize,
    /// Pairs, with each further component of a value counted as a pair. Default 256.
    pub pairs: usize,
    /// Bytes of a name. Default 256.
    pub name_bytes: usize,
    /// Bytes of a value, including its NULs. Default 32 KiB: half of a block, so that one value leaves room for the
    /// other headers.
    ///
    /// A smaller limit would save no memory, because a value is stored in the memory of its block. The usual limits of
    /// HTTP/1 servers (8 KiB, or 16 KiB for a cookie) would reject a Kerberos ticket with many groups, and about eight
    /// cookies of the 4096 bytes that browsers store (RFC 6265 §6.1). In 27,862 recorded messages the longest value is a
    /// cookie of 3506 bytes, and the longest block has 4.3 KB.
    pub value_bytes: usize,
    /// Whether capital letters in names are converted to lower case. Default `false`: a block with a capital letter in
    /// a name is malformed (SPDY/3.1 §2.6.10, §3.2). OkHttp's MockWebServer writes `Content-Length`.
    pub lowercase_names: bool,
}

impl Default for BlockLimits {
    fn default() -> Self {
        Self {
            plain_bytes: 64 * 1024,
            inflated_bytes: 1024 * 1024,
            pairs: 256,
            name_bytes: 256,
            value_bytes: 32 * 1024,
            lowercase_names: false,
        }
    }
}

/// Headers in the order of the wire. The components of a value are separated by single NULs.
///
/// All pairs are in one piece of memory, in SPDY/3's wire format: a block is one allocation, a clone needs none, and a value can be
/// [shared](Self::share).
///
/// Two blocks are equal if their pairs are; which values are [marked](Self::mark_secret) as secret only matters to the encoder.
#[derive(Clone, Default)]
pub struct HeaderBlock {
    /// How many pairs there are.
    len: usize,
    /// For each pair: length of the name (32 bits), name, length of the value (32 bits), value.
    pairs: Bytes,
    /// Names whose values are marked as secret in this block.
    secrets: Vec<Box<[u8]>>,
}

impl PartialEq for HeaderBlock {
    fn eq(&self, other: &Self) -> bool {
        self.pairs == other.pairs
    }
}

impl Eq for HeaderBlock {}

impl HeaderBlock {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a pair. If the block already has the name, `value` becomes one more NUL-separated component.
    ///
    /// A component is never empty: an empty `value` adds nothing to an existing name, and an existing empty value is
    /// replaced by `value`. Nothing is checked here: see [`check`](Self::check). For many pairs use [`BlockBuilder`].
    ///
    /// # Panics
    ///
    /// If a name or value is longer than 2^32 - 1 bytes.
    pub fn push(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        let (name, value) = (name.as_ref(), value.as_ref());
        if self.iter().all(|(other, _)| other != name) {
            let mut block = BlockBuilder {
                len: self.len,
                pairs: Vec::from(std::mem::take(&mut self.pairs)),
                value_at: 0,
                secrets: std::mem::take(&mut self.secrets),
            };
            block.pair(name, value);
            *self = block.finish();
            return;
        }
        let mut block = BlockBuilder::with_capacity(self.pairs.len() + 1 + value.len());
        for (other, old) in self.iter() {
            block.pair(other, old);
            if other == name && !value.is_empty() {
                if !old.is_empty() {
                    block.extend_value(b"\0");
                }
                block.extend_value(value);
            }
        }
        block.secrets = std::mem::take(&mut self.secrets);
        *self = block.finish();
    }

    /// Marks the value of `name` as a secret that is never compressed, not even by repeating it whole.
    ///
    /// Most values are private without this mark: see [`Secrets`](crate::secrets::Secrets).
    pub fn mark_secret(&mut self, name: impl AsRef<[u8]>) {
        self.secrets.push(name.as_ref().into());
    }

    /// Whether the value of `name` is [marked](Self::mark_secret) as a secret.
    #[must_use]
    #[inline]
    pub fn is_marked_secret(&self, name: &[u8]) -> bool {
        self.secrets.iter().any(|secret| **secret == *name)
    }

    /// The whole value of `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let name_bytes = name.as_bytes();
        self.iter()
            .find(|(name, _)| *name == name_bytes)
            .map(|(_, value)| value)
    }

    /// The components of the value of `name`: none if the block has no such name, one empty component if the value is empty.
    pub fn components(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.get(name)
            .into_iter()
            .flat_map(|value| value.split(|byte| *byte == 0))
    }

    /// Names and whole values, in the order of the wire.
    #[must_use]
    pub fn iter(&self) -> Pairs<'_> {
        Pairs { rest: &self.pairs }
    }

    /// Returns `part` without copying it. `part` is a name or value of this block, or a slice of one.
    ///
    /// # Panics
    ///
    /// If `part` is not in the memory of this block.
    #[must_use]
    pub fn share(&self, part: &[u8]) -> Bytes {
        self.pairs.slice_ref(part)
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the block has no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Length of the plain block in `version`'s layout, bytes.
    #[must_use]
    pub fn plain_len(&self, version: Version) -> usize {
        let width = width(version);
        match version {
            Version::V2 => self
                .written(version)
                .fold(width, |sum, (n, v)| sum + 2 * width + n.len() + v.len()),
            Version::V3 | Version::V31 => width + self.pairs.len(),
        }
    }

    /// Plain bytes of the block in `version`'s layout, appended to `out`.
    ///
    /// # Panics
    ///
    /// If a name or value is too long for its length field: more than 65,535 bytes in SPDY/2. [`check`](Self::check)
    /// detects that.
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        out.reserve(self.plain_len(version));
        put_int(version, self.count(version), out);
        match version {
            Version::V2 => {
                for (name, value) in self.written(version) {
                    put_int(version, name.len(), out);
                    out.put_slice(name);
                    put_int(version, value.len(), out);
                    out.put_slice(value);
                }
            }
            Version::V3 | Version::V31 => out.put_slice(&self.pairs),
        }
    }

    /// Reads the plain bytes of a whole block, and copies them.
    ///
    /// # Errors
    ///
    /// Everything §2.6.10 forbids and everything over `limits`.
    pub fn decode(
        version: Version,
        plain: &[u8],
        limits: &BlockLimits,
    ) -> Result<Self, BlockError> {
        if let Some(folded) = lowercase_names(version, plain, limits) {
            return Self::decode_shared(version, folded, limits);
        }
        let len = read(version, plain, limits)?;
        let pairs = &plain[width(version)..];
        Ok(match version {
            Version::V2 => from_v2_pairs(len, pairs),
            Version::V3 | Version::V31 => Self {
                len,
                pairs: Bytes::copy_from_slice(pairs),
                secrets: Vec::new(),
            },
        })
    }

    /// Like [`decode`](Self::decode), but shares `plain` instead of copying it (in SPDY/2 it is copied too).
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_shared(
        version: Version,
        mut plain: Bytes,
        limits: &BlockLimits,
    ) -> Result<Self, BlockError> {
        if let Some(folded) = lowercase_names(version, &plain, limits) {
            plain = folded;
        }
        let len = read(version, &plain, limits)?;
        plain.advance(width(version));
        Ok(match version {
            Version::V2 => from_v2_pairs(len, &plain),
            Version::V3 | Version::V31 => Self {
                len,
                pairs: plain,
                secrets: Vec::new(),
            },
        })
    }

    /// Checks that a peer with `limits` accepts this block in `version`'s layout.
    ///
    /// # Errors
    ///
    /// The error that [`decode`](Self::decode) of the peer would return.
    pub fn check(&self, version: Version, limits: &BlockLimits) -> Result<(), BlockError> {
        check_len(self.plain_len(version), limits)?;
        let longest = max_string_len(version);
        let mut components = self.count(version);
        let mut names = NameSet::with_capacity(self.len);
        for (name, value) in self.iter() {
            names.push(name);
            if value.is_empty() && version == Version::V2 {
                continue; // it is not written
            }
            check_name(version, name, limits)?;
            components += check_value(name, value, limits)?;
            if name.len() > longest {
                return Err(BlockError::NameTooLong {
                    limit: longest,
                    found: name.len(),
                });
            }
            if value.len() > longest {
                let (name, found) = (printable(name), value.len());
                return Err(BlockError::ValueTooLong {
                    name,
                    limit: longest,
                    found,
                });
            }
        }
        if components > limits.pairs {
            return Err(BlockError::TooManyPairs {
                limit: limits.pairs,
                found: components,
            });
        }
        names.check_differ()
    }

    /// Names and values as SPDY/3 writes them, without their count.
    #[inline]
    pub(crate) fn pairs(&self) -> &[u8] {
        &self.pairs
    }

    /// The pairs that are written in `version`.
    pub(crate) fn written(&self, version: Version) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter()
            .filter(move |(_, value)| version != Version::V2 || !value.is_empty())
    }

    /// How many pairs are written in `version`.
    pub(crate) fn count(&self, version: Version) -> usize {
        match version {
            Version::V2 => self.written(version).count(),
            Version::V3 | Version::V31 => self.len,
        }
    }
}

impl fmt::Debug for HeaderBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |string: &[u8]| string.escape_ascii().to_string();
        f.debug_map()
            .entries(self.iter().map(|(name, value)| {
                let value = match self.is_marked_secret(name) {
                    true => "(secret)".to_owned(),
                    false => shown(value),
                };
                (shown(name), value)
            }))
            .finish()
    }
}

/// Names and values of a block, in the order of the wire.
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    /// Whole pairs.
    rest: &'a [u8],
}

impl<'a> Pairs<'a> {
    #[inline]
    fn string(&mut self) -> &'a [u8] {
        let Some((len, rest)) = self.rest.split_first_chunk() else {
            unreachable!("header pair ends after {} bytes", self.rest.len())
        };
        let (string, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
        self.rest = rest;
        string
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let name = self.string();
        Some((name, self.string()))
    }
}

/// Builds a block pair by pair, without checking for duplicate names.
#[derive(Debug, Default)]
pub struct BlockBuilder {
    len: usize,
    pairs: Vec<u8>,
    /// Where the last value begins.
    value_at: usize,
    secrets: Vec<Box<[u8]>>,
}

impl BlockBuilder {
    /// Reserves `bytes` of memory: for names, values, and 8 bytes for each pair.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            pairs: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Appends a pair.
    ///
    /// # Panics
    ///
    /// Here and in [`extend_value`](Self::extend_value): if a name or value is longer than 2^32 - 1 bytes.
    #[inline]
    pub fn pair(&mut self, name: &[u8], value: &[u8]) {
        self.len += 1;
        put_int(Version::V3, name.len(), &mut self.pairs);
        self.pairs.extend_from_slice(name);
        put_int(Version::V3, value.len(), &mut self.pairs);
        self.value_at = self.pairs.len();
        self.pairs.extend_from_slice(value);
    }

    /// Appends `more` to the value of the last pair.
    #[inline]
    pub fn extend_value(&mut self, more: &[u8]) {
        assert!(self.len > 0, "the block has no pair to extend");
        self.pairs.extend_from_slice(more);
        let len = self.pairs.len() - self.value_at;
        put_int(
            Version::V3,
            len,
            &mut &mut self.pairs[self.value_at - 4..self.value_at],
        );
    }

    /// Marks the value of `name` as a secret; see [`HeaderBlock::mark_secret`].
    pub fn mark_secret(&mut self, name: &[u8]) {
        self.secrets.push(name.into());
    }

    /// The block.
    #[must_use]
    pub fn finish(self) -> HeaderBlock {
        HeaderBlock {
            len: self.len,
            pairs: Bytes::from(self.pairs),
            secrets: self.secrets,
        }
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> Extend<(N, V)> for HeaderBlock {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, pairs: I) {
        pairs
            .into_iter()
            .for_each(|(name, value)| self.push(name, value));
    }
}

impl<N: AsRef<[u8]>, V: AsRef<[u8]>> FromIterator<(N, V)> for HeaderBlock {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut block = Self::new();
        block.extend(pairs);
        block
    }
}

/// Converts `len` pairs in the layout of SPDY/2, with 16-bit lengths.
fn from_v2_pairs(len: usize, pairs: &[u8]) -> HeaderBlock {
    let mut reader = Reader::new(Version::V2, pairs);
    let mut block = BlockBuilder::with_capacity(pairs.len() + 4 * len);
    for _ in 0..len {
        let (Ok(name), Ok(value)) = (reader.string(), reader.string()) else {
            unreachable!("fewer than {len} pairs, which were decoded before")
        };
        block.pair(name, value);
    }
    block.finish()
}
