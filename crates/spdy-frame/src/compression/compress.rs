//! One zlib stream for each direction of a session (SPDY/3.1 §2.6.10.1, RFC 1950).
//!
//! ```text
//! first block   | CMF FLG | dictionary id:32 | deflate data ... 00 00 ff ff |
//! later blocks  | deflate data ... 00 00 ff ff |
//! ```
//!
//! Blocks enter the stream in their order on the wire, so a block is compressed when its frame is written, and a
//! frame with a compressed block must be sent.
//!
//! Reading is in [`inflate`](crate::inflate).

use bytes::{BufMut, BytesMut};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush};

use crate::blocks::header_block::HeaderBlock;
use crate::blocks::secrets::Secrets;
use crate::compression::deflate_encoder::DeflateEncoder;
use crate::compression::dictionary::{dictionary, dictionary_id};
use crate::version::Version;

pub use crate::compression::inflate::{InflatedBlock, Inflater};

/// The minimum and the maximum window that we use, as powers of two (bytes). The minimum contains the whole dictionary
/// at the start; deflate has no larger window than the maximum.
const WINDOW_BITS: (u8, u8) = (11, 15);

/// zlib's parameter for memory besides the window: 2^12 pending symbols, and hash tables of matching size.
const MEM_LEVEL: i32 = 6;

/// How header blocks are compressed. Every receiver can read all variants.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Compression {
    /// Our own encoder: only the values of [a list of names](crate::public_headers) are matched in part. A
    /// [private](Secrets) value is written as literals, or as one repetition of an equal value of the same name and host,
    /// so lengths on the wire reveal nothing about the value except its length. The default.
    #[default]
    CrimeSafe,
    /// Plain zlib, level 0 (stored) to 9; a higher value means 9. Above 0, private values share a history with all
    /// others. Use it only if one party writes all headers.
    Zlib(u8),
}

/// Options for compressing the header blocks of one direction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeflateOptions {
    /// Default [`Compression::CrimeSafe`].
    pub compression: Compression,
    /// Window size as a power of two: how many bytes back a repetition can reach. From 11, which contains the whole
    /// dictionary at the start, to 15, which is deflate's maximum and which every peer supports. A value out of range is
    /// moved to the nearest valid one. Default 13 (8 KiB) for [`Compression::CrimeSafe`]; 15 for [`Compression::Zlib`],
    /// which needs much memory anyway.
    pub window_bits: u8,
    /// Header values that [`Compression::CrimeSafe`] isolates from all others. [`Compression::Zlib`] ignores it.
    pub secrets: Secrets,
}

impl Default for DeflateOptions {
    fn default() -> Self {
        Compression::default().into()
    }
}

impl From<Compression> for DeflateOptions {
    fn from(compression: Compression) -> Self {
        Self {
            compression,
            window_bits: match compression {
                Compression::CrimeSafe => 13,
                Compression::Zlib(_) => 15,
            },
            secrets: Secrets::default(),
        }
    }
}

/// Writes header blocks, in the order in which they go on the wire.
///
/// It allocates no memory before the first block. The memory of [`Compression::CrimeSafe`] then grows with its blocks: from 4 KiB
/// up to 16 KiB of tables and twice its window (together 32 KiB with a window of 8 KiB), plus a copy of each repeatable value in it.
/// [`Compression::Zlib`] uses about 280 KiB with a window of 32 KiB, at any level, because zlib-rs has hash tables of one size.
/// Neither allocates for a block of usual size.
pub struct Deflater {
    version: Version,
    options: DeflateOptions,
    /// `None` until the first block.
    encoder: Option<Encoder>,
}

enum Encoder {
    CrimeSafe(Box<DeflateEncoder>),
    Zlib { zlib: Box<Deflate>, plain: BytesMut },
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            version,
            options,
            encoder,
        } = self;
        f.debug_struct("Deflater")
            .field("version", version)
            .field("options", options)
            .field("begun", &encoder.is_some())
            .finish_non_exhaustive()
    }
}

impl Deflater {
    /// For the blocks of one direction of a session of `version`.
    #[must_use]
    pub fn new(version: Version, options: impl Into<DeflateOptions>) -> Self {
        let mut options = options.into();
        options.window_bits = options.window_bits.clamp(WINDOW_BITS.0, WINDOW_BITS.1);
        Self {
            version,
            options,
            encoder: None,
        }
    }

    /// Compresses `headers`, ends the block with a sync flush, and appends it to `out`. Returns the plain length in bytes.
    ///
    /// # Panics
    ///
    /// If a name or value is too long for the version; see
    /// [`HeaderBlock::check`](crate::header_block::HeaderBlock::check).
    pub fn deflate(&mut self, headers: &HeaderBlock, out: &mut BytesMut) -> usize {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => {
                out.put_u16(zlib_head(&self.options));
                out.put_u32(dictionary_id(self.version));
                none.insert(Encoder::new(self.version, &self.options))
            }
        };
        match encoder {
            Encoder::CrimeSafe(encoder) => encoder.deflate(headers, out),
            Encoder::Zlib { zlib, plain } => {
                plain.clear();
                headers.encode(self.version, plain);
                zlib_deflate(zlib, plain, out);
                plain.len()
            }
        }
    }
}

impl Encoder {
    fn new(version: Version, options: &DeflateOptions) -> Self {
        let level = match options.compression {
            Compression::CrimeSafe => {
                let (window, secrets) = (1 << options.window_bits, options.secrets.clone());
                return Self::CrimeSafe(Box::new(DeflateEncoder::new(version, window, secrets)));
            }
            Compression::Zlib(level) => i32::from(level.min(9)),
        };
        let mut zlib = Box::new(Deflate::new_with_config(DeflateConfig {
            level,
            // Negative means no zlib wrapper: its checksum is never sent.
            window_bits: -i32::from(options.window_bits),
            mem_level: MEM_LEVEL,
            ..DeflateConfig::default()
        }));
        if zlib.set_dictionary(dictionary(version)).is_err() {
            unreachable!("a new raw deflater accepts any dictionary");
        }
        let plain = BytesMut::new();
        Self::Zlib { zlib, plain }
    }
}

/// CMF and FLG: deflate, its window, a preset dictionary, and the compression level (RFC 1950 §2.2).
const fn zlib_head(options: &DeflateOptions) -> u16 {
    let effort = match options.compression {
        Compression::Zlib(0 | 1) => 0,
        Compression::Zlib(2..=5) => 1,
        Compression::Zlib(6) | Compression::CrimeSafe => 2,
        Compression::Zlib(_) => 3,
    };
    let head = ((options.window_bits as u16 - 8) << 4 | 8) << 8 | effort << 6 | 0x20;
    head + (31 - head % 31) // FCHECK: the whole is a multiple of 31
}

/// Compresses all of `plain`, followed by a sync flush.
fn zlib_deflate(zlib: &mut Deflate, mut plain: &[u8], out: &mut BytesMut) {
    /// Room for the start and the end of a block, so that a second iteration is rare.
    const ENDS: usize = 32;
    loop {
        let begin = out.len();
        let room = plain.len() + plain.len() / 8 + ENDS;
        out.resize(begin + room, 0);
        let (in_before, out_before) = (zlib.total_in(), zlib.total_out());
        if let Err(error) = zlib.compress(plain, &mut out[begin..], DeflateFlush::SyncFlush) {
            unreachable!("deflate failed with {error:?} on {} bytes", plain.len());
        }
        let produced = (zlib.total_out() - out_before) as usize;
        out.truncate(begin + produced);
        plain = &plain[(zlib.total_in() - in_before) as usize..];
        // If the output fills the room exactly, the flush may be incomplete.
        if plain.is_empty() && produced < room {
            return;
        }
    }
}
