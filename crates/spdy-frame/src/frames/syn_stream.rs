//! SYN_STREAM: opens a stream (SPDY/3.1 §2.6.1).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 1     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! |  flags  |          length           |   8 + 24 bits; FIN = 0x01, UNIDIRECTIONAL = 0x02
//! +-+-------+---------------------------+
//! |X|             stream-id             |   31 bits
//! +-+-----------------------------------+
//! |X|       associated-to-stream-id     |   31 bits, 0 = none
//! +------+------+---------+-------------+
//! | pri  | unused         | slot        |   pri: 3 bits, 2 in SPDY/2; slot: SPDY/3 only, written 0
//! +------+----------------+-------------+
//! |     header block (compressed) ...   |
//! +-------------------------------------+
//! ```
//!
//! Priority 0 is the most urgent in every version: the spec of SPDY/2 states the opposite, but its implementations do not follow
//! it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::FrameError;
use crate::frames::head::{ControlHead, FLAG_FIN, stream_id};
use crate::frames::kind::Kind;
use crate::priority::Priority;
use crate::stream_id::StreamId;
use crate::version::Version;

const FLAG_UNIDIRECTIONAL: u8 = 0x02;

/// Opens a stream, with its header block still compressed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SynStream {
    /// The new stream, never 0.
    pub stream_id: StreamId,
    /// The stream that this one belongs to (a push), or 0.
    pub associated_to: StreamId,
    /// SPDY/2 has four levels: its level n reads as 2n here, and 2n and 2n + 1 are written as n.
    pub priority: Priority,
    /// The sender's half is closed at once.
    pub fin: bool,
    /// The recipient's half is closed from the start.
    pub unidirectional: bool,
    /// The compressed header block. All blocks of a direction must be inflated, in order.
    pub block: Bytes,
}

impl SynStream {
    /// Payload bytes before the block.
    pub const FIXED_LEN: usize = 10;

    /// Checks what is known from the head alone. Flags without a meaning are ignored.
    pub(crate) fn check(head: ControlHead) -> Result<(), FrameError> {
        head.expect_at_least(Kind::SynStream, Self::FIXED_LEN)
    }

    /// Reads the payload that followed `head`, at least [`FIXED_LEN`](Self::FIXED_LEN) bytes.
    pub(crate) fn decode(
        version: Version,
        head: ControlHead,
        mut payload: Bytes,
    ) -> Result<Self, FrameError> {
        let stream_id = stream_id(payload.get_u32().to_be_bytes(), Kind::SynStream)?;
        let associated_to = StreamId::new(payload.get_u32());
        let level = payload.get_u8() >> 5;
        payload.advance(1);
        Ok(Self {
            stream_id,
            associated_to,
            priority: Priority::new(match version {
                Version::V2 => level & !1,
                Version::V3 | Version::V31 => level,
            }),
            fin: head.fin(),
            unidirectional: head.flags & FLAG_UNIDIRECTIONAL != 0,
            block: payload,
        })
    }

    /// Appends the whole frame to `out`.
    ///
    /// # Panics
    ///
    /// If the frame is longer than a head can announce.
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        let fin = if self.fin { FLAG_FIN } else { 0 };
        let flags = fin
            | if self.unidirectional {
                FLAG_UNIDIRECTIONAL
            } else {
                0
            };
        let len = Self::FIXED_LEN + self.block.len();
        ControlHead::new(version, Kind::SynStream, flags, len).encode(out);
        out.put_u32(self.stream_id.value());
        out.put_u32(self.associated_to.value());
        let bits = match version {
            Version::V2 => 2,
            Version::V3 | Version::V31 => 3,
        };
        out.put_slice(&[self.priority.field(version) << (8 - bits), 0]);
        out.extend_from_slice(&self.block);
    }
}
