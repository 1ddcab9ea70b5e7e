//! Names and values in a header block, uncompressed (SPDY/3.1 §2.6.10). (Contract)

use bytes::{Bytes, BytesMut};

use crate::error::BlockError;
use crate::version::Version;

/// Limits on what one block may hold.
#[derive(Clone, Debug)]
pub struct BlockLimits { pub plain_bytes: usize, pub pairs: usize, pub name_bytes: usize, pub value_bytes: usize }

/// Headers in the order of the wire. A value with several components holds single NULs between them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HeaderBlock { pairs: Vec<(Bytes, Bytes)> }

impl HeaderBlock {
    pub fn new() -> Self { Self::default() }
    /// Appends a pair; a name that is already there gets one more NUL-separated component.
    pub fn push(&mut self, name: impl Into<Bytes>, value: impl Into<Bytes>) { let _ = (name.into(), value.into()); todo!() }
    /// The whole value of `name`.
    pub fn value(&self, name: &str) -> Option<&Bytes> { let _ = name; todo!() }
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> { self.pairs.iter().map(|(n, v)| (n, v)) }
    pub fn len(&self) -> usize { self.pairs.len() }
    pub fn is_empty(&self) -> bool { self.pairs.is_empty() }
    /// Plain bytes of the block in `version`'s layout.
    pub fn encode(&self, version: Version, out: &mut BytesMut) { let _ = (version, out); todo!() }
    /// # Errors
    /// Everything §2.6.10 forbids and everything over `limits`.
    pub fn decode(version: Version, plain: &[u8], limits: &BlockLimits) -> Result<Self, BlockError> { let _ = (version, plain, limits); todo!() }
}
