//! The eight bytes before every payload (SPDY/3.1 §2.2).
//!
//! ```text
//! control   |1| version:15 |        type:16        |  flags:8  |           length:24           |
//! data      |0|          stream-id:31              |  flags:8  |           length:24           |
//! byte        0         1          2          3          4         5         6         7
//! ```
//!
//! This file only handles the bytes. The [`Decoder`](crate::decoder::Decoder) checks that a head is allowed, before it waits for
//! any payload.

use bytes::{BufMut, BytesMut};

use crate::error::FrameError;
use crate::frames::kind::Kind;
use crate::stream_id::StreamId;
use crate::version::Version;

/// Bytes of a head, of either kind.
pub const HEAD_LEN: usize = 8;

/// The longest payload a head can announce: 2^24 - 1 bytes.
pub const MAX_PAYLOAD: usize = 0x00ff_ffff;

/// FIN: the last frame of the sender's half (DATA, SYN_STREAM, SYN_REPLY, HEADERS).
pub const FLAG_FIN: u8 = 0x01;

/// The top bit of a head: set on control frames.
const CONTROL: u16 = 0x8000;

/// The head of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Head {
    /// Of DATA.
    Data(DataHead),
    /// Of every other frame.
    Control(ControlHead),
}

/// The head of a DATA frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataHead {
    /// The stream ID. The wire format allows 0, which is not a stream.
    pub stream_id: StreamId,
    /// FIN is 0x01. Other bits are as received.
    pub flags: u8,
    /// Payload bytes, 0 to 2^24 - 1.
    pub len: usize,
}

/// The head of a control frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ControlHead {
    /// The version number, 15 bits: 2, or 3 for SPDY/3 and 3.1.
    pub version: u16,
    /// The type number.
    pub number: u16,
    /// The meaning depends on the type; undefined flags are ignored.
    pub flags: u8,
    /// Payload bytes, 0 to 2^24 - 1.
    pub len: usize,
}

impl Head {
    /// Reads a head. Any eight bytes are a valid head.
    #[must_use]
    pub fn decode(bytes: [u8; HEAD_LEN]) -> Self {
        let [a, b, c, d, flags, e, f, g] = bytes;
        let len = u32::from_be_bytes([0, e, f, g]) as usize;
        let first = u16::from_be_bytes([a, b]);
        if first & CONTROL == 0 {
            let stream_id = StreamId::new(u32::from_be_bytes([a, b, c, d]));
            Self::Data(DataHead {
                stream_id,
                flags,
                len,
            })
        } else {
            let number = u16::from_be_bytes([c, d]);
            Self::Control(ControlHead {
                version: first & !CONTROL,
                number,
                flags,
                len,
            })
        }
    }
}

impl DataHead {
    /// Appends the head, 8 bytes, to `out`.
    ///
    /// # Panics
    ///
    /// If `len` is over [`MAX_PAYLOAD`]: the caller must split its data.
    pub fn encode(self, out: &mut BytesMut) {
        let Self {
            stream_id,
            flags,
            len,
        } = self;
        put_head(out, stream_id.value(), flags, len);
    }
}

impl DataHead {
    /// The minor version, if the head is the beginning of an HTTP/1.x status line: `HTTP/1.1` reads as DATA
    /// with many flags on stream 1,213,486,160.
    pub(crate) fn http1_response(self) -> Option<u8> {
        let [.., major, dot, minor] = u32::try_from(self.len).ok()?.to_be_bytes();
        let is_http1 = self.stream_id.value() == u32::from_be_bytes(*b"HTTP")
            && (self.flags, major, dot) == (b'/', b'1', b'.');
        (is_http1 && matches!(minor, b'0' | b'1')).then(|| minor - b'0')
    }
}

impl ControlHead {
    /// A head of `kind` in `version`.
    ///
    /// # Panics
    ///
    /// If `kind` is DATA, which has a [`DataHead`].
    #[must_use]
    pub fn new(version: Version, kind: Kind, flags: u8, len: usize) -> Self {
        let Some(number) = kind.number() else {
            unreachable!("{kind} is not a control frame")
        };
        Self {
            version: version.wire(),
            number,
            flags,
            len,
        }
    }

    /// The type that the number names in `version`.
    #[must_use]
    pub const fn kind(self, version: Version) -> Kind {
        Kind::from_number(version, self.number)
    }

    /// Appends the head, 8 bytes, to `out`.
    ///
    /// # Panics
    ///
    /// If `len` is over [`MAX_PAYLOAD`].
    pub fn encode(self, out: &mut BytesMut) {
        let Self {
            version,
            number,
            flags,
            len,
        } = self;
        put_head(
            out,
            u32::from(version | CONTROL) << 16 | u32::from(number),
            flags,
            len,
        );
    }

    /// Checks the length of frame types with a fixed length.
    pub(crate) fn expect_len(self, kind: Kind, expected: usize) -> Result<(), FrameError> {
        let found = self.len;
        if found == expected {
            Ok(())
        } else {
            Err(FrameError::Length {
                kind,
                expected,
                found,
            })
        }
    }

    /// Checks the length of frame types with a fixed part before a block.
    pub(crate) fn expect_at_least(self, kind: Kind, expected: usize) -> Result<(), FrameError> {
        let found = self.len;
        if found >= expected {
            Ok(())
        } else {
            Err(FrameError::TooShort {
                kind,
                expected,
                found,
            })
        }
    }

    /// Whether FIN is set.
    pub(crate) const fn fin(self) -> bool {
        self.flags & FLAG_FIN != 0
    }
}

/// Sets the length in the head of `frame`, whose payload was written after its head.
///
/// # Panics
///
/// If `frame` is shorter than a head, or its payload is longer than [`MAX_PAYLOAD`].
pub fn set_payload_len(frame: &mut [u8]) {
    let len = frame.len() - HEAD_LEN;
    assert!(
        len <= MAX_PAYLOAD,
        "frame has {len} bytes, limit {MAX_PAYLOAD}"
    );
    let [_, len @ ..] = (len as u32).to_be_bytes();
    frame[HEAD_LEN - len.len()..HEAD_LEN].copy_from_slice(&len);
}

/// Writes all eight bytes at once, because this is the hottest code of the encoder.
fn put_head(out: &mut BytesMut, first: u32, flags: u8, len: usize) {
    assert!(
        len <= MAX_PAYLOAD,
        "frame has {len} bytes, limit {MAX_PAYLOAD}"
    );
    out.put_u64(u64::from(first) << 32 | u64::from(flags) << 24 | len as u64);
}

/// The stream in the first four bytes of a payload.
pub(crate) fn stream_id(payload: [u8; 4], kind: Kind) -> Result<StreamId, FrameError> {
    let id = StreamId::new(u32::from_be_bytes(payload));
    if id.is_zero() {
        Err(FrameError::StreamZero { kind })
    } else {
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_that_follows_its_head_is_counted() {
        let mut frame = BytesMut::new();
        ControlHead::new(Version::V31, Kind::SynReply, FLAG_FIN, 4).encode(&mut frame);
        frame.put_bytes(b'x', 70_000);
        set_payload_len(&mut frame);

        let expected = ControlHead::new(Version::V31, Kind::SynReply, FLAG_FIN, 70_000);
        let head = frame.first_chunk().expect("a head");
        assert_eq!(Head::decode(*head), Head::Control(expected));
        assert_eq!(frame.len(), HEAD_LEN + 70_000);
    }
}
