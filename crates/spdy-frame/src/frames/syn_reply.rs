//! SYN_REPLY: answers a SYN_STREAM (SPDY/3.1 §2.6.2).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 2     |   16 + 16 bits
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
//!
//! HEADERS has the same layout, so both types use the functions below.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::FrameError;
use crate::frames::head::{ControlHead, FLAG_FIN, stream_id};
use crate::frames::kind::Kind;
use crate::stream_id::StreamId;
use crate::version::Version;

/// Answers a SYN_STREAM, with its header block still compressed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SynReply {
    /// The stream, never 0.
    pub stream_id: StreamId,
    /// The sender's half ends here.
    pub fin: bool,
    /// The compressed header block. All blocks of a direction must be inflated, in order.
    pub block: Bytes,
}

impl SynReply {
    /// Checks what is known from the head alone. Flags without a meaning are ignored.
    pub(crate) fn check(version: Version, head: ControlHead) -> Result<(), FrameError> {
        head.expect_at_least(Kind::SynReply, fixed_len(version))
    }

    /// Reads the payload that followed `head`.
    pub(crate) fn decode(
        version: Version,
        head: ControlHead,
        payload: Bytes,
    ) -> Result<Self, FrameError> {
        let (stream_id, block) = split_payload(version, Kind::SynReply, payload)?;
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
            Kind::SynReply,
            self.stream_id,
            self.fin,
            &self.block,
            out,
        );
    }
}

/// Payload bytes before the block of SYN_REPLY and HEADERS.
pub(crate) const fn fixed_len(version: Version) -> usize {
    match version {
        Version::V2 => 6,
        Version::V3 | Version::V31 => 4,
    }
}

/// The stream and the block in the payload of SYN_REPLY or HEADERS, at least `fixed_len` bytes.
pub(crate) fn split_payload(
    version: Version,
    kind: Kind,
    mut payload: Bytes,
) -> Result<(StreamId, Bytes), FrameError> {
    let id = stream_id(payload.get_u32().to_be_bytes(), kind)?;
    payload.advance(fixed_len(version) - 4);
    Ok((id, payload))
}

/// Appends a SYN_REPLY or HEADERS.
pub(crate) fn join(
    version: Version,
    kind: Kind,
    stream_id: StreamId,
    fin: bool,
    block: &[u8],
    out: &mut BytesMut,
) {
    let flags = if fin { FLAG_FIN } else { 0 };
    let fixed = fixed_len(version);
    ControlHead::new(version, kind, flags, fixed + block.len()).encode(out);
    out.put_u32(stream_id.value());
    out.put_bytes(0, fixed - 4);
    out.extend_from_slice(block);
}
