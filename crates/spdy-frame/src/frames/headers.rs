//! HEADERS: more headers for an open stream (SPDY/3.1 §2.6.7).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 8     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! |  flags  |          length           |   8 + 24 bits; FIN = 0x01
//! +-+-------+---------------------------+
//! |X|             stream-id             |   31 bits
//! +-+-----------------+-----------------+
//! |      unused       |                     16 bits, SPDY/2 only
//! +-------------------+-----------------+
//! |     header block (compressed) ...   |
//! +-------------------------------------+
//! ```

use bytes::{Bytes, BytesMut};

use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::frames::syn_reply::{fixed_len, join, split_payload};
use crate::stream_id::StreamId;
use crate::version::Version;

/// More headers for a stream, with the block still compressed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Headers {
    /// The stream, never 0.
    pub stream_id: StreamId,
    /// The sender's half ends here.
    pub fin: bool,
    /// The compressed header block. All blocks of a direction must be inflated, in order.
    pub block: Bytes,
}

impl Headers {
    /// Checks what is known from the head alone. Flags without a meaning are ignored.
    pub(crate) fn check(version: Version, head: ControlHead) -> Result<(), FrameError> {
        head.expect_at_least(Kind::Headers, fixed_len(version))
    }

    /// Reads the payload that followed `head`.
    pub(crate) fn decode(
        version: Version,
        head: ControlHead,
        payload: Bytes,
    ) -> Result<Self, FrameError> {
        let (stream_id, block) = split_payload(version, Kind::Headers, payload)?;
        Ok(Self {
            stream_id,
            fin: head.fin(),
            block,
        })
    }

    /// Appends the whole frame to `out`.
    ///
    /// # Panics
    ///
    /// If the frame is longer than a head can announce.
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        join(
            version,
            Kind::Headers,
            self.stream_id,
            self.fin,
            &self.block,
            out,
        );
    }
}
