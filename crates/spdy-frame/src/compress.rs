//! One zlib stream for each direction of a session (SPDY/3.1 §2.6.10.1, RFC 1950).
//!
//! ```text
//! first block   | CMF FLG | dictionary id:32 | deflate data ... 00 00 ff ff |
//! later blocks  | deflate data ... 00 00 ff ff |
//! ```
//!
//! Blocks enter the stream in the order in which they stand on the wire, so a block is compressed when
//! its frame is written, and a frame whose block is compressed is sent.
//!
//! Reading is in [`inflate`](crate::inflate).

use bytes::{BufMut, BytesMut};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush};

use crate::dictionary::{dictionary, dictionary_id};
use crate::header_block::HeaderBlock;
use crate::masked::Masked;
use crate::version::Version;

pub use crate::inflate::{Inflated, Inflater};

/// Window of what we write: 2 KiB, which sees all of the dictionary at the start.
const WINDOW_BITS: i32 = 11;

/// zlib's measure of memory for what is not the window: 2^12 pending symbols, and hash tables to fit.
const MEM_LEVEL: i32 = 6;

/// How header blocks are written. A reader never notices.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Compression {
    /// Our own encoder: secrets (the values of cookie, set-cookie, authorization and
    /// proxy-authorization) are never matched, so lengths say nothing about them. The default.
    #[default]
    Masked,
    /// Plain zlib, level 0 (stored) to 9 (and 9 for anything above). Above 0 secrets share a history
    /// with everything else: only where one party writes all headers.
    Zlib(u8),
}

/// Writes header blocks, in the order in which they go on the wire.
///
/// [`Compression::Masked`] holds some 9 KiB; [`Compression::Zlib`] some 170 KiB at any level, since
/// zlib-rs has hash tables of one size. Neither allocates for a block of usual size.
pub struct Deflater {
    version: Version,
    compression: Compression,
    encoder: Encoder,
    begun: bool,
}

enum Encoder {
    Masked(Masked),
    Zlib { zlib: Box<Deflate>, plain: BytesMut },
}

impl std::fmt::Debug for Deflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            version,
            compression,
            begun,
            ..
        } = self;
        f.debug_struct("Deflater")
            .field("version", version)
            .field("compression", compression)
            .field("begun", begun)
            .finish_non_exhaustive()
    }
}

impl Deflater {
    /// For the blocks of one direction of a session of `version`.
    #[must_use]
    pub fn new(version: Version, compression: Compression) -> Self {
        let encoder = match compression {
            Compression::Masked => Encoder::Masked(Masked::new(version)),
            Compression::Zlib(level) => {
                let mut zlib = Box::new(Deflate::new_with_config(DeflateConfig {
                    level: i32::from(level.min(9)),
                    // Negative: without the wrapper, whose checksum nobody ever gets.
                    window_bits: -WINDOW_BITS,
                    mem_level: MEM_LEVEL,
                    ..DeflateConfig::default()
                }));
                if zlib.set_dictionary(dictionary(version)).is_err() {
                    unreachable!("a fresh raw deflater takes any dictionary");
                }
                Encoder::Zlib {
                    zlib,
                    plain: BytesMut::new(),
                }
            }
        };
        Self {
            version,
            compression,
            encoder,
            begun: false,
        }
    }

    /// Compressed bytes of `headers`, ended by a sync flush, appended to `out`; returns the plain length
    /// in bytes.
    ///
    /// # Panics
    ///
    /// If a name or value is too long for the version; see
    /// [`HeaderBlock::check`](crate::header_block::HeaderBlock::check).
    pub fn deflate(&mut self, headers: &HeaderBlock, out: &mut BytesMut) -> usize {
        if !self.begun {
            self.begun = true;
            out.put_u16(zlib_head(self.compression));
            out.put_u32(dictionary_id(self.version));
        }
        match &mut self.encoder {
            Encoder::Masked(masked) => masked.deflate(headers, out),
            Encoder::Zlib { zlib, plain } => {
                plain.clear();
                headers.encode(self.version, plain);
                zlib_deflate(zlib, plain, out);
                plain.len()
            }
        }
    }
}

/// CMF and FLG: deflate, a window of 11 bits, a preset dictionary, and how hard we try (RFC 1950 §2.2).
const fn zlib_head(compression: Compression) -> u16 {
    let effort = match compression {
        Compression::Zlib(0 | 1) => 0,
        Compression::Zlib(2..=5) => 1,
        Compression::Zlib(6) | Compression::Masked => 2,
        Compression::Zlib(_) => 3,
    };
    let head = ((WINDOW_BITS as u16 - 8) << 4 | 8) << 8 | effort << 6 | 0x20;
    head + (31 - head % 31) // FCHECK: the whole is a multiple of 31
}

/// Compresses all of `plain`, with a sync flush behind it.
fn zlib_deflate(zlib: &mut Deflate, mut plain: &[u8], out: &mut BytesMut) {
    /// Room for the ends of a block, so that a second round is rare.
    const ENDS: usize = 32;
    loop {
        let begin = out.len();
        let room = plain.len() + plain.len() / 8 + ENDS;
        out.resize(begin + room, 0);
        let (in_before, out_before) = (zlib.total_in(), zlib.total_out());
        if let Err(error) = zlib.compress(plain, &mut out[begin..], DeflateFlush::SyncFlush) {
            unreachable!("deflate fails with {error:?} on {} bytes", plain.len());
        }
        let produced = (zlib.total_out() - out_before) as usize;
        out.truncate(begin + produced);
        plain = &plain[(zlib.total_in() - in_before) as usize..];
        // A flush that ends exactly with the room may not be over.
        if plain.is_empty() && produced < room {
            return;
        }
    }
}
