//! Field sections: the lines of a head or of trailers (RFC 9204 §4.5).
//!
//! ```text
//! section  required insert count 8+ | S, delta base 7+         0 0: nothing refers to the dynamic table
//! line     1 T index 6+                                        name and value of a table (T: the static one)
//!          0 0 0 1 index 4+                                    the same, dynamic and counted from the base upwards
//!          0 1 N T index 4+ | H length 7+ value                a name of a table, another value
//!          0 0 0 0 N index 3+ | H length 7+ value              the same, dynamic and counted from the base upwards
//!          0 0 1 N H length 3+ name | H length 7+ value        neither
//! ```
//!
//! N marks a value that must never be in a table.

use bytes::{Bytes, BytesMut};

use crate::qpack::dynamic_table::{DynamicTable, Entry};
use crate::qpack::field::Field;
use crate::qpack::primitives::{Input, ReadError, put_integer, put_string};
use crate::qpack::static_table::STATIC_TABLE;

/// Why a section is not decoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum SectionError {
    /// It is truncated, or an integer, a string, the base or a static index is invalid.
    #[error("invalid header block")]
    Invalid,
    /// Its Required Insert Count is impossible: the table cannot contain what it refers to.
    #[error("header block with an invalid Required Insert Count")]
    RequiredCount,
    /// It refers to an entry that does not exist, or that its Required Insert Count does not cover.
    #[error(
        "header block that refers to entry {index} of the dynamic table, which is not available"
    )]
    MissingEntry {
        /// Absolute index.
        index: u64,
    },
    /// More streams are blocked than our SETTINGS allow.
    #[error("more than {limit} streams wait for the dynamic table")]
    TooManyBlocked {
        /// The limit.
        limit: usize,
    },
    /// The blocked sections exceed their limit.
    #[error("header blocks that wait for the dynamic table exceed {limit} bytes")]
    TooManyBlockedBytes {
        /// The limit.
        limit: usize,
    },
    /// It exceeds the limit.
    #[error("header block exceeds {limit} bytes (32 added per field)")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// The start of a section.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Prefix {
    /// Number of insertions that must have arrived.
    pub(super) required: u64,
    /// The absolute index from which indexes are counted.
    base: u64,
}

/// The largest number of entries of a table with a maximum capacity.
pub(super) fn max_entries(max_capacity: u64) -> u64 {
    max_capacity / crate::qpack::field::FIELD_OVERHEAD as u64
}

/// The Required Insert Count, which is sent modulo twice the number of possible entries (RFC 9204 §4.5.1.1). `insert_count` is that
/// of the decoder.
fn required_insert_count(encoded: u64, insert_count: u64, max_entries: u64) -> Option<u64> {
    let wrap = 2 * max_entries;
    if encoded == 0 {
        return Some(0);
    }
    if encoded > wrap {
        return None;
    }
    let most = insert_count + max_entries;
    let required = (most / wrap * wrap) + encoded - 1;
    let required = match required > most {
        true => required.checked_sub(wrap)?,
        false => required,
    };
    (required > 0).then_some(required)
}

fn invalid(_: ReadError) -> SectionError {
    SectionError::Invalid
}

/// Reads the start of a section.
pub(super) fn read_prefix(
    input: &mut Input<'_>,
    insert_count: u64,
    max_entries: u64,
) -> Result<Prefix, SectionError> {
    let encoded = input.integer(8).map_err(invalid)?;
    let required = required_insert_count(encoded, insert_count, max_entries)
        .ok_or(SectionError::RequiredCount)?;
    let is_below = input.peek().map_err(invalid)? & 0b1000_0000 != 0;
    let delta = input.integer(7).map_err(invalid)?;
    let base = match is_below {
        // A negative base is an error (RFC 9204 §4.5.1.2).
        true => required
            .checked_sub(delta + 1)
            .ok_or(SectionError::Invalid)?,
        false => required + delta,
    };
    Ok(Prefix { required, base })
}

/// Where a line finds its name, or its name and value.
#[derive(Clone, Copy, Debug)]
enum Reference {
    Static(u64),
    /// Absolute index; `None` if it is negative.
    Dynamic(Option<u64>),
}

/// Reads the lines after the prefix, of at most `limit` bytes in all.
pub(super) fn read_lines(
    input: &mut Input<'_>,
    prefix: Prefix,
    table: &DynamicTable<()>,
    limit: usize,
) -> Result<Vec<Field>, SectionError> {
    let failed = |error| match error {
        ReadError::TooLong => SectionError::TooLarge { limit },
        ReadError::Incomplete | ReadError::Invalid => SectionError::Invalid,
    };
    let (mut fields, mut len) = (Vec::new(), 0);
    while input.len() > 0 {
        let first = input.peek().map_err(failed)?;
        // The index in `bits`, of the table that the bit `flag` names, or above the base.
        let before_base = |input: &mut Input<'_>, bits, flag| {
            let index = input.integer(bits)?;
            Ok(match first & flag != 0 {
                true => Reference::Static(index),
                false => Reference::Dynamic(prefix.base.checked_sub(index + 1)),
            })
        };
        let from_base = |input: &mut Input<'_>, bits| {
            let index = input.integer(bits)?;
            Ok(Reference::Dynamic(Some(prefix.base + index)))
        };
        let (reference, never) = match first {
            0b1000_0000.. => (before_base(input, 6, 0b0100_0000), None),
            0b0100_0000.. => (
                before_base(input, 4, 0b0001_0000),
                Some(first & 0b0010_0000 != 0),
            ),
            0b0010_0000.. => {
                let name = input.string(3, limit).map_err(failed)?;
                let value = input.string(7, limit).map_err(failed)?;
                let mut field = Field::new(name, value);
                field.is_sensitive = first & 0b0001_0000 != 0;
                push(&mut fields, &mut len, field, limit)?;
                continue;
            }
            0b0001_0000.. => (from_base(input, 4), None),
            _ => (from_base(input, 3), Some(first & 0b0000_1000 != 0)),
        };
        let (name, value) = resolve(reference.map_err(failed)?, prefix.required, table)?;
        let field = match never {
            None => Field::new(name, value),
            Some(is_sensitive) => Field {
                name,
                value: input.string(7, limit).map_err(failed)?,
                is_sensitive,
            },
        };
        push(&mut fields, &mut len, field, limit)?;
    }
    Ok(fields)
}

fn push(
    fields: &mut Vec<Field>,
    len: &mut usize,
    field: Field,
    limit: usize,
) -> Result<(), SectionError> {
    *len += field.len();
    if *len > limit {
        return Err(SectionError::TooLarge { limit });
    }
    fields.push(field);
    Ok(())
}

fn resolve(
    reference: Reference,
    required: u64,
    table: &DynamicTable<()>,
) -> Result<(Bytes, Bytes), SectionError> {
    match reference {
        Reference::Static(index) => {
            let (name, value) = static_entry(index).ok_or(SectionError::Invalid)?;
            Ok((
                Bytes::from_static(name.as_bytes()),
                Bytes::from_static(value.as_bytes()),
            ))
        }
        Reference::Dynamic(None) => Err(SectionError::Invalid),
        Reference::Dynamic(Some(index)) => {
            let entry = table.get(index).filter(|_| index < required);
            let Entry { name, value, .. } = entry.ok_or(SectionError::MissingEntry { index })?;
            Ok((name.clone(), value.clone()))
        }
    }
}

/// An entry of the static table.
pub(super) fn static_entry(index: u64) -> Option<&'static (&'static str, &'static str)> {
    STATIC_TABLE.get(usize::try_from(index).ok()?)
}

/// A line to be written. Indexes of the dynamic table are absolute.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line<'a> {
    Static(usize),
    Dynamic(u64),
    StaticName(usize, &'a Field),
    DynamicName(u64, &'a Field),
    Literal(&'a Field),
}

impl Line<'_> {
    /// The entry of the dynamic table that it refers to.
    pub(super) fn reference(&self) -> Option<u64> {
        match self {
            Self::Dynamic(index) | Self::DynamicName(index, _) => Some(*index),
            Self::Static(_) | Self::StaticName(..) | Self::Literal(_) => None,
        }
    }
}

/// Encodes a section of `lines`. `required` is one more than the newest entry that they refer to, which is also the base: all indexes
/// are below it.
pub(super) fn write_section(lines: &[Line<'_>], required: u64, max_entries: u64) -> Bytes {
    let mut out = BytesMut::new();
    let encoded = match required {
        0 => 0,
        required => required % (2 * max_entries) + 1,
    };
    put_integer(&mut out, 0, 8, encoded);
    put_integer(&mut out, 0, 7, 0);
    let never = |field: &Field, bit: u8| if field.is_sensitive { bit } else { 0 };
    let value = |out: &mut BytesMut, field: &Field| put_string(out, 0, 7, &field.value);
    for line in lines {
        match *line {
            Line::Static(index) => put_integer(&mut out, 0b1100_0000, 6, index as u64),
            Line::Dynamic(index) => {
                put_integer(&mut out, 0b1000_0000, 6, required - 1 - index);
            }
            Line::StaticName(index, field) => {
                let flags = 0b0101_0000 | never(field, 0b0010_0000);
                put_integer(&mut out, flags, 4, index as u64);
                value(&mut out, field);
            }
            Line::DynamicName(index, field) => {
                let flags = 0b0100_0000 | never(field, 0b0010_0000);
                put_integer(&mut out, flags, 4, required - 1 - index);
                value(&mut out, field);
            }
            Line::Literal(field) => {
                let flags = 0b0010_0000 | never(field, 0b0001_0000);
                put_string(&mut out, flags, 3, &field.name);
                value(&mut out, field);
            }
        }
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9204 §4.5.1.1 has this example: a table of 100 bytes, and ten insertions.
    #[test]
    fn the_required_insert_count_wraps() {
        let max = max_entries(100);
        assert_eq!(max, 3);
        assert_eq!(required_insert_count(4, 10, max), Some(9));
        assert_eq!(required_insert_count(0, 10, max), Some(0));
        for insert_count in 0..40_u64 {
            for required in 1.max(insert_count.saturating_sub(max - 1))..=insert_count + max {
                let encoded = required % (2 * max) + 1;
                let decoded = required_insert_count(encoded, insert_count, max);
                assert_eq!(decoded, Some(required), "{insert_count}");
            }
        }
    }

    #[test]
    fn an_impossible_required_insert_count_is_an_error() {
        assert_eq!(required_insert_count(1, 0, 3), None); // it would be 0, or 6
        assert_eq!(required_insert_count(7, 10, 3), None); // it would not fit the modulus
        assert_eq!(required_insert_count(5, 0, 3), None); // it would be 4, of 3 at most
        assert_eq!(required_insert_count(1, 0, 0), None); // there is no table
    }
}
