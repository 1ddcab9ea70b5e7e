//! A header field, and the size of a field section.

use bytes::Bytes;

/// Size of a field in addition to its bytes, in a section and in a table (RFC 9114 §4.2.2, RFC 9204 §3.2.1).
pub(crate) const FIELD_OVERHEAD: usize = 32;

/// A header field, as in a section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Field {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
    /// True if it must never be in a table, also not in those of intermediaries (RFC 9204 §7.1.3).
    pub(crate) is_sensitive: bool,
}

impl Field {
    /// A field that is not marked as sensitive.
    pub(crate) fn new(name: Bytes, value: Bytes) -> Self {
        Self {
            name,
            value,
            is_sensitive: false,
        }
    }

    /// The size of the field, bytes.
    pub(crate) fn len(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_OVERHEAD
    }
}

/// The size of `fields` for a peer's SETTINGS_MAX_FIELD_SECTION_SIZE, bytes.
pub(crate) fn section_len(fields: &[Field]) -> u64 {
    fields.iter().map(Field::len).sum::<usize>() as u64
}
