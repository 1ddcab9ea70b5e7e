//! GOAWAY: the sender accepts no new streams (SPDY/3.1 §2.6.6).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 7     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! | flags=0 |        length = 8         |   8 + 24 bits; length 4 in SPDY/2
//! +-+-------+---------------------------+
//! |X|        last-good-stream-id        |   31 bits
//! +-+-----------------------------------+
//! |               status                |   32 bits, not in SPDY/2
//! +-------------------------------------+
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::status::GoAwayStatus;
use crate::stream_id::StreamId;
use crate::version::Version;

/// The first draft of SPDY/3 prints 11 for INTERNAL_ERROR, copied from the list of RST_STREAM.
const DRAFT_INTERNAL_ERROR: u32 = 11;

/// The sender accepts no new streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GoAway {
    /// The highest stream of the receiver that the sender acted on; 0 if none.
    pub last_good: StreamId,
    /// Why. `None` in SPDY/2; written as OK if `None` elsewhere.
    pub status: Option<GoAwayStatus>,
}

impl GoAway {
    const LEN_V2: usize = 4;
    const LEN_V3: usize = 8;

    /// Checks what is known from the head alone.
    ///
    /// In SPDY/2 a length of 8 passes as well: node-spdy writes a status there too.
    pub(crate) fn check(version: Version, head: ControlHead) -> Result<(), FrameError> {
        match version {
            Version::V2 if head.len == Self::LEN_V3 => Ok(()),
            Version::V2 => head.expect_len(Kind::GoAway, Self::LEN_V2),
            Version::V3 | Version::V31 => head.expect_len(Kind::GoAway, Self::LEN_V3),
        }
    }

    /// Reads the payload, 4 or 8 bytes.
    pub(crate) fn decode(mut payload: Bytes) -> Self {
        let last_good = StreamId::new(payload.get_u32());
        let status = payload.try_get_u32().ok().map(|status| match status {
            DRAFT_INTERNAL_ERROR => GoAwayStatus::INTERNAL_ERROR,
            status => GoAwayStatus(status),
        });
        Self { last_good, status }
    }

    /// Appends the whole frame to `out`: 16 bytes, 12 in SPDY/2.
    pub fn encode(self, version: Version, out: &mut BytesMut) {
        let len = match version {
            Version::V2 => Self::LEN_V2,
            Version::V3 | Version::V31 => Self::LEN_V3,
        };
        ControlHead::new(version, Kind::GoAway, 0, len).encode(out);
        out.put_u32(self.last_good.value());
        if len == Self::LEN_V3 {
            out.put_u32(self.status.unwrap_or(GoAwayStatus::OK).0);
        }
    }
}
