//! Reading header blocks: one zlib stream for each direction (SPDY/3.1 §2.6.10.1, RFC 1950).
//!
//! ```text
//! first block   | CMF FLG | dictionary id:32 | deflate data ... |
//! later blocks  | deflate data ... |                              no end, no checksum, ever
//! ```
//!
//! A block ends at the end of its frame, not at the marker that most encoders write. An encoder that flushes in another
//! way leaves up to seven bits for the next block; the inflater keeps them.
//!
//! A stream of zlib-rs uses 47 KiB, and most sessions receive few headers and then wait. So the inflaters of a thread share one
//! stream of zlib-rs while they have received little: each block restarts it, with the text received before as its dictionary.

use std::cell::Cell;

use bytes::{Bytes, BytesMut};
use zlib_rs::{Inflate, InflateFlush, Status};

use crate::blocks::header_block::{BlockLimits, HeaderBlock};
use crate::compression::dictionary::{dictionary, dictionary_id};
use crate::error::{BlockError, InflateError};
use crate::version::Version;

/// Size of the buffer into which zlib inflates, bytes. Most blocks fit into it.
const CHUNK_BYTES: usize = 1024;

/// The minimum and the maximum window of a peer, as powers of two (bytes). Deflate has no larger window. A smaller value is
/// raised to the minimum, which contains the whole dictionary.
const WINDOW_BITS: (u8, u8) = (11, 15);

/// An inflater uses the shared stream up to this sum of dictionary and plain bytes: about six requests. They are copied for each
/// block.
const SHARED_BYTES: usize = 4096;

/// The end of a sync flush: the length of a stored block that is empty, and its complement.
const SYNC_MARK: [u8; 4] = [0, 0, 0xff, 0xff];

thread_local! {
    static SHARED: Cell<Option<Box<Inflate>>> = const { Cell::new(None) };
}

/// Reads header blocks. Every block of the direction must be inflated here, even if its stream is rejected.
///
/// It stores the dictionary and the plain bytes so far, up to 4 KiB. If a block does not end with a sync flush, or if more was
/// received and the peer's window is larger than 2 KiB, it uses 47 KiB: 32 KiB of window, and tables of zlib-rs.
pub struct Inflater {
    version: Version,
    limits: BlockLimits,
    stream: Stream,
    /// A final block ended the stream, which no encoder should write.
    ended: bool,
}

/// The zlib stream between two blocks.
enum Stream {
    /// Before the first block that has bytes.
    New,
    /// After a sync flush. The next blocks depend only on this text.
    Text(Text),
    Zlib(Box<Inflate>),
}

/// The last part of the dictionary and the received text.
struct Text {
    bytes: Vec<u8>,
    window_bits: u8,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            version,
            limits,
            stream,
            ended,
        } = self;
        f.debug_struct("Inflater")
            .field("version", version)
            .field("limits", limits)
            .field("begun", &!matches!(stream, Stream::New))
            .field("ended", ended)
            .finish_non_exhaustive()
    }
}

/// The content of one block.
#[derive(Debug)]
pub struct InflatedBlock {
    /// The headers, or why they are invalid. The compression context is valid in both cases.
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
            stream: Stream::New,
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
        if matches!(self.stream, Stream::New) {
            let window_bits;
            (window_bits, input) = check_zlib_head(self.version, input)?;
            self.stream = Stream::Text(Text {
                bytes: dictionary(self.version).to_vec(),
                window_bits,
            });
        }
        let mut plain = Plain::new();
        let result = match &mut self.stream {
            Stream::Zlib(zlib) => plain.read(zlib, input, InflateFlush::SyncFlush, &self.limits),
            Stream::Text(text) => {
                let shared = SHARED.take();
                let mut shared =
                    shared.unwrap_or_else(|| Box::new(Inflate::new(false, WINDOW_BITS.1)));
                shared.reset(false);
                begin_after(&text.bytes, &mut shared);
                let is_flushed = read_flushed(&mut shared, input, &self.limits, &mut plain);
                SHARED.set(Some(shared));
                if is_flushed {
                    if !text.append(&plain) {
                        self.stream = Stream::Zlib(text.stream());
                    }
                    Ok(false)
                } else {
                    let mut zlib = text.stream();
                    plain = Plain::new();
                    let result =
                        plain.read(&mut zlib, input, InflateFlush::SyncFlush, &self.limits);
                    self.stream = Stream::Zlib(zlib);
                    result
                }
            }
            Stream::New => unreachable!("the stream was begun"),
        };
        // After a final block there is at most its checksum. This block is complete; the next one ends the session.
        self.ended = result?;
        Ok(InflatedBlock {
            plain_bytes: plain.bytes,
            headers: plain.headers(self.version, &self.limits),
        })
    }
}

impl Text {
    /// Adds the plain bytes of a block. Returns `false` if the text is now too long to be copied for each block.
    fn append(&mut self, plain: &Plain) -> bool {
        self.bytes.reserve_exact(plain.bytes);
        self.bytes.extend_from_slice(&plain.longer);
        self.bytes.extend_from_slice(&plain.chunk[..plain.len]);
        let window = 1 << self.window_bits;
        if self.bytes.len() > SHARED_BYTES && window <= SHARED_BYTES / 2 {
            self.bytes.drain(..self.bytes.len() - window);
            self.bytes.shrink_to_fit();
        }
        self.bytes.len() <= SHARED_BYTES
    }

    /// Creates a stream that continues after this text.
    fn stream(&self) -> Box<Inflate> {
        let mut zlib = Box::new(Inflate::new(false, self.window_bits));
        begin_after(&self.bytes, &mut zlib);
        zlib
    }
}

/// Starts raw inflate after `text`. There is no zlib wrapper, because the stream never ends and its checksum would never be
/// checked.
fn begin_after(text: &[u8], zlib: &mut Inflate) {
    if zlib.set_dictionary(text).is_err() {
        unreachable!("a raw inflater accepts any dictionary");
    }
}

/// Reads a block into `plain` if it ends with a sync flush. Returns `false` if it does not, is invalid, or is too long to keep.
fn read_flushed(zlib: &mut Inflate, block: &[u8], limits: &BlockLimits, plain: &mut Plain) -> bool {
    let Some(begin) = block.strip_suffix(&SYNC_MARK) else {
        return false;
    };
    // An error is found again when the block is read as a whole.
    plain.read(zlib, begin, InflateFlush::Block, limits) == Ok(false)
        && plain.longer.len() + plain.len == plain.bytes
        && ends_deflate_block(zlib)
}

/// Whether the mark of a sync flush ends a deflate block here, with no bits left. zlib must stop after the mark, although there
/// are more bytes, and then read these bytes as an empty block.
fn ends_deflate_block(zlib: &mut Inflate) -> bool {
    const EMPTY_STORED: [u8; 5] = [0, 0, 0, 0xff, 0xff];
    let mut more = [0; 9];
    more[..4].copy_from_slice(&SYNC_MARK);
    more[4..].copy_from_slice(&EMPTY_STORED);
    // The third input fails if a remaining bit made the second input a final block.
    [(&more[..], 4), (&EMPTY_STORED, 5), (&EMPTY_STORED, 5)]
        .iter()
        .all(|(input, expected)| {
            let before = (zlib.total_in(), zlib.total_out());
            let status = zlib.decompress(input, &mut [0], InflateFlush::Block);
            status == Ok(Status::Ok)
                && (zlib.total_in(), zlib.total_out()) == (before.0 + expected, before.1)
        })
}

/// The plain bytes of a block.
struct Plain {
    /// The last plain bytes.
    chunk: [u8; CHUNK_BYTES],
    len: usize,
    /// The plain bytes before `chunk`: empty unless the block is longer than one chunk.
    longer: BytesMut,
    /// Number of all plain bytes, including dropped ones.
    bytes: usize,
}

impl Plain {
    fn new() -> Self {
        Self {
            chunk: [0; CHUNK_BYTES],
            len: 0,
            longer: BytesMut::new(),
            bytes: 0,
        }
    }

    /// Inflates all of `input`. Returns whether it ended the stream.
    fn read(
        &mut self,
        zlib: &mut Inflate,
        mut input: &[u8],
        flush: InflateFlush,
        limits: &BlockLimits,
    ) -> Result<bool, InflateError> {
        loop {
            let (in_before, out_before) = (zlib.total_in(), zlib.total_out());
            let status = zlib
                .decompress(input, &mut self.chunk[self.len..], flush)
                .map_err(|_| InflateError::Data {
                    inflated: self.bytes,
                })?;
            let consumed = (zlib.total_in() - in_before) as usize;
            let produced = (zlib.total_out() - out_before) as usize;
            input = &input[consumed..];
            self.len += produced;
            self.bytes += produced;
            if self.bytes > limits.inflated_bytes {
                return Err(InflateError::TooLong {
                    limit: limits.inflated_bytes,
                });
            }
            if status == Status::StreamEnd {
                return Ok(true);
            }
            if self.len == CHUNK_BYTES {
                // Past the limit the rest is inflated and dropped, so that the next block can be decoded.
                if self.bytes <= limits.plain_bytes {
                    self.longer.extend_from_slice(&self.chunk);
                }
                self.len = 0;
            } else if input.is_empty() {
                return Ok(false);
            } else if consumed + produced == 0 {
                return Err(InflateError::Data {
                    inflated: self.bytes,
                });
            }
        }
    }

    fn headers(
        &mut self,
        version: Version,
        limits: &BlockLimits,
    ) -> Result<HeaderBlock, BlockError> {
        if self.bytes > limits.plain_bytes {
            let (limit, found) = (limits.plain_bytes, self.bytes);
            return Err(BlockError::TooLong { limit, found });
        }
        if self.longer.is_empty() {
            return HeaderBlock::decode(version, &self.chunk[..self.len], limits);
        }
        self.longer.extend_from_slice(&self.chunk[..self.len]);
        HeaderBlock::decode_shared(version, std::mem::take(&mut self.longer).freeze(), limits)
    }
}

/// Checks the six bytes before the first deflate data, and returns the peer's window and the bytes after them.
fn check_zlib_head(version: Version, block: &[u8]) -> Result<(u8, &[u8]), InflateError> {
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
        || window_bits > WINDOW_BITS.1
        || u16::from_be_bytes([*cmf, *flg]) % 31 != 0
        // Without a dictionary most receivers continue with wrong text; the spec requires one.
        || flg & FDICT == 0
    {
        return Err(head());
    }
    let (expected, found) = (dictionary_id(version), u32::from_be_bytes(*id));
    if found == expected {
        Ok((window_bits.max(WINDOW_BITS.0), rest))
    } else {
        Err(InflateError::Dictionary { expected, found })
    }
}
