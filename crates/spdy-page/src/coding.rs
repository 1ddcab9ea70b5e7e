//! Content codings: gzip, deflate and br, to decode a body and to encode it again.
//!
//! The scanner needs the time at which a byte of the *text* is decoded, but bytes of the *transfer* arrive. Decoding therefore takes
//! [`DECODE_STEP_BYTES`] bytes at a time and records the length of text after each step:
//!
//! ```text
//! transferred  |--64--|--64--|--64--|            marks: (64, 0) (128, 410) (192, 977)
//! text         |      |<- 410 ->|<- 567 ->|      text byte 500 is decoded at transferred byte 192
//! ```

use std::io::{self, BufRead, Read, Write};

use flate2::Compression;

/// Transferred bytes in one step of the decoder: the resolution of [`DecodedBody::transferred_at`].
pub const DECODE_STEP_BYTES: usize = 64;

/// Why a body cannot be decoded.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CodingError {
    /// A coding that is neither gzip, deflate nor br.
    #[error("unknown content coding {0:?}, expected gzip, deflate or br")]
    Unknown(String),
    /// The bytes are not valid in this coding.
    #[error("cannot decode body as {coding}: {cause}")]
    Corrupt {
        /// The coding.
        coding: String,
        /// The error of the decoder.
        cause: String,
    },
    /// The text exceeds the limit.
    #[error("decoded body exceeds the limit of {limit} bytes")]
    TooLong {
        /// The limit, bytes.
        limit: usize,
    },
}

/// A body without its content coding, with the positions in the transfer at which its parts were decoded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DecodedBody {
    /// The text.
    pub text: Vec<u8>,
    /// Length of the body as transferred.
    transferred: u64,
    /// (transferred so far, text so far), both rising; empty if the body has no coding.
    marks: Vec<(u64, u64)>,
}

impl DecodedBody {
    /// Bytes of the transfer that must have arrived before the first `at` bytes of the text can be decoded.
    pub fn transferred_at(&self, at: usize) -> u64 {
        if self.marks.is_empty() {
            return (at as u64).min(self.transferred);
        }
        let index = self.marks.partition_point(|&(_, text)| text < at as u64);
        self.marks
            .get(index)
            .map_or(self.transferred, |&(transferred, _)| transferred)
    }
}

/// Decodes `codings` (in the order in which they were applied); at most `limit` bytes of text.
///
/// # Errors
///
/// [`CodingError`] if a coding is unknown, the bytes are invalid or truncated, or the text exceeds `limit`.
pub fn decode(body: &[u8], codings: &[String], limit: usize) -> Result<DecodedBody, CodingError> {
    let transferred = body.len() as u64;
    let mut decoded: Option<DecodedBody> = None;
    for coding in codings.iter().rev() {
        let input = decoded.as_ref().map_or(body, |decoded| &decoded.text);
        let mut next = decode_one(input, coding, limit)?;
        if let Some(outer) = &decoded {
            for (sipped, _) in &mut next.marks {
                *sipped = outer.transferred_at(*sipped as usize);
            }
        }
        next.transferred = transferred;
        decoded = Some(next);
    }
    match decoded {
        Some(decoded) => Ok(decoded),
        None if body.len() > limit => Err(CodingError::TooLong { limit }),
        None => Ok(DecodedBody {
            text: body.to_vec(),
            transferred,
            marks: Vec::new(),
        }),
    }
}

fn decode_one(body: &[u8], coding: &str, limit: usize) -> Result<DecodedBody, CodingError> {
    let in_steps = |body| StepReader {
        rest: body,
        consumed: 0,
    };
    match coding {
        "gzip" | "x-gzip" => {
            let decoder = flate2::bufread::MultiGzDecoder::new(in_steps(body));
            drain(
                decoder,
                |decoder| decoder.get_ref().consumed,
                body.len(),
                coding,
                limit,
            )
        }
        // RFC 9110 §8.4.1.2 means zlib; servers of 2013 sent bare deflate as often.
        "deflate" if is_zlib(body) => {
            let decoder = flate2::bufread::ZlibDecoder::new(in_steps(body));
            drain(
                decoder,
                |decoder| decoder.get_ref().consumed,
                body.len(),
                coding,
                limit,
            )
        }
        "deflate" => {
            let decoder = flate2::bufread::DeflateDecoder::new(in_steps(body));
            drain(
                decoder,
                |decoder| decoder.get_ref().consumed,
                body.len(),
                coding,
                limit,
            )
        }
        "br" => {
            let decoder = brotli::Decompressor::new(in_steps(body), DECODE_STEP_BYTES);
            drain(
                decoder,
                |decoder| decoder.get_ref().consumed,
                body.len(),
                coding,
                limit,
            )
        }
        _ => Err(CodingError::Unknown(coding.to_owned())),
    }
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [cmf, flg, ..] if cmf & 0x0f == 8 && (u16::from(*cmf) << 8 | u16::from(*flg)) % 31 == 0)
}

fn drain<R: Read>(
    mut decoder: R,
    consumed: impl Fn(&R) -> usize,
    transferred: usize,
    coding: &str,
    limit: usize,
) -> Result<DecodedBody, CodingError> {
    let (mut text, mut marks) = (Vec::new(), Vec::<(u64, u64)>::new());
    let mut chunk = [0; 8 << 10];
    loop {
        let read = match decoder.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(CodingError::Corrupt {
                    coding: coding.to_owned(),
                    cause: error.to_string(),
                });
            }
        };
        if text.len() + read > limit {
            return Err(CodingError::TooLong { limit });
        }
        text.extend_from_slice(&chunk[..read]);
        let mark = (consumed(&decoder) as u64, text.len() as u64);
        match marks.last_mut() {
            Some(last) if last.0 == mark.0 => last.1 = mark.1,
            _ => marks.push(mark),
        }
    }
    if marks.is_empty() {
        marks.push((transferred as u64, 0));
    }
    Ok(DecodedBody {
        text,
        transferred: transferred as u64,
        marks,
    })
}

/// A reader that returns a slice in small steps and counts the bytes.
struct StepReader<'a> {
    rest: &'a [u8],
    consumed: usize,
}

impl Read for StepReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.rest.len().min(out.len()).min(DECODE_STEP_BYTES);
        out[..len].copy_from_slice(&self.rest[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for StepReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(&self.rest[..self.rest.len().min(DECODE_STEP_BYTES)])
    }

    fn consume(&mut self, amount: usize) {
        self.rest = &self.rest[amount..];
        self.consumed += amount;
    }
}

/// Applies `coding` to `text`; the result has `target` transferred bytes if possible.
///
/// Uses the compression level with the longest result up to the target. An empty extra field pads gzip to the exact length. If every
/// result exceeds the target, it uses the shortest.
///
/// # Errors
///
/// [`CodingError::Unknown`] if the coding is neither gzip, deflate nor br.
pub fn encode(text: &[u8], coding: &str, target: Option<usize>) -> Result<Vec<u8>, CodingError> {
    let efforts: &[u32] = match (coding, target) {
        ("gzip" | "x-gzip" | "deflate", Some(_)) => &[9, 6, 4, 2, 1],
        ("gzip" | "x-gzip" | "deflate", None) => &[6],
        ("br", Some(_)) => &[11, 9, 5, 2],
        ("br", None) => &[5],
        _ => return Err(CodingError::Unknown(coding.to_owned())),
    };
    // Brotli's highest levels are slow, and bodies of this size were never coded with them.
    let efforts = if coding == "br" && text.len() > 512 << 10 {
        &[5]
    } else {
        efforts
    };
    let mut best: Option<Vec<u8>> = None;
    for &effort in efforts {
        let coded = encode_at(text, coding, effort);
        let better = match (&best, target) {
            (None, _) => true,
            (Some(best), Some(target)) if best.len() > target => coded.len() < best.len(),
            (Some(best), Some(target)) => coded.len() <= target && coded.len() > best.len(),
            (Some(_), None) => false,
        };
        if better {
            best = Some(coded);
        }
    }
    let best =
        best.unwrap_or_else(|| unreachable!("the list of efforts is not empty: {efforts:?}"));
    Ok(match target {
        Some(target) if coding.ends_with("gzip") => pad_gzip(best, target),
        _ => best,
    })
}

fn encode_at(text: &[u8], coding: &str, effort: u32) -> Vec<u8> {
    let level = Compression::new(effort);
    // Writing into a Vec cannot fail.
    let done = match coding {
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(text).and_then(|()| encoder.finish())
        }
        "br" => {
            let params = brotli::enc::BrotliEncoderParams {
                quality: effort as i32,
                lgwin: window_bits(text.len()),
                ..Default::default()
            };
            let mut out = Vec::new();
            let mut input = text;
            brotli::BrotliCompress(&mut input, &mut out, &params).map(|_| out)
        }
        _ => {
            let mut encoder = flate2::GzBuilder::new()
                .mtime(0)
                .operating_system(3)
                .write(Vec::new(), level);
            encoder.write_all(text).and_then(|()| encoder.finish())
        }
    };
    done.unwrap_or_else(|error| panic!("{coding} at {effort} into memory: {error}"))
}

/// Brotli's smallest window that covers so many bytes (RFC 7932 §9.1: the size excludes 16 bytes), or the largest. At the highest
/// level brotli needs eight times its window as memory.
fn window_bits(len: usize) -> i32 {
    (10..22).find(|bits| len <= (1 << bits) - 16).unwrap_or(22)
}

/// Pads a gzip member to `target` bytes with an extra field (RFC 1952 §2.3.1.1), if possible.
fn pad_gzip(mut member: Vec<u8>, target: usize) -> Vec<u8> {
    const HEAD: usize = 10;
    /// FEXTRA in the flags of the member's header.
    const EXTRA: u8 = 4;
    let missing = target.saturating_sub(member.len());
    // Two bytes of length, then a subfield of two letters and two bytes of length.
    if missing < 6
        || missing - 2 > usize::from(u16::MAX)
        || member.len() < HEAD
        || member[3] & EXTRA != 0
    {
        return member;
    }
    let field = (missing - 2) as u16;
    let mut extra = Vec::with_capacity(missing);
    extra.extend_from_slice(&field.to_le_bytes());
    extra.extend_from_slice(b"sp");
    extra.extend_from_slice(&(field - 4).to_le_bytes());
    extra.resize(missing, 0);
    member[3] |= EXTRA;
    member.splice(HEAD..HEAD, extra);
    member
}

/// Decompresses a file of gzip members, at most `limit` bytes.
///
/// # Errors
///
/// [`CodingError`], like [`decode`].
pub fn gunzip(file: &[u8], limit: usize) -> Result<Vec<u8>, CodingError> {
    let mut text = Vec::new();
    let mut decoder = flate2::bufread::MultiGzDecoder::new(file).take(limit as u64 + 1);
    decoder
        .read_to_end(&mut text)
        .map_err(|error| CodingError::Corrupt {
            coding: "gzip".to_owned(),
            cause: error.to_string(),
        })?;
    if text.len() > limit {
        Err(CodingError::TooLong { limit })
    } else {
        Ok(text)
    }
}

/// Appends `bytes` to `out` as one gzip member, which depends only on `bytes`.
pub fn gzip_member(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&encode_at(bytes, "gzip", 9));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Vec<u8> {
        (0..40_000u32)
            .flat_map(|n| format!("{} ", (n.wrapping_mul(2_654_435_761) >> 12) % 977).into_bytes())
            .collect()
    }

    fn codings(list: &[&str]) -> Vec<String> {
        list.iter().map(|&coding| coding.to_owned()).collect()
    }

    #[test]
    fn encoded_text_decodes_to_itself_in_every_coding_and_in_two() {
        let text = text();
        for coding in ["gzip", "deflate", "br"] {
            let coded = encode(&text, coding, None).unwrap();
            assert_eq!(
                decode(&coded, &codings(&[coding]), text.len())
                    .unwrap()
                    .text,
                text,
                "{coding}"
            );
        }
        let inner = encode(&text, "gzip", None).unwrap();
        let outer = encode(&inner, "br", None).unwrap();
        let decoded = decode(&outer, &codings(&["gzip", "br"]), text.len()).unwrap();
        assert_eq!(decoded.text, text);
        let transferred = decoded.transferred_at(text.len());
        // All bytes but those that a gzip member has after its text.
        assert!(
            transferred <= outer.len() as u64
                && transferred + DECODE_STEP_BYTES as u64 >= outer.len() as u64,
            "{transferred} of {}",
            outer.len()
        );
    }

    #[test]
    fn the_window_of_brotli_is_as_large_as_the_text_and_no_larger() {
        let windows = [0, 1_008, 1_009, 65_520, 65_521, 4_194_288, usize::MAX].map(window_bits);
        assert_eq!(windows, [10, 10, 11, 16, 17, 22, 22]);
        for len in [0, 1_008, 1_009, 65_520, 65_521] {
            // Its end repeats its beginning, at the maximum distance.
            let mut text: Vec<u8> = text().into_iter().cycle().take(len).collect();
            let begin = text[..len.min(500)].to_vec();
            let end = len - begin.len();
            text[end..].copy_from_slice(&begin);
            for target in [None, Some(0)] {
                let coded = encode(&text, "br", target).unwrap();
                let decoded = decode(&coded, &codings(&["br"]), len).unwrap();
                assert!(decoded.text == text, "{len} bytes");
            }
        }
    }

    #[test]
    fn transferred_at_grows_with_the_decoded_text() {
        let text = text();
        for coding in ["gzip", "deflate", "br"] {
            let coded = encode(&text, coding, None).unwrap();
            let decoded = decode(&coded, &codings(&[coding]), text.len()).unwrap();
            let marks: Vec<_> = (0..=text.len())
                .step_by(997)
                .map(|at| decoded.transferred_at(at))
                .collect();
            assert!(marks.is_sorted(), "{coding}: {marks:?}");
            let middle = decoded.transferred_at(text.len() / 2) as f64 / coded.len() as f64;
            assert!(
                (0.3..0.8).contains(&middle),
                "{coding}: the middle is decoded at {middle} of the transfer"
            );
        }
    }

    #[test]
    fn gzip_reaches_the_recorded_size_to_the_byte() {
        let text = text();
        let best = encode(&text, "gzip", Some(0)).unwrap().len();
        for target in [best + 6, best + 7, best + 5_000] {
            let coded = encode(&text, "gzip", Some(target)).unwrap();
            assert_eq!(coded.len(), target);
            assert_eq!(
                decode(&coded, &codings(&["gzip"]), text.len())
                    .unwrap()
                    .text,
                text
            );
        }
    }

    #[test]
    fn text_one_byte_past_the_limit_is_refused() {
        let text = text();
        let coded = encode(&text, "gzip", None).unwrap();
        let limit = text.len() - 1;
        assert_eq!(
            decode(&coded, &codings(&["gzip"]), limit),
            Err(CodingError::TooLong { limit })
        );
        assert_eq!(gunzip(&coded, limit), Err(CodingError::TooLong { limit }));
        assert_eq!(gunzip(&coded, limit + 1).unwrap(), text);
    }

    #[test]
    fn a_stream_cut_short_is_corrupt_and_an_unknown_coding_is_named() {
        let coded = encode(&text(), "gzip", None).unwrap();
        let cut = &coded[..coded.len() / 2];
        assert!(matches!(
            decode(cut, &codings(&["gzip"]), 1 << 20),
            Err(CodingError::Corrupt { .. })
        ));
        assert_eq!(
            decode(b"x", &codings(&["sdch"]), 9),
            Err(CodingError::Unknown("sdch".to_owned()))
        );
    }
}
