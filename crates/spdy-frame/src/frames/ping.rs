//! PING: measures a round trip (SPDY/3.1 §2.6.5).
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
//! This file only knows the bytes. The session decides which IDs a side may use, and matches replies to requests.

use bytes::{BufMut, BytesMut};

use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::version::Version;

/// Requests an echo, or is one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ping {
    /// All 32 bits are used. A PING of the client has an odd ID, and so has its echo.
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
