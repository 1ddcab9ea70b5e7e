//! Applies a content coding to a body, piece by piece.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;

use crate::body::content_coding::Coding;

/// Brotli's quality while a client waits: as fast as gzip at 6, and smaller.
const BROTLI_QUALITY: u32 = 5;
/// Brotli's quality where no client waits: 8 to 10 % smaller than at `BROTLI_QUALITY`, in fifty times the time.
const SMALLEST_BROTLI_QUALITY: i32 = 11;
/// Brotli's window for stored bodies, which are encoded once, as a power of two: the encoder's own.
const BROTLI_WINDOW: u32 = 22;
/// Brotli's window while a client waits: each page allocates a new one, and few pages are longer than 1 MiB.
const BROTLI_STREAMING_WINDOW: u32 = 20;
/// Zstandard's level: twice as fast as Brotli at `BROTLI_QUALITY`, and 1 to 5 % longer. At 3 it is six times as fast, and 6 to
/// 20 % longer: a client at 10 Mbit/s waits longer for these bytes than the proxy saves.
const ZSTD_LEVEL: i32 = 6;
/// The size of Brotli's own buffers.
const BUFFER: usize = 4 * 1024;

/// Applies a coding. Each write returns output from which all input so far can be decoded.
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
                EncoderKind::Zstd(Box::new(encoder.expect("zstd can allocate an encoder")))
            }
            Coding::Brotli => EncoderKind::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BUFFER,
                BROTLI_QUALITY,
                brotli_window,
            ))),
        })
    }

    /// Writes `text`, and returns the output for it.
    pub fn write(&mut self, text: &[u8]) -> Vec<u8> {
        let written = match &mut self.0 {
            EncoderKind::Identity(out) => out.write_all(text),
            EncoderKind::Gzip(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
            EncoderKind::Zstd(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
            EncoderKind::Brotli(encoder) => encoder.write_all(text).and_then(|()| encoder.flush()),
        };
        written.expect("writing to a Vec never fails");
        match &mut self.0 {
            EncoderKind::Identity(out) => std::mem::take(out),
            EncoderKind::Gzip(encoder) => std::mem::take(encoder.get_mut()),
            EncoderKind::Zstd(encoder) => std::mem::take(encoder.get_mut()),
            EncoderKind::Brotli(encoder) => std::mem::take(encoder.get_mut()),
        }
    }

    /// The remaining output at the end.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        match self.0 {
            EncoderKind::Identity(out) => out,
            EncoderKind::Gzip(encoder) => encoder.finish().expect("writing to a Vec never fails"),
            EncoderKind::Zstd(encoder) => encoder.finish().expect("writing to a Vec never fails"),
            EncoderKind::Brotli(encoder) => encoder.into_inner(),
        }
    }
}

/// Encodes all of `text` with Brotli, as small as it can.
#[must_use]
pub fn encode_smallest(text: &[u8]) -> Vec<u8> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: SMALLEST_BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW as i32,
        size_hint: text.len(),
        ..brotli::enc::BrotliEncoderParams::default()
    };
    let mut coded = Vec::new();
    let mut rest = text;
    brotli::BrotliCompress(&mut rest, &mut coded, &params).expect("writing to a Vec never fails");
    coded
}

/// Encodes all of `text` with `coding`.
#[must_use]
pub fn encode(text: &[Bytes], coding: Coding) -> Bytes {
    let mut encoder = Encoder::for_storage(coding);
    let mut coded = Vec::new();
    for piece in text {
        // There is one flush, at the end, because each costs some bytes.
        let written = match &mut encoder.0 {
            EncoderKind::Identity(out) => out.write_all(piece),
            EncoderKind::Gzip(encoder) => encoder.write_all(piece),
            EncoderKind::Zstd(encoder) => encoder.write_all(piece),
            EncoderKind::Brotli(encoder) => encoder.write_all(piece),
        };
        written.expect("writing to a Vec never fails");
    }
    coded.extend(encoder.finish());
    coded.into()
}
