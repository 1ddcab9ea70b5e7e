//! Content codings, piece by piece: decoded to rewrite an origin's answer, encoded again for each client (RFC 9110 §8.4).
//!
//! A compressed body can expand without end, so a decoder has an output limit and fails past it.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use http::{HeaderMap, header};

use crate::body::gzip_decoder::GzipDecoder;

/// Compressed bytes that a decoder is given at a time: gzip makes 4 MiB of them at most.
const MAX_ENCODED_INPUT_BYTES: usize = 4 * 1024;
/// Bytes of text that are looked into at a time: about what 4 KiB of compressed ones bring.
const MAX_TEXT_INPUT_BYTES: usize = 16 * 1024;
/// Brotli's quality while a client waits: as fast as gzip at 6, and smaller.
const BROTLI_QUALITY: u32 = 5;
/// Brotli's window for stored bodies, which are encoded once, as a power of two: the encoder's own.
const BROTLI_WINDOW: u32 = 22;
/// Brotli's window while a client waits: each page allocates a new one, and few pages are longer than 1 MiB.
const BROTLI_STREAMING_WINDOW: u32 = 20;
/// Zstandard's level: twice as fast as Brotli above, and 1 to 5 % longer. At 3 it is six times as fast, and longer by so much (6 to
/// 20 %) that a client at 10 Mbit/s waits as long for that as is saved here.
const ZSTD_LEVEL: i32 = 6;
/// The longest window that is decoded, as a power of two: 8 MiB, what every client must have (RFC 9659).
const ZSTD_WINDOW: u32 = 23;
const BUFFER: usize = 4 * 1024;
/// The divisor for the size of the first chunk: its text fills about one packet beside a head.
const FIRST_CHUNK_DIVISOR: usize = 16;

/// A coding that is spoken here.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Coding {
    /// None.
    Identity,
    /// `gzip`, and `x-gzip`.
    Gzip,
    /// `zstd` (RFC 8878).
    Zstd,
    /// `br`.
    Brotli,
}

/// The codings that a client accepts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AcceptedCodings {
    gzip: bool,
    zstd: bool,
    brotli: bool,
}

impl AcceptedCodings {
    /// Those that a request with these headers accepts.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        // The weights of each coding, and of `*`.
        let (mut gzip, mut zstd, mut brotli, mut every) = (None, None, None, None);
        for field in headers.get_all(header::ACCEPT_ENCODING) {
            for item in field.to_str().unwrap_or_default().split(',') {
                let mut parts = item.split(';').map(str::trim);
                let name = parts.next().unwrap_or_default();
                let is = |other: &str| name.eq_ignore_ascii_case(other);
                let is_accepted = parts.all(|part| weight(part) != Some(0.0));
                if is("gzip") || is("x-gzip") {
                    gzip = gzip.or(Some(is_accepted));
                } else if is("zstd") {
                    zstd = zstd.or(Some(is_accepted));
                } else if is("br") {
                    brotli = brotli.or(Some(is_accepted));
                } else if name == "*" {
                    every = Some(is_accepted);
                }
            }
        }
        let accepts = |weight: Option<bool>| weight.or(every).unwrap_or(false);
        Self {
            gzip: accepts(gzip),
            zstd: accepts(zstd),
            brotli: accepts(brotli),
        }
    }

    /// `Accept-Encoding` for an origin: all accepted codings, the shortest first. A body that is not rewritten goes on unchanged, so no
    /// other coding may be named. Each set has one value, so that answers which vary on it have few variants.
    #[must_use]
    pub fn header_value(self) -> &'static str {
        match (self.brotli, self.zstd, self.gzip) {
            (true, true, true) => "br, zstd;q=0.9, gzip;q=0.8",
            (true, true, false) => "br, zstd;q=0.9",
            (true, false, true) => "br, gzip;q=0.8",
            (true, false, false) => "br",
            (false, true, true) => "zstd, gzip;q=0.8",
            (false, true, false) => "zstd",
            (false, false, true) => "gzip",
            (false, false, false) => "identity",
        }
    }

    /// The coding that makes a body shortest: for stored bodies, which are encoded once.
    #[must_use]
    pub fn shortest(self) -> Coding {
        self.first([
            (self.brotli, Coding::Brotli),
            (self.zstd, Coding::Zstd),
            (self.gzip, Coding::Gzip),
        ])
    }

    /// The one that costs least: for what is coded while it comes, for one client alone.
    #[must_use]
    pub fn fastest(self) -> Coding {
        self.first([
            (self.zstd, Coding::Zstd),
            (self.brotli, Coding::Brotli),
            (self.gzip, Coding::Gzip),
        ])
    }

    fn first(self, all: [(bool, Coding); 3]) -> Coding {
        let mut accepted = all.into_iter().filter(|(is_accepted, _)| *is_accepted);
        accepted
            .next()
            .map_or(Coding::Identity, |(_, coding)| coding)
    }
}

/// Why a body could not be decoded.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CodingError {
    /// The bytes are not of the coding that was announced.
    #[error("the body is not valid {0}: {1}")]
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
            Self::Zstd => "zstd",
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
            "zstd" => Some(Self::Zstd),
            "br" => Some(Self::Brotli),
            _ => None,
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
struct LimitedBuffer {
    bytes: Vec<u8>,
    remaining: usize,
}

impl Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let remaining = self.remaining.checked_sub(bytes.len());
        self.remaining = remaining.ok_or(io::ErrorKind::FileTooLarge)?;
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
    /// Nothing came yet.
    is_empty: bool,
}

enum DecoderKind {
    Identity(LimitedBuffer),
    Gzip(GzipDecoder<LimitedBuffer>),
    Zstd(Box<zstd::stream::write::Decoder<'static, LimitedBuffer>>),
    Brotli(Box<brotli::DecompressorWriter<LimitedBuffer>>),
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
        let out = LimitedBuffer {
            bytes: Vec::new(),
            remaining: limit,
        };
        let inner = match coding {
            Coding::Identity => DecoderKind::Identity(out),
            Coding::Gzip => DecoderKind::Gzip(GzipDecoder::new(out)),
            Coding::Zstd => DecoderKind::Zstd(Box::new(zstd_decoder(out))),
            Coding::Brotli => {
                DecoderKind::Brotli(Box::new(brotli::DecompressorWriter::new(out, BUFFER)))
            }
        };
        Self {
            inner,
            limit,
            is_empty: true,
        }
    }

    /// Bytes that it is best given at a time, so that little comes out at a time: few, where they may swell.
    #[must_use]
    pub fn chunk_len(&self) -> usize {
        match self.inner {
            DecoderKind::Identity(_) => MAX_TEXT_INPUT_BYTES,
            DecoderKind::Gzip(_) | DecoderKind::Zstd(_) | DecoderKind::Brotli(_) => {
                MAX_ENCODED_INPUT_BYTES
            }
        }
    }

    /// The same until text comes: 1 KiB of text, or of gzip what makes 264 KiB at most. `None` for codings of which a few bytes may make any
    /// amount.
    #[must_use]
    pub fn first_chunk_len(&self) -> Option<usize> {
        match self.inner {
            DecoderKind::Identity(_) | DecoderKind::Gzip(_) => {
                Some(self.chunk_len() / FIRST_CHUNK_DIVISOR)
            }
            DecoderKind::Zstd(_) | DecoderKind::Brotli(_) => None,
        }
    }

    /// The text that `piece` brings.
    ///
    /// # Errors
    ///
    /// [`CodingError`]; nothing more can be had after it.
    pub fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, CodingError> {
        self.is_empty &= piece.is_empty();
        for sip in piece.chunks(MAX_ENCODED_INPUT_BYTES) {
            let written = match &mut self.inner {
                DecoderKind::Identity(out) => out.write_all(sip),
                DecoderKind::Gzip(decoder) => decoder.write_all(sip),
                DecoderKind::Zstd(decoder) => decoder.write_all(sip),
                DecoderKind::Brotli(decoder) => decoder.write_all(sip),
            };
            written.map_err(|error| self.error(&error))?;
        }
        let flushed = match &mut self.inner {
            DecoderKind::Identity(_) => Ok(()),
            DecoderKind::Gzip(decoder) => decoder.flush(),
            DecoderKind::Zstd(decoder) => decoder.flush(),
            DecoderKind::Brotli(decoder) => decoder.flush(),
        };
        flushed.map_err(|error| self.error(&error))?;
        Ok(self.take_output())
    }

    /// The rest of the text; the body is at its end. What had no byte at all is an empty text under any coding.
    ///
    /// # Errors
    ///
    /// [`CodingError`]: it ended too early.
    pub fn finish(mut self) -> Result<Vec<u8>, CodingError> {
        if self.is_empty {
            return Ok(Vec::new());
        }
        let finished = match &mut self.inner {
            DecoderKind::Identity(_) => Ok(()),
            DecoderKind::Gzip(decoder) => decoder.finish(),
            DecoderKind::Zstd(decoder) => decoder.do_finish(),
            DecoderKind::Brotli(decoder) => decoder.close(),
        };
        finished.map_err(|error| self.error(&error))?;
        Ok(self.take_output())
    }

    /// The text that is there.
    fn take_output(&mut self) -> Vec<u8> {
        let out = match &mut self.inner {
            DecoderKind::Identity(out) => Some(out),
            DecoderKind::Gzip(decoder) => decoder.get_mut(),
            DecoderKind::Zstd(decoder) => Some(decoder.get_mut()),
            DecoderKind::Brotli(decoder) => Some(decoder.get_mut()),
        };
        out.map(|out| std::mem::take(&mut out.bytes))
            .unwrap_or_default()
    }

    fn error(&self, error: &io::Error) -> CodingError {
        let name = match &self.inner {
            DecoderKind::Identity(_) => "identity",
            DecoderKind::Gzip(_) => "gzip",
            DecoderKind::Zstd(_) => "zstd",
            DecoderKind::Brotli(_) => "br",
        };
        match error.kind() {
            io::ErrorKind::FileTooLarge => CodingError::TooLong { limit: self.limit },
            _ => CodingError::Corrupt(name, error.to_string()),
        }
    }
}

fn zstd_decoder(out: LimitedBuffer) -> zstd::stream::write::Decoder<'static, LimitedBuffer> {
    let mut decoder = zstd::stream::raw::Decoder::new().expect("memory for a decoder");
    let window = zstd::stream::raw::DParameter::WindowLogMax(ZSTD_WINDOW);
    let set = decoder.set_parameter(window);
    set.expect("it is a window that there is");
    zstd::stream::write::Decoder::with_decoder(out, decoder)
}

/// Does a coding. What it is given can be read as soon as it is given: nothing waits for more.
pub struct Encoder(EncoderKind);

enum EncoderKind {
    Identity(Vec<u8>),
    Gzip(Box<flate2::write::GzEncoder<Vec<u8>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

impl Encoder {
    /// An encoder for a body that a client waits for.
    #[must_use]
    pub fn new(coding: Coding) -> Self {
        Self::with(coding, BROTLI_STREAMING_WINDOW)
    }

    /// An encoder for a body to be stored.
    #[must_use]
    pub fn for_storage(coding: Coding) -> Self {
        Self::with(coding, BROTLI_WINDOW)
    }

    fn with(coding: Coding, brotli_window: u32) -> Self {
        Self(match coding {
            Coding::Identity => EncoderKind::Identity(Vec::new()),
            Coding::Gzip => {
                let level = Compression::default();
                EncoderKind::Gzip(Box::new(flate2::write::GzEncoder::new(Vec::new(), level)))
            }
            Coding::Zstd => {
                let encoder = zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL);
                EncoderKind::Zstd(Box::new(encoder.expect("memory for an encoder")))
            }
            Coding::Brotli => EncoderKind::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BUFFER,
                BROTLI_QUALITY,
                brotli_window,
            ))),
        })
    }

    /// What is to be sent once `text` was written.
    pub fn write(&mut self, text: &[u8]) -> Vec<u8> {
        let written = match &mut self.0 {
            EncoderKind::Identity(out) => out.write_all(text),
            EncoderKind::Gzip(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
            EncoderKind::Zstd(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
            EncoderKind::Brotli(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
        };
        written.expect("memory takes every byte");
        match &mut self.0 {
            EncoderKind::Identity(out) => std::mem::take(out),
            EncoderKind::Gzip(encoder) => std::mem::take(encoder.get_mut()),
            EncoderKind::Zstd(encoder) => std::mem::take(encoder.get_mut()),
            EncoderKind::Brotli(encoder) => std::mem::take(encoder.get_mut()),
        }
    }

    /// What is to be sent at the end.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            EncoderKind::Identity(out) => out,
            EncoderKind::Gzip(encoder) => encoder.finish().expect("memory takes every byte"),
            EncoderKind::Zstd(encoder) => encoder.finish().expect("memory takes every byte"),
            EncoderKind::Brotli(encoder) => encoder.into_inner(),
        }
    }
}

/// All of `text` under `coding`.
#[must_use]
pub fn encode(text: &[Bytes], coding: Coding) -> Bytes {
    let mut encoder = Encoder::for_storage(coding);
    let mut coded = Vec::new();
    for piece in text {
        // One flush at the end alone: each costs some bytes.
        let written = match &mut encoder.0 {
            EncoderKind::Identity(out) => out.write_all(piece),
            EncoderKind::Gzip(encoder) => encoder.write_all(piece),
            EncoderKind::Zstd(encoder) => encoder.write_all(piece),
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

    fn best_codings(text: &str) -> [Coding; 2] {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(text).expect("a value");
        headers.insert(header::ACCEPT_ENCODING, value);
        let accepted = AcceptedCodings::of(&headers);
        [accepted.shortest(), accepted.fastest()]
    }

    #[test]
    fn best_accepted_coding_is_chosen_for_storage_and_streaming() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        for (text, expected) in [
            ("gzip, deflate, br, zstd", [Brotli, Zstd]),
            ("gzip, deflate, br", [Brotli, Brotli]),
            ("gzip, ZSTD", [Zstd, Zstd]),
            ("gzip, deflate", [Gzip, Gzip]),
            ("br;q=0, gzip;q=0.5", [Gzip, Gzip]),
            ("*", [Brotli, Zstd]),
            ("*, br;q=0.0", [Zstd, Zstd]),
            ("*, zstd;q=0.0", [Brotli, Brotli]),
            ("x-gzip", [Gzip, Gzip]),
            ("gzip;q=none", [Identity, Identity]),
            ("identity", [Identity, Identity]),
            ("", [Identity, Identity]),
        ] {
            assert_eq!(best_codings(text), expected, "{text:?}");
        }
        assert_eq!(
            AcceptedCodings::of(&HeaderMap::new()),
            AcceptedCodings::default()
        );
    }

    #[test]
    fn origin_accept_encoding_lists_supported_client_codings_only() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", "br, zstd;q=0.9, gzip;q=0.8"),
            ("gzip, deflate, br", "br, gzip;q=0.8"),
            ("zstd, br", "br, zstd;q=0.9"),
            ("gzip, zstd", "zstd, gzip;q=0.8"),
            ("gzip;q=0.1, zstd;q=0", "gzip"),
            ("zstd", "zstd"),
            ("br", "br"),
            ("*, br;q=0, gzip;q=0", "zstd"),
            ("", "identity"),
        ] {
            let of = |text: &str| {
                let text = text.parse().expect("a value");
                AcceptedCodings::of(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, text)]))
            };
            assert_eq!(of(accepted).header_value(), expected, "{accepted:?}");
            // A prefetch sends the value that was parsed.
            assert_eq!(of(expected), of(accepted), "{accepted:?}");
        }
    }

    #[test]
    fn encode_then_decode_is_identity_for_any_chunks() {
        let text: Vec<u8> = (0..100_000_u32).map(|at| (at / 7 % 251) as u8).collect();
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd, Coding::Brotli] {
            let mut encoder = Encoder::new(coding);
            let mut coded: Vec<u8> = text
                .chunks(7001)
                .flat_map(|piece| encoder.write(piece))
                .collect();
            coded.extend(encoder.finish());
            let encoded = encode(&[text.clone().into()], coding);
            for (coded, grain) in [(&coded[..], 1), (&coded[..], 4096), (&encoded[..], 1000)] {
                let mut decoder = Decoder::new(coding, text.len());
                let mut decoded = Vec::new();
                for piece in coded.chunks(grain) {
                    decoded.extend(decoder.write(piece).expect("it is of the coding"));
                }
                decoded.extend(decoder.finish().expect("it is whole"));
                assert!(decoded == text, "{coding:?} by {grain}");
            }
        }
    }

    #[test]
    fn encoder_output_is_decodable_after_each_write() {
        for coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli] {
            let mut encoder = Encoder::new(coding);
            let mut decoder = Decoder::new(coding, 100);
            let piece = encoder.write(b"<title>now</title>");
            let text = decoder.write(&piece).expect("it is of the coding");
            assert_eq!(text, b"<title>now</title>", "{coding:?}");
        }
    }

    #[test]
    fn body_that_expands_past_the_limit_is_rejected() {
        let text = vec![0; 3_000_001];
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd, Coding::Brotli] {
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
    fn truncated_body_is_an_error() {
        for coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli] {
            let coded = encode(&[Bytes::from_static(b"all of it, and not less")], coding);
            let mut decoder = Decoder::new(coding, 1000);
            let result = decoder
                .write(&coded[..coded.len() - 3])
                .and_then(|_| decoder.finish());
            assert!(
                matches!(result, Err(CodingError::Corrupt(..))),
                "{coding:?}"
            );
        }
    }

    #[test]
    fn zstd_window_above_the_required_maximum_is_rejected() {
        let text: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        for (window, is_read) in [(ZSTD_WINDOW, true), (ZSTD_WINDOW + 1, false)] {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
            encoder.window_log(window).unwrap();
            encoder.write_all(&text).unwrap();
            let coded = encoder.finish().unwrap();
            let read = Decoder::new(Coding::Zstd, text.len()).write(&coded);
            assert_eq!(read.is_ok(), is_read, "{window}: {read:?}");
        }
    }
}
