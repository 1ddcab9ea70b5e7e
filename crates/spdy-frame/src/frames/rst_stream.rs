//! RST_STREAM: ends a stream at once (SPDY/3.1 §2.6.3).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 3     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! | flags=0 |        length = 8         |   8 + 24 bits
//! +-+-------+---------------------------+
//! |X|             stream-id             |   31 bits
//! +-+-----------------------------------+
//! |               status                |   32 bits
//! +-------------------------------------+
//! ```
//!
//! Any status is decoded unchanged: an RST_STREAM with an unknown code still ends its stream.

use bytes::{BufMut, BytesMut};

use crate::error::FrameError;
use crate::frames::head::{ControlHead, stream_id};
use crate::frames::kind::Kind;
use crate::status::RstStatus;
use crate::stream_id::StreamId;
use crate::version::Version;

/// Ends a stream at once, in both directions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RstStream {
    /// The stream, never 0.
    pub stream_id: StreamId,
    /// Why.
    pub status: RstStatus,
}

impl RstStream {
    /// Payload length in bytes; RST_STREAM has no other.
    pub const LEN: usize = 8;

    /// Checks what is known from the head alone.
    pub(crate) fn check(head: ControlHead) -> Result<(), FrameError> {
        head.expect_len(Kind::RstStream, Self::LEN)
    }

    /// Reads the payload.
    pub(crate) fn decode([a, b, c, d, e, f, g, h]: [u8; 8]) -> Result<Self, FrameError> {
        let stream_id = stream_id([a, b, c, d], Kind::RstStream)?;
        Ok(Self {
            stream_id,
            status: RstStatus(u32::from_be_bytes([e, f, g, h])),
        })
    }

    /// Appends the whole frame, 16 bytes, to `out`.
    ///
    /// SPDY/2 ends its list at FLOW_CONTROL_ERROR, 7: higher codes are written as PROTOCOL_ERROR there.
    pub fn encode(self, version: Version, out: &mut BytesMut) {
        ControlHead::new(version, Kind::RstStream, 0, Self::LEN).encode(out);
        out.put_u32(self.stream_id.value());
        let status = match version {
            Version::V2 if self.status.0 > RstStatus::FLOW_CONTROL_ERROR.0 => {
                RstStatus::PROTOCOL_ERROR
            }
            _ => self.status,
        };
        out.put_u32(status.0);
    }
}
