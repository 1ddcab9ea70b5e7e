//! Filler bodies for those that a recording lacks: of the recorded size and kind, and deterministic.
//!
//! Filler is harmless when displayed: text kinds are words in a comment of their language, images are noise. A body whose head has a
//! content coding is a valid stream of that coding, of the exact size, because both gzip and brotli can contain uncompressed bytes:
//!
//! ```text
//! gzip     head 10 | (1+2+2, up to 65535 bytes)* | sum and length 8
//! deflate  head 2  | the same                    | sum 4
//! br       (3, up to 65536 bytes)*               | 03
//! ```

use bytes::Bytes;

use crate::replica::Kind;

/// A body of exactly `size` bytes for a resource of `kind` with `codings`; `seed` (of the URL) makes it differ from others.
///
/// Sizes that are impossible in a coding (a gzip of 7 bytes) are noise.
pub(crate) fn filler(kind: Kind, codings: &[String], size: usize, seed: &str) -> Bytes {
    let mut chance = SplitMix::new(seed);
    let coded = match codings {
        [] => Some(payload(kind, size, &mut chance)),
        [coding] => match coding.as_str() {
            "gzip" | "x-gzip" => gzip(kind, size, &mut chance),
            "deflate" => zlib(kind, size, &mut chance),
            "br" => brotli(kind, size, &mut chance),
            _ => None,
        },
        _ => None,
    };
    let body = coded.unwrap_or_else(|| noise(size, &mut chance));
    assert_eq!(body.len(), size, "filler for {seed} under {codings:?}");
    body.into()
}

fn payload(kind: Kind, size: usize, chance: &mut SplitMix) -> Vec<u8> {
    let (open, close): (&[u8], &[u8]) = match kind {
        Kind::Document => (b"<!DOCTYPE html><title>filler</title><p>", b"</p>\n"),
        Kind::Stylesheet | Kind::Script => (b"/* ", b" */\n"),
        Kind::Fetch => (b"\"", b"\""),
        Kind::Font | Kind::Image | Kind::Media | Kind::Other => return noise(size, chance),
    };
    let Some(room) = size.checked_sub(open.len() + close.len()) else {
        return vec![b' '; size];
    };
    let mut text = Vec::with_capacity(size + 16);
    text.extend_from_slice(open);
    let end = open.len() + room;
    while text.len() < end {
        let word = WORDS[(chance.next() % WORDS.len() as u64) as usize];
        text.extend_from_slice(word.as_bytes());
        text.push(b' ');
    }
    text.truncate(end);
    text.extend_from_slice(close);
    text
}

const WORDS: [&str; 32] = [
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "adipiscing",
    "elit",
    "sed",
    "do",
    "eiusmod",
    "tempor",
    "incididunt",
    "ut",
    "labore",
    "et",
    "dolore",
    "magna",
    "aliqua",
    "enim",
    "ad",
    "minim",
    "veniam",
    "quis",
    "nostrud",
    "exercitation",
    "ullamco",
    "laboris",
    "nisi",
    "aliquip",
    "ex",
    "ea",
];

fn noise(size: usize, chance: &mut SplitMix) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&chance.next().to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

fn gzip(kind: Kind, size: usize, chance: &mut SplitMix) -> Option<Vec<u8>> {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    const FNAME: u8 = 8;
    let room = size.checked_sub(HEAD.len() + 8)?;
    let mut out = HEAD.to_vec();
    let text = match stored_len(room) {
        Some((len, blocks)) => {
            let text = payload(kind, len, chance);
            push_stored(&mut out, &text, blocks);
            text
        }
        None => {
            // The empty text, with a file name as padding.
            let name = room.checked_sub(2)?;
            if name > 0 {
                out[3] = FNAME;
                out.resize(out.len() + name - 1, b'x');
                out.push(0);
            }
            out.extend_from_slice(&[3, 0]);
            Vec::new()
        }
    };
    let mut sum = flate2::Crc::new();
    sum.update(&text);
    out.extend_from_slice(&sum.sum().to_le_bytes());
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    Some(out)
}

fn zlib(kind: Kind, size: usize, chance: &mut SplitMix) -> Option<Vec<u8>> {
    let room = size.checked_sub(6)?;
    let (len, blocks) = stored_len(room)?;
    let text = payload(kind, len, chance);
    let mut out = vec![0x78, 0x01];
    push_stored(&mut out, &text, blocks);
    let (low, high) = text.iter().fold((1u32, 0u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    Some(out)
}

/// Bytes of text, and their stored blocks, that together have `room` bytes; `None` if that is impossible.
fn stored_len(room: usize) -> Option<(usize, usize)> {
    const BLOCK: usize = 0xffff;
    let blocks = room.div_ceil(BLOCK + 5).max(1);
    Some((room.checked_sub(5 * blocks)?, blocks))
}

fn push_stored(out: &mut Vec<u8>, text: &[u8], blocks: usize) {
    let mut rest = text;
    for remaining_blocks in (0..blocks).rev() {
        let (block, after) = rest.split_at(rest.len().min(0xffff));
        rest = after;
        out.push(u8::from(remaining_blocks == 0));
        let len = block.len() as u16;
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(&(!len).to_le_bytes());
        out.extend_from_slice(block);
    }
}

fn brotli(kind: Kind, size: usize, chance: &mut SplitMix) -> Option<Vec<u8>> {
    const BLOCK: usize = 1 << 16;
    /// The empty stream, with a window of 16 bits (RFC 7932 §9.1, §9.2).
    const EMPTY: [u8; 1] = [0x06];
    if size == EMPTY.len() {
        return Some(EMPTY.to_vec());
    }
    let room = size.checked_sub(1)?;
    let blocks = room.div_ceil(BLOCK + 3);
    let len = room.checked_sub(3 * blocks).filter(|&len| len >= blocks)?;
    let text = payload(kind, len, chance);
    let mut out = Vec::with_capacity(size);
    let mut rest = &text[..];
    for remaining_blocks in (0..blocks).rev() {
        // At least one byte remains for every block that follows.
        let (block, after) = rest.split_at((rest.len() - remaining_blocks).min(BLOCK));
        rest = after;
        // ISLAST 0, MNIBBLES 0 (four), MLEN - 1, ISUNCOMPRESSED 1; the first also has WBITS 0 before it.
        let header = (block.len() as u32 - 1) << 3 | 1 << 19;
        let header = if out.is_empty() { header << 1 } else { header };
        out.extend_from_slice(&header.to_le_bytes()[..3]);
        out.extend_from_slice(block);
    }
    out.push(0x03);
    Some(out)
}

/// SplitMix64 over an FNV-1a of the seed: the same on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn new(seed: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(seed.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coding;

    #[test]
    fn filler_has_the_exact_size_and_decodes_under_its_coding() {
        let sizes = (0..80).chain([
            1_000, 65_536, 65_539, 65_540, 65_541, 65_557, 65_558, 65_559, 65_560, 131_089, 200_001,
        ]);
        for size in sizes {
            for (coding, smallest) in [("gzip", 20), ("deflate", 11), ("br", 5)] {
                let codings = [coding.to_owned()];
                let body = filler(Kind::Script, &codings, size, "http://a.test/x.js");
                assert_eq!(body.len(), size);
                let decoded = coding::decode(&body, &codings, 1 << 20);
                if size >= smallest {
                    assert!(decoded.is_ok(), "{coding} of {size} bytes: {decoded:?}");
                }
            }
        }
    }

    #[test]
    fn filler_is_the_same_for_the_same_url_and_not_for_another() {
        let of = |url| filler(Kind::Image, &[], 100, url);
        assert_eq!(of("http://a.test/1"), of("http://a.test/1"));
        assert_ne!(of("http://a.test/1"), of("http://a.test/2"));
    }

    #[test]
    fn text_is_a_comment_of_its_language_and_images_do_not_compress() {
        let script = filler(Kind::Script, &[], 1_000, "x");
        assert!(script.starts_with(b"/* ") && script.ends_with(b" */\n") && script.is_ascii());
        let image = filler(Kind::Image, &[], 10_000, "x");
        assert!(coding::encode(&image, "gzip", None).unwrap().len() > 9_900);
    }
}
