//! QPACK without a dynamic table: header blocks with the static table and Huffman coding (RFC 9204).
//!
//! ```text
//! block   required insert count 8+ | S, delta base 7+          both 0: nothing refers to a dynamic table
//! field   1 1 index 6+                                         name and value of the static table
//!         0 1 N 1 index 4+ | H length 7+ value                 its name, another value
//!         0 0 1 N H length 3+ name | H length 7+ value         neither
//! ```
//!
//! Our SETTINGS allow a dynamic table of 0 bytes, and we do not use the peer's. So a block does not depend on others, no stream
//! waits for another, and the bytes of one request reveal nothing about another (CRIME has nothing to measure). The cost is that
//! every request sends all its headers again.

use bytes::{BufMut, Bytes, BytesMut};
use octets::{Octets, OctetsMut, huffman_encoding_len};

use crate::fields::static_table::{STATIC_TABLE, TableMatch, find};

/// Size of a field in addition to its bytes (RFC 9114 §4.2.2).
const FIELD_OVERHEAD: usize = 32;

/// The largest integer of QUIC and of QPACK.
const MAX_INTEGER: u64 = (1 << 62) - 1;

/// A header field, as in a block.
pub(crate) type Field = (Bytes, Bytes);

/// Why a block is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum BlockError {
    /// It is truncated, or an integer or a string is invalid.
    #[error("invalid header block")]
    Broken,
    /// It refers to a dynamic table, which our SETTINGS do not allow.
    #[error("header block with a reference to a dynamic table, expected none")]
    Dynamic,
    /// It exceeds the limit.
    #[error("header block exceeds {limit} bytes (32 added per field)")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// The size of `fields` for a peer's SETTINGS_MAX_FIELD_SECTION_SIZE.
pub(crate) fn section_len(fields: &[Field]) -> u64 {
    let len = |(name, value): &Field| name.len() + value.len() + FIELD_OVERHEAD;
    fields.iter().map(len).sum::<usize>() as u64
}

/// Encodes `fields` as a block.
pub(crate) fn encode(fields: &[Field]) -> Bytes {
    let mut out = BytesMut::from(&[0, 0][..]);
    for (name, value) in fields {
        match find(name, value) {
            Some(TableMatch::Field(index)) => {
                put_integer(&mut out, 0b1100_0000, 6, index);
                continue;
            }
            Some(TableMatch::Name(index)) => put_integer(&mut out, 0b0101_0000, 4, index),
            None => put_string(&mut out, 0b0010_0000, 3, name),
        }
        put_string(&mut out, 0, 7, value);
    }
    out.freeze()
}

/// Appends an integer: in the low `bits` of a byte with `flags` above them, and in as many further bytes as needed (RFC 7541 §5.1).
fn put_integer(out: &mut BytesMut, flags: u8, bits: u32, value: usize) {
    let most = (1_usize << bits) - 1;
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
fn put_string(out: &mut BytesMut, flags: u8, bits: u32, text: &[u8]) {
    match huffman_encoding_len::<false>(text) {
        Ok(len) if len < text.len() => {
            put_integer(out, flags | 1 << bits, bits, len);
            let start = out.len();
            out.resize(start + len, 0);
            OctetsMut::with_slice(&mut out[start..])
                .put_huffman_encoded::<false>(text)
                .expect("the length was computed before");
        }
        _ => {
            put_integer(out, flags, bits, text.len());
            out.put_slice(text);
        }
    }
}

/// Decodes the fields of `block`, of at most `limit` bytes.
pub(crate) fn decode(block: &[u8], limit: usize) -> Result<Vec<Field>, BlockError> {
    let mut block = Octets::with_slice(block);
    if integer(&mut block, 8)? != 0 {
        return Err(BlockError::Dynamic);
    }
    // Without a dynamic table the base is not used, but a negative one is an error (RFC 9204 §4.5.1.2).
    let is_negative = block.peek_u8().map_err(|_| BlockError::Broken)? & 0b1000_0000 != 0;
    integer(&mut block, 7)?;
    if is_negative {
        return Err(BlockError::Broken);
    }
    let (mut fields, mut len) = (Vec::new(), 0);
    while block.cap() > 0 {
        let first = block.peek_u8().map_err(|_| BlockError::Broken)?;
        let (name, value) = match first {
            0b1100_0000.. => {
                let (name, value) = entry(integer(&mut block, 6)?)?;
                let field = (name.as_bytes(), value.as_bytes());
                (Bytes::from_static(field.0), Bytes::from_static(field.1))
            }
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                let (name, _) = entry(integer(&mut block, 4)?)?;
                let value = string(&mut block, 7, limit)?;
                (Bytes::from_static(name.as_bytes()), value)
            }
            0b0010_0000..=0b0011_1111 => {
                let name = string(&mut block, 3, limit)?;
                (name, string(&mut block, 7, limit)?)
            }
            _ => return Err(BlockError::Dynamic),
        };
        len += name.len() + value.len() + FIELD_OVERHEAD;
        if len > limit {
            return Err(BlockError::TooLarge { limit });
        }
        fields.push((name, value));
    }
    Ok(fields)
}

fn entry(index: u64) -> Result<(&'static str, &'static str), BlockError> {
    let entry = usize::try_from(index)
        .ok()
        .and_then(|index| STATIC_TABLE.get(index));
    entry.copied().ok_or(BlockError::Broken)
}

/// Reads an integer of at most 62 bits that begins in the low `bits` of the next byte (RFC 9204 §4.1.1).
fn integer(block: &mut Octets<'_>, bits: u32) -> Result<u64, BlockError> {
    let broken = |_| BlockError::Broken;
    let most = (1_u64 << bits) - 1;
    let mut value = u64::from(block.get_u8().map_err(broken)?) & most;
    if value < most {
        return Ok(value);
    }
    for shift in (0..=56).step_by(7) {
        let byte = block.get_u8().map_err(broken)?;
        value += u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return match value <= MAX_INTEGER {
                true => Ok(value),
                false => Err(BlockError::Broken),
            };
        }
    }
    Err(BlockError::Broken)
}

fn string(block: &mut Octets<'_>, bits: u32, limit: usize) -> Result<Bytes, BlockError> {
    let broken = |_| BlockError::Broken;
    let is_huffman = block.peek_u8().map_err(broken)? & (1 << bits) != 0;
    let len = usize::try_from(integer(block, bits)?).map_err(|_| BlockError::Broken)?;
    let mut text = block.get_bytes(len).map_err(broken)?;
    if !is_huffman {
        return Ok(Bytes::copy_from_slice(text.buf()));
    }
    // A Huffman code has at least five bits. The limit is checked first, so that a string that is too long is not reported as
    // broken.
    if len > limit {
        return Err(BlockError::TooLarge { limit });
    }
    let text = text.get_huffman_decoded_with_max_length(len * 8 / 5);
    Ok(text.map_err(broken)?.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn field(name: &str, value: &str) -> Field {
        (
            Bytes::copy_from_slice(name.as_bytes()),
            Bytes::copy_from_slice(value.as_bytes()),
        )
    }

    #[test]
    fn the_example_of_rfc_9204_decodes() {
        // RFC 9204, Appendix B.1.
        let block = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(decode(block, 100), Ok(vec![field(":path", "/index.html")]));
    }

    #[test]
    fn a_string_is_in_huffmans_code_where_that_is_shorter() {
        // RFC 7541, Appendix C.4.1 has this host in 12 bytes.
        let block = encode(&[field(":authority", "www.example.com")]);
        let huffman = b"\x00\x00\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(&block[..], huffman);
        let block = encode(&[field("etag", "\u{1}")]);
        assert_eq!(&block[..], b"\x00\x00\x57\x01\x01");
    }

    #[test]
    fn a_field_of_the_static_table_takes_one_byte() {
        let fields = [field(":method", "GET"), field(":scheme", "https")];
        assert_eq!(&encode(&fields)[..], b"\x00\x00\xd1\xd7");
    }

    #[test]
    fn a_block_that_refers_to_a_dynamic_table_is_refused() {
        for block in [
            &b"\x01\x00"[..],    // an insertion is required
            b"\x00\x00\x80",     // indexed, dynamic
            b"\x00\x00\x40\x00", // name by reference, dynamic
            b"\x00\x00\x10",     // indexed, post-base
            b"\x00\x00\x00\x00", // name by reference, post-base
        ] {
            assert_eq!(decode(block, 100), Err(BlockError::Dynamic), "{block:x?}");
        }
    }

    #[test]
    fn a_block_may_be_as_large_as_the_limit_and_no_larger() {
        let fields = [field("a", "b"), field("c", "dd")];
        let block = encode(&fields);
        assert_eq!(section_len(&fields), 34 + 35);
        assert_eq!(decode(&block, 34 + 35), Ok(fields.to_vec()));
        let limit = 34 + 34;
        assert_eq!(decode(&block, limit), Err(BlockError::TooLarge { limit }));
    }

    proptest! {
        #[test]
        fn encoded_fields_decode_to_themselves(
            fields in prop::collection::vec((any::<Vec<u8>>(), any::<Vec<u8>>()), 0..20)
        ) {
            let fields: Vec<Field> = fields.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
            prop_assert_eq!(decode(&encode(&fields), usize::MAX), Ok(fields));
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(block: Vec<u8>) {
            let _ = decode(&block, 1000);
        }

        #[test]
        fn a_block_that_breaks_off_is_never_read_as_more_than_it_has(
            fields in prop::collection::vec(("[a-z]{1,9}", "[ -~]{0,40}"), 1..9), cut: prop::sample::Index
        ) {
            let fields: Vec<Field> = fields.iter().map(|(n, v)| field(n, v)).collect();
            let block = encode(&fields);
            if let Ok(read) = decode(&block[..cut.index(block.len())], usize::MAX) {
                prop_assert!(fields.starts_with(&read));
            }
        }
    }
}
