//! Cuts a byte stream into frames. (Contract)

use bytes::BytesMut;

use crate::error::FrameError;
use crate::frame::Frame;
use crate::version::Version;

/// Limits of what is taken from a peer; `Default` is documented.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Longest control frame payload accepted, bytes (at least 8192 by the text).
    pub control_payload_bytes: usize,
    /// SETTINGS entries looked at in one frame.
    pub settings_entries: usize,
}

/// One direction of one connection.
///
/// Control frames come out whole. DATA comes out in pieces as its bytes arrive: each piece a
/// [`Frame::Data`], `fin` only on the last; a DATA frame of length 0 is one empty piece.
pub struct Decoder { _private: () }

impl Decoder {
    /// For frames of `version`.
    pub fn new(version: Version, limits: Limits) -> Self { let _ = (version, limits); todo!() }

    /// Takes the next frame, or piece of DATA, off the front of `input`; `None` when more bytes are needed.
    ///
    /// # Errors
    /// What no receiver can read past. The decoder is spent then.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, FrameError> { let _ = input; todo!() }
}
