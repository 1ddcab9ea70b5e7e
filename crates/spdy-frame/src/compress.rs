//! One zlib stream for each direction of a session (SPDY/3.1 §2.6.10.1). (Contract)

use bytes::{Bytes, BytesMut};

use crate::error::{BlockError, InflateError};
use crate::header_block::{BlockLimits, HeaderBlock};
use crate::version::Version;

/// How header blocks are written. A reader never notices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Compression {
    /// Our own encoder: secrets (cookie, authorization, set-cookie, ...) are never matched (CRIME-safe). The default.
    Masked,
    /// Plain zlib, level 0 (stored) to 9. Above 0 secrets share a history with everything else.
    Zlib(u8),
}

/// Writes header blocks, in the order in which they go on the wire.
pub struct Deflater { _private: () }
impl Deflater {
    pub fn new(version: Version, compression: Compression) -> Self { let _ = (version, compression); todo!() }
    /// Compressed bytes of `headers`, ended by a sync flush, appended to `out`; returns the plain length in bytes.
    pub fn deflate(&mut self, headers: &HeaderBlock, out: &mut BytesMut) -> usize { let _ = (headers, out); todo!() }
}

/// Reads header blocks. Every block of the direction must pass through here, whatever becomes of its stream.
pub struct Inflater { _private: () }

/// What one block held.
#[derive(Debug)]
pub struct Inflated {
    /// The headers, or why they are none: the context is in step either way.
    pub headers: Result<HeaderBlock, BlockError>,
    /// Plain length, bytes.
    pub plain_bytes: usize,
}
impl Inflater {
    pub fn new(version: Version, limits: BlockLimits) -> Self { let _ = (version, limits); todo!() }
    /// # Errors
    /// When the context is lost: bad zlib data, wrong dictionary, more than the hard limit of plain bytes.
    pub fn inflate(&mut self, block: &Bytes) -> Result<Inflated, InflateError> { let _ = block; todo!() }
}
