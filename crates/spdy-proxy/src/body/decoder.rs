//! Removes a content coding from a body, piece by piece.
//!
//! A compressed body can expand without end, so a decoder has an output limit and fails past it.

use std::io::{self, Write};

use crate::body::content_coding::Coding;
use crate::body::gzip_decoder::GzipDecoder;

/// Compressed bytes that are decoded at a time: gzip expands them to at most 4 MiB.
const MAX_ENCODED_INPUT_BYTES: usize = 4 * 1024;
/// Bytes of uncoded text that are processed at a time: about what 4 KiB of compressed bytes expand to.
const MAX_TEXT_INPUT_BYTES: usize = 16 * 1024;
/// The longest window that is decoded, as a power of two: 8 MiB, which every client must support (RFC 9659).
const ZSTD_WINDOW: u32 = 23;
/// The size of Brotli's own buffers.
const BUFFER: usize = 4 * 1024;
/// The divisor for the size of the first chunk: its text fills about one packet beside a head.
const FIRST_CHUNK_DIVISOR: usize = 16;

/// Why a body could not be decoded.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CodingError {
    /// The bytes are not valid in the announced coding.
    #[error("the body is not valid {0}: {1}")]
    Corrupt(&'static str, String),
    /// The output exceeds the limit.
    #[error("the body decodes to more than {limit} bytes")]
    TooLong {
        /// The limit, bytes.
        limit: usize,
    },
}

/// A buffer that fails past its limit.
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

/// Removes a coding.
pub struct Decoder {
    inner: DecoderKind,
    limit: usize,
    /// There was no input yet.
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
    /// A decoder of `coding`, up to `limit` bytes of output.
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

    /// How many bytes to write at a time so that the output of one write stays small: few if they are compressed.
    #[must_use]
    pub fn chunk_len(&self) -> usize {
        match self.inner {
            DecoderKind::Identity(_) => MAX_TEXT_INPUT_BYTES,
            DecoderKind::Gzip(_) | DecoderKind::Zstd(_) | DecoderKind::Brotli(_) => {
                MAX_ENCODED_INPUT_BYTES
            }
        }
    }

    /// How many bytes to write at a time until there is output: 1 KiB of text, or gzip that expands to at most 264 KiB. `None` for codings of
    /// which a few bytes may expand to any length.
    #[must_use]
    pub fn first_chunk_len(&self) -> Option<usize> {
        match self.inner {
            DecoderKind::Identity(_) | DecoderKind::Gzip(_) => {
                Some(self.chunk_len() / FIRST_CHUNK_DIVISOR)
            }
            DecoderKind::Zstd(_) | DecoderKind::Brotli(_) => None,
        }
    }

    /// The output for `piece`.
    ///
    /// # Errors
    ///
    /// [`CodingError`]; there is no more output after it.
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

    /// The remaining output at the end of the body. An empty body is an empty text under any coding.
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

    /// The output so far.
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
    let mut decoder = zstd::stream::raw::Decoder::new().expect("zstd can allocate a decoder");
    let window = zstd::stream::raw::DParameter::WindowLogMax(ZSTD_WINDOW);
    let set = decoder.set_parameter(window);
    set.expect("zstd supports this window");
    zstd::stream::write::Decoder::with_decoder(out, decoder)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::body::encoder::{Encoder, encode};

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
                    decoded.extend(
                        decoder
                            .write(piece)
                            .expect("the body is valid in its coding"),
                    );
                }
                decoded.extend(decoder.finish().expect("the body is complete"));
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
            let text = decoder
                .write(&piece)
                .expect("the body is valid in its coding");
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
