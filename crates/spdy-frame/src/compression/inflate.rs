//! Reading header blocks: one zlib stream for each direction (SPDY/3.1 §2.6.10.1, RFC 1950).
//!
//! ```text
//! first block   | CMF FLG | dictionary id:32 | deflate data ... |
//! later blocks  | deflate data ... |                              no end, no checksum, ever
//! ```
//!
//! The frame's length is where a block ends, not the marker that most writers leave. A writer that
//! flushed otherwise leaves up to seven bits for the next block, which the inflater keeps.

use bytes::{Bytes, BytesMut};
use zlib_rs::{Inflate, InflateFlush, Status};

use crate::blocks::header_block::{BlockLimits, HeaderBlock};
use crate::compression::dictionary::{dictionary, dictionary_id};
use crate::error::{BlockError, InflateError};
use crate::version::Version;

/// Plain bytes that come out of zlib at a time. Most blocks fit into one such piece.
const CHUNK_BYTES: usize = 1024;

/// Window that peers may use; deflate has no larger one.
const WINDOW_BITS: u8 = 15;

/// Reads header blocks. Every block of the direction must pass through here, whatever becomes of its
/// stream.
///
/// Holds some 47 KiB from the first block on: 32 KiB of window, the rest tables of zlib-rs. A block costs
/// three allocations, all for its headers.
pub struct Inflater {
    version: Version,
    limits: BlockLimits,
    /// `None` until the first block that has bytes.
    zlib: Option<Box<Inflate>>,
    /// The stream was ended by a final block, which no writer should do.
    ended: bool,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            version,
            limits,
            zlib,
            ended,
        } = self;
        f.debug_struct("Inflater")
            .field("version", version)
            .field("limits", limits)
            .field("bytes_in", &zlib.as_ref().map_or(0, |zlib| zlib.total_in()))
            .field("ended", ended)
            .finish_non_exhaustive()
    }
}

/// What one block held.
#[derive(Debug)]
pub struct InflatedBlock {
    /// The headers, or why they are none: the context is in step either way.
    pub headers: Result<HeaderBlock, BlockError>,
    /// Plain length, bytes.
    pub plain_bytes: usize,
}

impl Inflater {
    /// For the blocks of one direction of a session of `version`.
    #[must_use]
    pub const fn new(version: Version, limits: BlockLimits) -> Self {
        Self {
            version,
            limits,
            zlib: None,
            ended: false,
        }
    }

    /// Inflates the next block of this direction.
    ///
    /// A block of zero bytes means no headers: Netty writes this where other peers compress a count of 0.
    ///
    /// # Errors
    ///
    /// The compression context is lost: bad zlib data, wrong dictionary, or more plain bytes than the hard limit.
    /// Nothing after it can be decoded.
    pub fn inflate(&mut self, block: &Bytes) -> Result<InflatedBlock, InflateError> {
        if block.is_empty() {
            return Ok(InflatedBlock {
                headers: Ok(HeaderBlock::new()),
                plain_bytes: 0,
            });
        }
        if self.ended {
            return Err(InflateError::Ended);
        }
        let mut input = &block[..];
        let zlib = match &mut self.zlib {
            Some(zlib) => zlib,
            none => {
                input = check_zlib_head(self.version, input)?;
                // Raw deflate without the zlib wrapper: the stream never ends, so its checksum would never be
                // checked.
                let mut zlib = Box::new(Inflate::new(false, WINDOW_BITS));
                if zlib.set_dictionary(dictionary(self.version)).is_err() {
                    unreachable!("a raw inflater accepts any dictionary");
                }
                none.insert(zlib)
            }
        };

        let mut piece = [0; CHUNK_BYTES];
        // Empty unless the block is longer than one piece.
        let mut plain = BytesMut::new();
        let mut plain_bytes = 0;
        loop {
            let (in_before, out_before) = (zlib.total_in(), zlib.total_out());
            let status = zlib
                .decompress(input, &mut piece, InflateFlush::SyncFlush)
                .map_err(|_| InflateError::Data {
                    inflated: plain_bytes,
                })?;
            let consumed = (zlib.total_in() - in_before) as usize;
            let produced = (zlib.total_out() - out_before) as usize;
            input = &input[consumed..];
            plain_bytes += produced;
            if plain_bytes > self.limits.inflated_bytes {
                return Err(InflateError::TooLong {
                    limit: self.limits.inflated_bytes,
                });
            }
            if status == Status::StreamEnd {
                // After a final block there is at most its checksum. This block is complete; the next one ends the
                // session.
                self.ended = true;
                input = &[];
            }
            let done = produced < CHUNK_BYTES || self.ended;
            if done && !input.is_empty() {
                return Err(InflateError::Data {
                    inflated: plain_bytes,
                });
            }
            if done && plain_bytes == produced {
                let headers = HeaderBlock::decode(self.version, &piece[..produced], &self.limits);
                return Ok(InflatedBlock {
                    headers,
                    plain_bytes,
                });
            }
            // Past the limit the rest is inflated and dropped, so that the next block can be decoded.
            if plain_bytes <= self.limits.plain_bytes {
                plain.extend_from_slice(&piece[..produced]);
            }
            if done {
                let headers = if plain_bytes > self.limits.plain_bytes {
                    let (limit, found) = (self.limits.plain_bytes, plain_bytes);
                    Err(BlockError::TooLong { limit, found })
                } else {
                    HeaderBlock::decode_shared(self.version, plain.freeze(), &self.limits)
                };
                return Ok(InflatedBlock {
                    headers,
                    plain_bytes,
                });
            }
        }
    }
}

/// Checks the six bytes before the first deflate data, and returns the bytes after them.
fn check_zlib_head(version: Version, block: &[u8]) -> Result<&[u8], InflateError> {
    const METHOD_DEFLATE: u8 = 8;
    const FDICT: u8 = 0x20;
    let head = || InflateError::Head {
        found: block[..block.len().min(2)].to_vec(),
    };
    let Some(([cmf, flg, id @ ..], rest)) = block.split_first_chunk::<6>() else {
        return Err(head());
    };
    let window_bits = (cmf >> 4) + 8;
    if cmf & 0x0f != METHOD_DEFLATE
        || window_bits > WINDOW_BITS
        || u16::from_be_bytes([*cmf, *flg]) % 31 != 0
        // Without a dictionary most receivers continue with wrong text; the spec requires one.
        || flg & FDICT == 0
    {
        return Err(head());
    }
    let (expected, found) = (dictionary_id(version), u32::from_be_bytes(*id));
    if found == expected {
        Ok(rest)
    } else {
        Err(InflateError::Dictionary { expected, found })
    }
}
