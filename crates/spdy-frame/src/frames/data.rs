//! DATA: the bytes of a stream (SPDY/3.1 §2.2.2).
//!
//! ```text
//! +-+-------------------------------------+
//! |0|              stream-id              |   31 bits
//! +-+---------+---------------------------+
//! |   flags   |          length           |   8 + 24 bits; FIN = 0x01
//! +-----------+---------------------------+
//! |               payload ...             |
//! +---------------------------------------+
//! ```
//!
//! Drafts of SPDY/2 and SPDY/3 gave flag 0x02 to compressed payloads. No peer sent it, and it was removed from the
//! spec. Such a frame is decoded as [`Frame::CompressedData`](crate::frame::Frame), so that the session can reset its
//! stream. Other flags are ignored.

use bytes::{Bytes, BytesMut};

use crate::frames::head::{DataHead, FLAG_FIN};
use crate::stream_id::StreamId;

/// The flag of compressed payloads. Such a payload must not be inflated.
pub(crate) const FLAG_COMPRESS: u8 = 0x02;

/// A DATA frame, or a piece of one: payload is returned as its bytes arrive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data {
    /// The stream, never 0.
    pub stream_id: StreamId,
    /// The bytes, shared with the buffer they arrived in.
    pub payload: Bytes,
    /// The sender's half ends here. When reading, set only on the last piece of a frame.
    pub fin: bool,
}

impl Data {
    /// Appends a whole frame of [`payload`](Self::payload) to `out`.
    ///
    /// # Panics
    ///
    /// If the payload is over [`MAX_PAYLOAD`](crate::head::MAX_PAYLOAD) bytes.
    pub fn encode(&self, out: &mut BytesMut) {
        self.encode_head(out);
        out.extend_from_slice(&self.payload);
    }

    /// Appends only the head, 8 bytes: for a caller that sends the payload without copying it.
    ///
    /// # Panics
    ///
    /// As [`encode`](Self::encode).
    pub fn encode_head(&self, out: &mut BytesMut) {
        let flags = if self.fin { FLAG_FIN } else { 0 };
        DataHead {
            stream_id: self.stream_id,
            flags,
            len: self.payload.len(),
        }
        .encode(out);
    }
}
