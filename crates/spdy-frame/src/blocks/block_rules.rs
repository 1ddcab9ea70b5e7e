//! Rules for a plain header block: its layout, and what names and values may contain (SPDY/3.1 §2.6.10).

use bytes::{BufMut, Bytes};

use crate::blocks::header_block::BlockLimits;
use crate::error::BlockError;
use crate::version::Version;

/// Checks the plain bytes of a whole block; returns the number of pairs in it.
pub(crate) fn read(
    version: Version,
    plain: &[u8],
    limits: &BlockLimits,
) -> Result<usize, BlockError> {
    check_len(plain.len(), limits)?;
    let mut reader = Reader::new(version, plain);
    let count = reader.int()? as usize;
    let too_many = |found| BlockError::TooManyPairs {
        limit: limits.pairs,
        found,
    };
    // Each pair needs two lengths and a name of at least one byte. A count of more pairs than fit in the bytes is
    // rejected before memory is reserved for them.
    let least = 2 * width(version) + 1;
    let remaining = plain.len() - reader.at;
    if count > remaining / least {
        let expected = reader.at as u64 + count as u64 * least as u64;
        return Err(BlockError::Overrun {
            expected,
            found: plain.len(),
        });
    }
    if count > limits.pairs {
        return Err(too_many(count));
    }
    let mut names = NameSet::with_capacity(count);
    let mut components = count;
    for _ in 0..count {
        let name = reader.string()?;
        check_name(version, name, limits)?;
        let value = reader.string()?;
        components += check_value(name, value, limits)?;
        if components > limits.pairs {
            return Err(too_many(components));
        }
        names.push(name);
    }
    match plain.len() - reader.at {
        0 => {}
        found => return Err(BlockError::Leftover { found }),
    }
    names.check_differ()?;
    Ok(count)
}

/// Returns a copy of `plain` with lower-case names, if [`BlockLimits::lowercase_names`] is set and a name has capital
/// letters. Call it before [`read`], because two names may become equal.
pub(crate) fn lowercase_names(
    version: Version,
    plain: &[u8],
    limits: &BlockLimits,
) -> Option<Bytes> {
    if !limits.lowercase_names || plain.len() > limits.plain_bytes {
        return None;
    }
    let mut folded = None;
    let mut reader = Reader::new(version, plain);
    let count = reader.int().ok()?;
    for _ in 0..count {
        // `read` reports an invalid block.
        let Ok(name) = reader.string() else { break };
        if name.iter().any(u8::is_ascii_uppercase) {
            let plain = folded.get_or_insert_with(|| plain.to_vec());
            plain[reader.at - name.len()..reader.at].make_ascii_lowercase();
        }
        if reader.string().is_err() {
            break;
        }
    }
    folded.map(Bytes::from)
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
                panic!("header string has {value} bytes, limit 65535 in {version}")
            }
        },
        Version::V3 | Version::V31 => match u32::try_from(value) {
            Ok(value) => out.put_u32(value),
            Err(_) => panic!("header string has {value} bytes, limit 4294967295 in {version}"),
        },
    }
}

/// Bytes of a count or length.
pub(crate) const fn width(version: Version) -> usize {
    match version {
        Version::V2 => 2,
        Version::V3 | Version::V31 => 4,
    }
}

pub(crate) const fn max_string_len(version: Version) -> usize {
    match version {
        Version::V2 => u16::MAX as usize,
        Version::V3 | Version::V31 => u32::MAX as usize,
    }
}

/// Reads integers and strings from a plain block. Lengths are compared with the remaining bytes, never with a sum that could
/// overflow.
pub(crate) struct Reader<'a> {
    version: Version,
    plain: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(version: Version, plain: &'a [u8]) -> Self {
        let at = 0;
        Self { version, plain, at }
    }

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
        let value = value.ok_or_else(|| self.overrun(width as u64))?;
        self.at += width;
        Ok(value)
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], BlockError> {
        let len = self.int()?;
        let string = self.plain[self.at..].get(..len as usize);
        let string = string.ok_or_else(|| self.overrun(u64::from(len)))?;
        self.at += string.len();
        Ok(string)
    }

    fn overrun(&self, more: u64) -> BlockError {
        BlockError::Overrun {
            expected: self.at as u64 + more,
            found: self.plain.len(),
        }
    }
}

pub(crate) fn check_len(found: usize, limits: &BlockLimits) -> Result<(), BlockError> {
    let limit = limits.plain_bytes;
    if found > limit {
        Err(BlockError::TooLong { limit, found })
    } else {
        Ok(())
    }
}

pub(crate) fn check_name(
    version: Version,
    name: &[u8],
    limits: &BlockLimits,
) -> Result<(), BlockError> {
    let (limit, found) = (limits.name_bytes, name.len());
    if found > limit {
        return Err(BlockError::NameTooLong { limit, found });
    }
    let token = match (name, version) {
        ([], _) => return Err(BlockError::NameEmpty),
        // A colon alone is not a prefix; the search below rejects it.
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
pub(crate) fn check_value(
    name: &[u8],
    value: &[u8],
    limits: &BlockLimits,
) -> Result<usize, BlockError> {
    let (limit, found) = (limits.value_bytes, value.len());
    if found > limit {
        return Err(BlockError::ValueTooLong {
            name: printable(name),
            limit,
            found,
        });
    }
    // Nearly every value has none of the three bytes.
    if !has_nul_or_line_end(value) {
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

/// True if one of the bytes is NUL, CR or LF. Tests eight bytes at once.
fn has_nul_or_line_end(value: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // Nonzero if and only if one of the bytes is zero.
    let zeros = |eight: u64| eight.wrapping_sub(ONES) & !eight & HIGH;
    let found = |chunk: &[u8; 8]| {
        let eight = u64::from_le_bytes(*chunk);
        let line_ends = zeros(eight ^ (ONES * 0x0d)) | zeros(eight ^ (ONES * 0x0a));
        zeros(eight) | line_ends != 0
    };
    match value.last_chunk() {
        Some(last) => value.as_chunks().0.iter().any(found) || found(last),
        None => value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n')),
    }
}

/// Up to this number of names, comparing all pairs is faster than sorting, and needs no allocation.
const SORT_ABOVE: usize = 24;

/// The names of one block, to detect duplicates.
pub(crate) struct NameSet<'a> {
    few: [&'a [u8]; SORT_ABOVE],
    len: usize,
    /// All names, if there are more than [`SORT_ABOVE`].
    many: Vec<&'a [u8]>,
}

impl<'a> NameSet<'a> {
    /// With room for `len` names.
    #[inline]
    pub(crate) fn with_capacity(len: usize) -> Self {
        let many = if len > SORT_ABOVE { len } else { 0 };
        Self {
            few: [&[]; SORT_ABOVE],
            len: 0,
            many: Vec::with_capacity(many),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, name: &'a [u8]) {
        if self.many.capacity() > 0 {
            self.many.push(name);
        } else {
            self.few[self.len] = name;
            self.len += 1;
        }
    }

    /// Checks that no name occurs twice, in at most n log n steps. Sorting instead of hashing: there is no seed to
    /// keep secret, and no input makes it slow.
    #[inline]
    pub(crate) fn check_differ(mut self) -> Result<(), BlockError> {
        let few = &self.few[..self.len];
        let mut twice = (1..few.len())
            .find(|at| few[..*at].contains(&few[*at]))
            .map(|at| few[at]);
        if !self.many.is_empty() {
            self.many.sort_unstable();
            twice = self
                .many
                .windows(2)
                .find(|two| two[0] == two[1])
                .map(|two| two[0]);
        }
        match twice {
            None => Ok(()),
            Some(name) => Err(BlockError::Duplicate {
                name: printable(name),
            }),
        }
    }
}

pub(crate) fn printable(name: &[u8]) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_and_line_ends_are_found_at_every_place_and_nothing_else_is() {
        for len in 0..=20 {
            for at in 0..len {
                for byte in 0..=u8::MAX {
                    // Neighbours whose subtraction borrows.
                    for others in [1, b'a', 0x80, u8::MAX] {
                        let mut value = vec![others; len];
                        value[at] = byte;
                        let expected = matches!(byte, 0 | b'\r' | b'\n');
                        assert_eq!(has_nul_or_line_end(&value), expected, "{value:x?}");
                    }
                }
            }
        }
    }
}
