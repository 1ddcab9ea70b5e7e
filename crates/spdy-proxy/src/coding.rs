//! Content codings, piece by piece: undone to look into an origin's answer, done again for each client (RFC 9110 §8.4).
//!
//! What an origin compressed may be made to swell without end: a decoder gives at most so many bytes, and says so.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use http::{HeaderMap, header};

/// Compressed bytes that a decoder is given at a time: gzip makes 4 MiB of them at most.
const SIP: usize = 4 * 1024;
/// Brotli's quality while somebody waits: as fast as gzip at 6, and smaller.
const BROTLI_QUALITY: u32 = 5;
/// Brotli's window, as a power of two: what every client must have.
const BROTLI_WINDOW: u32 = 22;
const BUFFER: usize = 4 * 1024;

/// A coding that is spoken here.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Coding {
    /// None.
    Identity,
    /// `gzip`, and `x-gzip`.
    Gzip,
    /// `br`.
    Brotli,
}

/// Why a body could not be decoded.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CodingError {
    /// The bytes are not of the coding that was announced.
    #[error("the body is not {0}: {1}")]
    Corrupt(&'static str, String),
    /// More came out than may.
    #[error("the body decodes to more than {limit} bytes")]
    TooLong {
        /// Bytes that were allowed.
        limit: usize,
    },
}

impl Coding {
    /// Its name in `Content-Encoding`; `identity` is never written there.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }

    /// The coding of a body with these headers; `None` if it has one, or several, that are not spoken here.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get_all(header::CONTENT_ENCODING).into_iter();
        let Some(field) = fields.next() else {
            return Some(Self::Identity);
        };
        if fields.next().is_some() {
            return None;
        }
        match field.to_str().ok()?.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "br" => Some(Self::Brotli),
            _ => None,
        }
    }

    /// The best one that a request with these headers takes.
    #[must_use]
    pub fn accepted(headers: &HeaderMap) -> Self {
        // What was said of each, and of all others.
        let (mut gzip, mut brotli, mut every) = (None, None, None);
        for field in headers.get_all(header::ACCEPT_ENCODING) {
            for item in field.to_str().unwrap_or_default().split(',') {
                let mut parts = item.split(';').map(str::trim);
                let name = parts.next().unwrap_or_default();
                let is = |other: &str| name.eq_ignore_ascii_case(other);
                let is_wanted = parts.all(|part| weight(part) != Some(0.0));
                if is("gzip") || is("x-gzip") {
                    gzip = gzip.or(Some(is_wanted));
                } else if is("br") {
                    brotli = brotli.or(Some(is_wanted));
                } else if name == "*" {
                    every = Some(is_wanted);
                }
            }
        }
        match (brotli.or(every), gzip.or(every)) {
            (Some(true), _) => Self::Brotli,
            (_, Some(true)) => Self::Gzip,
            _ => Self::Identity,
        }
    }
}

/// `q=` of a parameter, 0 where it cannot be read.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    is_weight.then(|| value.trim().parse().unwrap_or(0.0))
}

/// A buffer that refuses what is too much.
#[derive(Debug)]
struct Bounded {
    bytes: Vec<u8>,
    left: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.checked_sub(bytes.len());
        self.left = left.ok_or(io::ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Undoes a coding.
pub struct Decoder {
    inner: DecoderKind,
    limit: usize,
}

enum DecoderKind {
    Identity(Bounded),
    Gzip(Box<flate2::write::MultiGzDecoder<Bounded>>),
    Brotli(Box<brotli::DecompressorWriter<Bounded>>),
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Decoder {
    /// Undoes `coding`, up to `limit` bytes of text.
    #[must_use]
    pub fn new(coding: Coding, limit: usize) -> Self {
        let out = Bounded {
            bytes: Vec::new(),
            left: limit,
        };
        let inner = match coding {
            Coding::Identity => DecoderKind::Identity(out),
            Coding::Gzip => DecoderKind::Gzip(Box::new(flate2::write::MultiGzDecoder::new(out))),
            Coding::Brotli => {
                DecoderKind::Brotli(Box::new(brotli::DecompressorWriter::new(out, BUFFER)))
            }
        };
        Self { inner, limit }
    }

    /// Bytes that it is best given at a time: few, where they may swell.
    #[must_use]
    pub fn sip(&self) -> usize {
        match self.inner {
            DecoderKind::Identity(_) => usize::MAX,
            DecoderKind::Gzip(_) | DecoderKind::Brotli(_) => SIP,
        }
    }

    /// The text that `piece` brings.
    ///
    /// # Errors
    ///
    /// [`CodingError`]; nothing more can be had after it.
    pub fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, CodingError> {
        for sip in piece.chunks(SIP) {
            let written = match &mut self.inner {
                DecoderKind::Identity(out) => out.write_all(sip),
                DecoderKind::Gzip(decoder) => decoder.write_all(sip),
                DecoderKind::Brotli(decoder) => decoder.write_all(sip),
            };
            written.map_err(|error| self.error(&error))?;
        }
        let flushed = match &mut self.inner {
            DecoderKind::Identity(_) => Ok(()),
            DecoderKind::Gzip(decoder) => decoder.flush(),
            DecoderKind::Brotli(decoder) => decoder.flush(),
        };
        flushed.map_err(|error| self.error(&error))?;
        Ok(std::mem::take(&mut self.out().bytes))
    }

    /// The rest of the text; the body is at its end.
    ///
    /// # Errors
    ///
    /// [`CodingError`]: it ended too early.
    pub fn finish(mut self) -> Result<Vec<u8>, CodingError> {
        let finished = match &mut self.inner {
            DecoderKind::Identity(_) => Ok(()),
            DecoderKind::Gzip(decoder) => decoder.try_finish(),
            DecoderKind::Brotli(decoder) => decoder.close(),
        };
        finished.map_err(|error| self.error(&error))?;
        Ok(std::mem::take(&mut self.out().bytes))
    }

    fn out(&mut self) -> &mut Bounded {
        match &mut self.inner {
            DecoderKind::Identity(out) => out,
            DecoderKind::Gzip(decoder) => decoder.get_mut(),
            DecoderKind::Brotli(decoder) => decoder.get_mut(),
        }
    }

    fn error(&self, error: &io::Error) -> CodingError {
        let name = match &self.inner {
            DecoderKind::Identity(_) => "identity",
            DecoderKind::Gzip(_) => "gzip",
            DecoderKind::Brotli(_) => "br",
        };
        match error.kind() {
            io::ErrorKind::FileTooLarge => CodingError::TooLong { limit: self.limit },
            _ => CodingError::Corrupt(name, error.to_string()),
        }
    }
}

/// Does a coding. What it is given can be read as soon as it is given: nothing waits for more.
pub struct Encoder(EncoderKind);

enum EncoderKind {
    Identity(Vec<u8>),
    Gzip(Box<flate2::write::GzEncoder<Vec<u8>>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// Does `coding`.
    #[must_use]
    pub fn new(coding: Coding) -> Self {
        Self(match coding {
            Coding::Identity => EncoderKind::Identity(Vec::new()),
            Coding::Gzip => {
                let level = Compression::default();
                EncoderKind::Gzip(Box::new(flate2::write::GzEncoder::new(Vec::new(), level)))
            }
            Coding::Brotli => EncoderKind::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BUFFER,
                BROTLI_QUALITY,
                BROTLI_WINDOW,
            ))),
        })
    }

    /// What is to be sent once `text` was written.
    pub fn write(&mut self, text: &[u8]) -> Vec<u8> {
        let written = match &mut self.0 {
            EncoderKind::Identity(out) => out.write_all(text),
            EncoderKind::Gzip(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
            EncoderKind::Brotli(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
        };
        written.expect("memory takes every byte");
        match &mut self.0 {
            EncoderKind::Identity(out) => std::mem::take(out),
            EncoderKind::Gzip(encoder) => std::mem::take(encoder.get_mut()),
            EncoderKind::Brotli(encoder) => std::mem::take(encoder.get_mut()),
        }
    }

    /// What is to be sent at the end.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            EncoderKind::Identity(out) => out,
            EncoderKind::Gzip(encoder) => encoder.finish().expect("memory takes every byte"),
            EncoderKind::Brotli(encoder) => encoder.into_inner(),
        }
    }
}

/// All of `text` under `coding`.
#[must_use]
pub fn encode(text: &[Bytes], coding: Coding) -> Bytes {
    let mut encoder = Encoder::new(coding);
    let mut coded = Vec::new();
    for piece in text {
        // One flush at the end alone: each costs some bytes.
        let written = match &mut encoder.0 {
            EncoderKind::Identity(out) => out.write_all(piece),
            EncoderKind::Gzip(encoder) => encoder.write_all(piece),
            EncoderKind::Brotli(encoder) => encoder.write_all(piece),
        };
        written.expect("memory takes every byte");
    }
    coded.extend(encoder.finish());
    coded.into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn accepting(text: &str) -> Coding {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(text).expect("a value");
        headers.insert(header::ACCEPT_ENCODING, value);
        Coding::accepted(&headers)
    }

    #[test]
    fn the_best_that_is_accepted_is_taken() {
        for (text, best) in [
            ("gzip, deflate, br, zstd", Coding::Brotli),
            ("gzip, deflate", Coding::Gzip),
            ("br;q=0, gzip;q=0.5", Coding::Gzip),
            ("*", Coding::Brotli),
            ("*, br;q=0.0", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("gzip;q=none", Coding::Identity),
            ("identity", Coding::Identity),
            ("", Coding::Identity),
        ] {
            assert_eq!(accepting(text), best, "{text:?}");
        }
        assert_eq!(Coding::accepted(&HeaderMap::new()), Coding::Identity);
    }

    #[test]
    fn what_is_encoded_decodes_to_itself_in_any_pieces() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| (at / 7 % 251) as u8).collect();
        for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli] {
            let mut encoder = Encoder::new(coding);
            let mut coded: Vec<u8> = text
                .chunks(7001)
                .flat_map(|piece| encoder.write(piece))
                .collect();
            coded.extend(encoder.finish());
            let whole = encode(&[text.clone().into()], coding);
            for (coded, grain) in [(&coded[..], 1), (&coded[..], 4096), (&whole[..], 1000)] {
                let mut decoder = Decoder::new(coding, text.len());
                let mut back = Vec::new();
                for piece in coded.chunks(grain) {
                    back.extend(decoder.write(piece).expect("it is of the coding"));
                }
                back.extend(decoder.finish().expect("it is whole"));
                assert!(back == text, "{coding:?} by {grain}");
            }
        }
    }

    #[test]
    fn what_was_written_can_be_read_at_once() {
        for coding in [Coding::Gzip, Coding::Brotli] {
            let mut encoder = Encoder::new(coding);
            let mut decoder = Decoder::new(coding, 100);
            let piece = encoder.write(b"<title>now</title>");
            let text = decoder.write(&piece).expect("it is of the coding");
            assert_eq!(text, b"<title>now</title>", "{coding:?}");
        }
    }

    #[test]
    fn a_body_that_swells_past_the_limit_is_refused() {
        let text = vec![0; 3_000_001];
        for coding in [Coding::Identity, Coding::Gzip, Coding::Brotli] {
            let coded = encode(&[text.clone().into()], coding);
            let decode = |limit| {
                let mut decoder = Decoder::new(coding, limit);
                decoder.write(&coded)?;
                decoder.finish()
            };
            let limit = 3_000_000;
            assert_eq!(decode(limit), Err(CodingError::TooLong { limit }));
            assert!(decode(3_000_001).is_ok(), "{coding:?}");
        }
    }

    #[test]
    fn a_body_cut_short_is_not_taken_for_whole() {
        for coding in [Coding::Gzip, Coding::Brotli] {
            let coded = encode(&[Bytes::from_static(b"all of it, and not less")], coding);
            let mut decoder = Decoder::new(coding, 1000);
            let cut = decoder
                .write(&coded[..coded.len() - 3])
                .and_then(|_| decoder.finish());
            assert!(matches!(cut, Err(CodingError::Corrupt(..))), "{coding:?}");
        }
    }
}
