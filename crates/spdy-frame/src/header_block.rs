//! Names and values in a header block, uncompressed (SPDY/3.1 §2.6.10).
//!
//! ```text
//! +-------------------+
//! |       count       |   32 bits, 16 in SPDY/2
//! +-------------------+   then count times:
//! |  length of name   |   32 bits, 16 in SPDY/2
//! |     name ...      |   a lower-case token; in SPDY/3 and 3.1 a colon may stand before it
//! |  length of value  |   32 bits, 16 in SPDY/2
//! |     value ...     |   components with a NUL between two
//! +-------------------+
//! ```
//!
//! Where the text leaves room we chose: a count, a length and the end of the block must agree to the
//! byte; names are tokens of RFC 9110 §5.6.2 without capitals; values have no line end, since they go
//! on to HTTP/1.1; values may be empty in every version when read, but pairs with an empty value are
//! left out when SPDY/2 is written, whose text forbids them and whose readers reset the stream.

use bytes::{BufMut, Bytes, BytesMut};

use crate::error::BlockError;
use crate::version::Version;

/// Limits on what one block may hold.
#[derive(Clone, Debug)]
pub struct BlockLimits {
    /// Plain bytes of a block that are kept. Default 64 KiB.
    pub plain_bytes: usize,
    /// Plain bytes that a block is inflated to at most, kept or not, to save the compression context
    /// when `plain_bytes` is passed. One more and the context is given up. Default 1 MiB.
    pub inflated_bytes: usize,
    /// Pairs, with each further component of a value counted as a pair. Default 256.
    pub pairs: usize,
    /// Bytes of a name. Default 256.
    pub name_bytes: usize,
    /// Bytes of a value, its NULs included. Default 32 KiB.
    pub value_bytes: usize,
}

impl Default for BlockLimits {
    fn default() -> Self {
        Self {
            plain_bytes: 64 * 1024,
            inflated_bytes: 1024 * 1024,
            pairs: 256,
            name_bytes: 256,
            value_bytes: 32 * 1024,
        }
    }
}

/// Headers in the order of the wire. A value with several components holds single NULs between them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HeaderBlock {
    pairs: Vec<(Bytes, Bytes)>,
}

impl HeaderBlock {
    /// No headers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No headers, and room for `pairs` of them.
    #[must_use]
    pub fn with_capacity(pairs: usize) -> Self {
        Self {
            pairs: Vec::with_capacity(pairs),
        }
    }

    /// Appends a pair; a name that is already there gets one more NUL-separated component.
    ///
    /// A component is never empty, so an empty value adds nothing to a name that is there, and gives
    /// way to the first that is not empty. Nothing is checked here: see [`check`](Self::check).
    pub fn push(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) {
        let (name, value) = (name.into(), value.into());
        let Some((_, old)) = self.pairs.iter_mut().find(|(other, _)| *other == name) else {
            return self.pairs.push((name, value));
        };
        if old.is_empty() {
            *old = value;
        } else if !value.is_empty() {
            let mut joined = BytesMut::with_capacity(old.len() + 1 + value.len());
            joined.put_slice(old);
            joined.put_u8(0);
            joined.put_slice(&value);
            *old = joined.freeze();
        }
    }

    /// The whole value of `name`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Bytes> {
        let wanted = name.as_bytes();
        self.pairs
            .iter()
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value)
    }

    /// The components of the value of `name`; none if it is not there, one empty one if it is empty.
    pub fn components(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.value(name)
            .into_iter()
            .flat_map(|value| value.split(|byte| *byte == 0))
    }

    /// Names and whole values, in the order of the wire.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.pairs.iter().map(|(name, value)| (name, value))
    }

    /// How many names there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is no name.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Length of the plain block in `version`'s layout, bytes.
    #[must_use]
    pub fn plain_len(&self, version: Version) -> usize {
        let width = width(version);
        self.written(version)
            .fold(width, |sum, (n, v)| sum + 2 * width + n.len() + v.len())
    }

    /// Plain bytes of the block in `version`'s layout, appended to `out`.
    ///
    /// # Panics
    ///
    /// If a name or value is longer than a length can say: 65,535 bytes in SPDY/2, 2^32 - 1 else.
    /// [`check`](Self::check) finds that.
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        out.reserve(self.plain_len(version));
        put_int(version, self.count(version), out);
        for (name, value) in self.written(version) {
            put_int(version, name.len(), out);
            out.put_slice(name);
            put_int(version, value.len(), out);
            out.put_slice(value);
        }
    }

    /// Reads the plain bytes of a whole block.
    ///
    /// # Errors
    ///
    /// Everything §2.6.10 forbids and everything over `limits`.
    pub fn decode(
        version: Version,
        plain: &[u8],
        limits: &BlockLimits,
    ) -> Result<Self, BlockError> {
        // Before the copy, not after it.
        check_len(plain.len(), limits)?;
        Self::decode_shared(version, &Bytes::copy_from_slice(plain), limits)
    }

    /// Reads the plain bytes of a whole block; names and values share them.
    ///
    /// # Errors
    ///
    /// As [`decode`](Self::decode).
    pub fn decode_shared(
        version: Version,
        plain: &Bytes,
        limits: &BlockLimits,
    ) -> Result<Self, BlockError> {
        check_len(plain.len(), limits)?;
        let mut reader = Reader {
            version,
            plain,
            at: 0,
        };
        let count = reader.int()? as usize;
        let too_many = |got| BlockError::TooManyPairs {
            limit: limits.pairs,
            got,
        };
        // Each pair takes two lengths and a name of a byte at least: a count that promises more pairs
        // than the bytes can hold is told before room is made for them.
        let least = 2 * width(version) + 1;
        let left = plain.len() - reader.at;
        if count > left / least {
            let want = reader.at as u64 + count as u64 * least as u64;
            return Err(BlockError::Overrun {
                want,
                have: plain.len(),
            });
        }
        if count > limits.pairs {
            return Err(too_many(count));
        }
        let mut pairs = Vec::with_capacity(count);
        let mut components = count;
        for _ in 0..count {
            let name = reader.string()?;
            check_name(version, &name, limits)?;
            let value = reader.string()?;
            components += check_value(&name, &value, limits)?;
            if components > limits.pairs {
                return Err(too_many(components));
            }
            pairs.push((name, value));
        }
        match plain.len() - reader.at {
            0 => {}
            got => return Err(BlockError::Leftover { got }),
        }
        check_names_differ(&pairs)?;
        Ok(Self { pairs })
    }

    /// Whether a peer with `limits` may take this block in `version`'s layout.
    ///
    /// # Errors
    ///
    /// What [`decode`](Self::decode) would say of it there.
    pub fn check(&self, version: Version, limits: &BlockLimits) -> Result<(), BlockError> {
        check_len(self.plain_len(version), limits)?;
        let longest = longest_string(version);
        let mut components = self.count(version);
        for (name, value) in self.written(version) {
            check_name(version, name, limits)?;
            components += check_value(name, value, limits)?;
            if name.len() > longest {
                return Err(BlockError::NameTooLong {
                    limit: longest,
                    got: name.len(),
                });
            }
            if value.len() > longest {
                let (name, got) = (printable(name), value.len());
                return Err(BlockError::ValueTooLong {
                    name,
                    limit: longest,
                    got,
                });
            }
        }
        if components > limits.pairs {
            return Err(BlockError::TooManyPairs {
                limit: limits.pairs,
                got: components,
            });
        }
        check_names_differ(&self.pairs)
    }

    /// The pairs that are written in `version`.
    pub(crate) fn written(&self, version: Version) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.iter()
            .filter(move |(_, value)| version != Version::V2 || !value.is_empty())
    }

    /// How many pairs are written in `version`.
    pub(crate) fn count(&self, version: Version) -> usize {
        match version {
            Version::V2 => self.written(version).count(),
            Version::V3 | Version::V31 => self.pairs.len(),
        }
    }
}

impl<N: Into<Bytes>, V: Into<Bytes>> Extend<(N, V)> for HeaderBlock {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, pairs: I) {
        pairs
            .into_iter()
            .for_each(|(name, value)| self.push(name, value));
    }
}

impl<N: Into<Bytes>, V: Into<Bytes>> FromIterator<(N, V)> for HeaderBlock {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut block = Self::new();
        block.extend(pairs);
        block
    }
}

/// Appends a count or length.
///
/// # Panics
///
/// If it does not fit.
pub(crate) fn put_int(version: Version, value: usize, out: &mut impl BufMut) {
    match version {
        Version::V2 => match u16::try_from(value) {
            Ok(value) => out.put_u16(value),
            Err(_) => {
                panic!("a header string of {value} bytes in {version}, which counts to 65535")
            }
        },
        Version::V3 | Version::V31 => match u32::try_from(value) {
            Ok(value) => out.put_u32(value),
            Err(_) => panic!("a header string of {value} bytes in {version}"),
        },
    }
}

/// Bytes of a count or length.
const fn width(version: Version) -> usize {
    match version {
        Version::V2 => 2,
        Version::V3 | Version::V31 => 4,
    }
}

const fn longest_string(version: Version) -> usize {
    match version {
        Version::V2 => u16::MAX as usize,
        Version::V3 | Version::V31 => u32::MAX as usize,
    }
}

/// Reads integers and strings off a plain block, comparing by what is left, never by a sum that a
/// length could make wrap.
struct Reader<'a> {
    version: Version,
    plain: &'a Bytes,
    at: usize,
}

impl Reader<'_> {
    fn int(&mut self) -> Result<u32, BlockError> {
        let rest = &self.plain[self.at..];
        let value = match self.version {
            Version::V2 => rest
                .first_chunk()
                .map(|bytes| u32::from(u16::from_be_bytes(*bytes))),
            Version::V3 | Version::V31 => {
                rest.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
            }
        };
        let width = width(self.version);
        let value = value.ok_or(self.overrun(width as u64))?;
        self.at += width;
        Ok(value)
    }

    fn string(&mut self) -> Result<Bytes, BlockError> {
        let len = self.int()?;
        if len as usize > self.plain.len() - self.at {
            return Err(self.overrun(u64::from(len)));
        }
        let start = self.at;
        self.at += len as usize;
        Ok(self.plain.slice(start..self.at))
    }

    fn overrun(&self, more: u64) -> BlockError {
        BlockError::Overrun {
            want: self.at as u64 + more,
            have: self.plain.len(),
        }
    }
}

fn check_len(got: usize, limits: &BlockLimits) -> Result<(), BlockError> {
    let limit = limits.plain_bytes;
    if got > limit {
        Err(BlockError::TooLong { limit, got })
    } else {
        Ok(())
    }
}

fn check_name(version: Version, name: &[u8], limits: &BlockLimits) -> Result<(), BlockError> {
    let (limit, got) = (limits.name_bytes, name.len());
    if got > limit {
        return Err(BlockError::NameTooLong { limit, got });
    }
    let token = match (name, version) {
        ([], _) => return Err(BlockError::NameEmpty),
        // A colon alone names nothing, so it falls through and is found below.
        ([b':', rest @ ..], Version::V3 | Version::V31) if !rest.is_empty() => rest,
        (name, _) => name,
    };
    match token.iter().find(|byte| !NAME_BYTES[usize::from(**byte)]) {
        None => Ok(()),
        Some(byte) => Err(BlockError::NameByte {
            name: printable(name),
            byte: *byte,
        }),
    }
}

/// Checks a value; returns how many components it has beyond the first.
fn check_value(name: &[u8], value: &[u8], limits: &BlockLimits) -> Result<usize, BlockError> {
    let (limit, got) = (limits.value_bytes, value.len());
    if got > limit {
        return Err(BlockError::ValueTooLong {
            name: printable(name),
            limit,
            got,
        });
    }
    // One pass for what nearly every value is: no byte of the three.
    if !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        return Ok(0);
    }
    if let Some(byte) = value.iter().find(|byte| matches!(byte, b'\r' | b'\n')) {
        return Err(BlockError::ValueByte {
            name: printable(name),
            byte: *byte,
        });
    }
    let components = value.split(|byte| *byte == 0);
    if components.clone().any(<[u8]>::is_empty) {
        return Err(BlockError::EmptyComponent {
            name: printable(name),
        });
    }
    Ok(components.count() - 1)
}

/// Finds a name that stands there twice, in n log n steps at most.
///
/// Sorting rather than hashing: there is no seed to keep secret, and no input makes it slow.
fn check_names_differ(pairs: &[(Bytes, Bytes)]) -> Result<(), BlockError> {
    /// Up to here comparing all with all is quicker than sorting, and needs no memory.
    const FEW: usize = 24;
    let twice = if pairs.len() <= FEW {
        let mut names = pairs.iter().map(|(name, _)| name).enumerate();
        names
            .find(|(at, name)| pairs[..*at].iter().any(|(other, _)| other == name))
            .map(|(_, name)| name)
    } else {
        let mut names: Vec<&Bytes> = pairs.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names
            .windows(2)
            .find(|two| two[0] == two[1])
            .map(|two| two[0])
    };
    match twice {
        None => Ok(()),
        Some(name) => Err(BlockError::Duplicate {
            name: printable(name),
        }),
    }
}

fn printable(name: &[u8]) -> String {
    name.escape_ascii().to_string()
}

/// The bytes of a token (RFC 9110 §5.6.2), without capitals.
static NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let is_token = matches!(
            byte as u8,
            b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'0'..=b'9' | b'^'..=b'z' | b'|' | b'~'
        );
        table[byte] = is_token;
        byte += 1;
    }
    table
};
