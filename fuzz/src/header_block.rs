//! The header block decoder (`spdy-frame/src/compression/inflate.rs`, `header_block.rs`), and the encoders of this workspace.
//!
//! ```text
//! wire     | length:16 | block ... | length:16 | block ... |
//! ```
//!
//! - No block inflates past its limit, and accepted headers are within theirs.
//! - An accepted plain block encodes to its original bytes.
//! - A compressed block gives what zlib's inflate gives, and fails where that fails.
//! - The output of each encoder inflates to the original, and the masking encoder writes no more bytes for
//!   one private value than for another of its length.

use bytes::{BufMut, Bytes, BytesMut};
use spdy_frame::compress::{Compression, Deflater, Inflater};
use spdy_frame::dictionary::{dictionary, dictionary_id};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::public_headers::is_public;
use spdy_frame::version::Version;

use crate::choices::Choices;
use crate::memory;

/// Bytes held for any input: three inflaters and three deflaters, two of them zlib's.
const MAX_HEAP_BYTES: usize = 1024 * 1024;

/// Decodes the blocks of the wire as compressed or plain blocks, and encodes their contents.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let version = choices.pick(&Version::ALL);
    let mut limits = BlockLimits::default();
    limits.plain_bytes = choices.pick(&[64 * 1024, 200]);
    limits.inflated_bytes = choices.pick(&[1024 * 1024, 5000]);
    limits.pairs = choices.pick(&[256, 3]);
    limits.name_bytes = choices.pick(&[256, 8]);
    limits.value_bytes = choices.pick(&[32 * 1024, 16]);
    limits.lowercase_names = choices.byte() & 2 != 0;
    let blocks = blocks(wire);
    let compressed = choices.flag();
    // A block needs one or two copies of its plain bytes, and an entry for each pair.
    let block_bytes = if compressed {
        5 * limits.plain_bytes
    } else {
        0
    };
    memory::at_most(
        MAX_HEAP_BYTES + block_bytes * blocks.len() + 100 * wire.len(),
        || {
            let headers = if compressed {
                let begun = choices.flag();
                agree_with_zlib(version, &blocks);
                inflate(version, &limits, &blocks, begun)
            } else {
                decode(version, &limits, &blocks)
            };
            for compression in [
                Compression::CrimeSafe,
                Compression::Zlib(choices.byte() % 10),
            ] {
                write(version, &limits, compression, &headers);
            }
            lengths_hide_secrets(version, &headers);
        },
    );
}

/// Cuts the wire into blocks; the last may be shorter than its stated length.
fn blocks(mut wire: &[u8]) -> Vec<Bytes> {
    let mut blocks = Vec::new();
    while let Some((len, rest)) = wire.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(rest.len());
        let (block, rest) = rest.split_at(len);
        blocks.push(Bytes::copy_from_slice(block));
        wire = rest;
    }
    blocks
}

/// Inflates `blocks`, after a valid first block if `begun`, so that they need no zlib header.
fn inflate(
    version: Version,
    limits: &BlockLimits,
    blocks: &[Bytes],
    begun: bool,
) -> Vec<HeaderBlock> {
    let mut inflater = Inflater::new(version, limits.clone());
    if begun {
        let mut first = BytesMut::new();
        Deflater::new(version, Compression::CrimeSafe).deflate(&HeaderBlock::new(), &mut first);
        assert!(
            inflater.inflate(&first.freeze()).is_ok(),
            "the first block is rejected"
        );
    }
    let mut taken = Vec::new();
    for block in blocks {
        let Ok(inflated) = inflater.inflate(block) else {
            break;
        };
        assert!(
            inflated.plain_bytes <= limits.inflated_bytes,
            "{inflated:?}"
        );
        // A deflate block of one byte may hold 1032 (a match of 258 in two bits).
        assert!(
            inflated.plain_bytes <= 1032 * (block.len() + 1),
            "{inflated:?}"
        );
        if let Ok(headers) = inflated.headers {
            assert!(inflated.plain_bytes <= limits.plain_bytes);
            assert_eq!(headers.check(version, limits), Ok(()), "{headers:?}");
            taken.push(headers);
        }
    }
    taken
}

/// Inflates `blocks` after a zlib header that states the largest window, and compares each with the result of zlib.
fn agree_with_zlib(version: Version, blocks: &[Bytes]) {
    let mut limits = BlockLimits::default();
    limits.inflated_bytes = 64 * 1024;
    let mut inflater = Inflater::new(version, limits.clone());
    let mut zlib = zlib_rs::Inflate::new(false, 15);
    zlib.set_dictionary(dictionary(version))
        .expect("a raw inflater accepts any dictionary");
    let mut head = BytesMut::from(&[0x78, 0x3f][..]);
    head.put_u32(dictionary_id(version));
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        let mut plain = vec![0; limits.inflated_bytes + 1];
        let before = zlib.total_out();
        let status = zlib.decompress(block, &mut plain, zlib_rs::InflateFlush::SyncFlush);
        plain.truncate((zlib.total_out() - before) as usize);
        let is_valid = status.is_ok() && plain.len() <= limits.inflated_bytes;
        head.extend_from_slice(block);
        let inflated = inflater.inflate(&head.split().freeze());
        assert_eq!(inflated.is_ok(), is_valid, "{block:02x?}");
        let Ok(inflated) = inflated else {
            return;
        };
        assert_eq!(inflated.plain_bytes, plain.len(), "{block:02x?}");
        let expected = HeaderBlock::decode_shared(version, plain.into(), &limits);
        assert_eq!(inflated.headers, expected, "{block:02x?}");
        if status == Ok(zlib_rs::Status::StreamEnd) {
            return;
        }
    }
}

/// Decodes `blocks` as plain blocks.
fn decode(version: Version, limits: &BlockLimits, blocks: &[Bytes]) -> Vec<HeaderBlock> {
    let mut taken = Vec::new();
    for plain in blocks {
        let Ok(headers) = HeaderBlock::decode_shared(version, plain.clone(), limits) else {
            continue;
        };
        assert_eq!(headers.check(version, limits), Ok(()), "{headers:?}");
        // SPDY/2 has no empty values: they are decoded, but not encoded.
        if version != Version::V2 || headers.iter().all(|(_, value)| !value.is_empty()) {
            let mut back = BytesMut::new();
            headers.encode(version, &mut back);
            if limits.lowercase_names {
                assert!(back.eq_ignore_ascii_case(plain), "{headers:?}");
            } else {
                assert_eq!(back, plain, "{headers:?}");
            }
        }
        taken.push(headers);
    }
    taken
}

/// Compresses and inflates `blocks` as blocks of one session.
fn write(version: Version, limits: &BlockLimits, compression: Compression, blocks: &[HeaderBlock]) {
    let mut deflater = Deflater::new(version, compression);
    let mut inflater = Inflater::new(version, limits.clone());
    for headers in blocks {
        let mut wire = BytesMut::new();
        let plain_bytes = deflater.deflate(headers, &mut wire);
        assert_eq!(plain_bytes, headers.plain_len(version));
        // At worst nine bits per byte, 5 bytes per stored 64 KiB, and the block ends.
        assert!(
            wire.len() <= plain_bytes + plain_bytes / 8 + 32,
            "{compression:?}"
        );
        let inflated = inflater
            .inflate(&wire.freeze())
            .expect("the encoded form is valid");
        assert_eq!(inflated.plain_bytes, plain_bytes);
        let back = inflated.headers.expect("the headers were accepted before");
        let written = |(_, value): &(&[u8], &[u8])| version != Version::V2 || !value.is_empty();
        assert!(
            back.iter().eq(headers.iter().filter(written)),
            "{compression:?} {headers:?}"
        );
    }
}

/// Encodes `blocks` with two different texts in place of each private value: the lengths are the same.
fn lengths_hide_secrets(version: Version, blocks: &[HeaderBlock]) {
    let lengths = |secret: fn(usize) -> u8| {
        let mut deflater = Deflater::new(version, Compression::CrimeSafe);
        let of = |headers: &HeaderBlock| {
            let pairs = headers.iter().map(|(name, value)| {
                let value = match is_public(version, name) {
                    true => value.to_vec(),
                    false => (0..value.len()).map(secret).collect::<Vec<u8>>(),
                };
                (name.to_vec(), value)
            });
            let mut wire = BytesMut::new();
            deflater.deflate(&pairs.collect(), &mut wire);
            wire.len()
        };
        blocks.iter().map(of).collect::<Vec<_>>()
    };
    let (one, other) = (lengths(|_| b'a'), lengths(|at| b"text/html,gzip"[at % 14]));
    assert_eq!(one, other, "{blocks:?}");
}
