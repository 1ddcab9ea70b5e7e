//! WINDOW_UPDATE: gives credit for DATA (SPDY/3.1 §2.6.8).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 9     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! | flags=0 |        length = 8         |   8 + 24 bits
//! +-+-------+---------------------------+
//! |X|             stream-id             |   31 bits; 0 = the session (SPDY/3.1)
//! +-+-----------------------------------+
//! |X|               delta               |   31 bits, bytes
//! +-+-----------------------------------+
//! ```
//!
//! No deployed SPDY/2 has flow control, but node-spdy sends and expects this frame there: a decoder for SPDY/2 skips it, and an
//! encoder can write it. The session interprets a delta of 0.

use bytes::{BufMut, BytesMut};

use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::stream_id::StreamId;
use crate::version::Version;

/// The receiver of DATA can accept more bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowUpdate {
    /// The stream, or 0 for the session.
    pub stream_id: StreamId,
    /// Bytes by which the window grows: 1 to 2^31 - 1. 0 is an error of the sender.
    pub delta: u32,
}

impl WindowUpdate {
    /// Payload length in bytes; WINDOW_UPDATE has no other.
    pub const LEN: usize = 8;
    /// The largest delta.
    pub const MAX_DELTA: u32 = 0x7fff_ffff;

    /// Checks what is known from the head alone.
    pub(crate) fn check(head: ControlHead) -> Result<(), FrameError> {
        head.expect_len(Kind::WindowUpdate, Self::LEN)
    }

    /// Reads the payload; the reserved bits are dropped.
    pub(crate) fn decode([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self {
            stream_id: StreamId::new(u32::from_be_bytes([a, b, c, d])),
            delta: u32::from_be_bytes([e, f, g, h]) & Self::MAX_DELTA,
        }
    }

    /// Appends the whole frame, 16 bytes, to `out`.
    pub fn encode(self, version: Version, out: &mut BytesMut) {
        ControlHead::new(version, Kind::WindowUpdate, 0, Self::LEN).encode(out);
        out.put_u32(self.stream_id.value());
        out.put_u32(self.delta & Self::MAX_DELTA);
    }
}
