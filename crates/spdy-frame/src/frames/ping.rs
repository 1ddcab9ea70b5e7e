//! PING: the smallest frame, and the one that measures a round trip (SPDY/3.1 §2.6.5).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 6     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! | flags=0 |        length = 4         |   8 + 24 bits
//! +---------+---------------------------+
//! |                 id                  |   32 bits
//! +-------------------------------------+
//! ```
//!
//! This file knows the bytes only. The session decides which ids a side may open, and which PING
//! answers which.

use bytes::{BufMut, BytesMut};

use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::version::Version;

/// Requests an echo, or is one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ping {
    /// All 32 bits count. Odd ids are the client's, in both directions.
    pub id: u32,
}

impl Ping {
    /// Payload length in bytes; PING has no other.
    pub const LEN: usize = 4;

    /// Checks what is known from the head alone.
    pub(crate) fn check(head: ControlHead) -> Result<(), FrameError> {
        head.expect_len(Kind::Ping, Self::LEN)
    }

    /// Reads the payload.
    pub(crate) fn decode(payload: [u8; 4]) -> Self {
        Self {
            id: u32::from_be_bytes(payload),
        }
    }

    /// Appends the whole frame, 12 bytes, to `out`.
    pub fn encode(self, version: Version, out: &mut BytesMut) {
        ControlHead::new(version, Kind::Ping, 0, Self::LEN).encode(out);
        out.put_u32(self.id);
    }
}
