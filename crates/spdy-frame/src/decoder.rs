//! Splits a byte stream into frames. How the bytes are split on arrival makes no difference.
//!
//! ```text
//!            ┌──────── DATA ────▶ Data ── one piece per available input ──┐
//!            │                                                            │
//! Head ──────┼──── control ─────▶ Control ── the whole payload ───────────┼──▶ Head
//!   8 bytes  │                                                            │
//!            └─── to be skipped ▶ Skip ── bytes dropped as they arrive ───┘
//! ```
//!
//! A head is checked when its eighth byte has arrived, so nothing is buffered for a frame that will be rejected, and nothing is
//! read twice.

use bytes::{Buf, BytesMut};

use crate::error::FrameError;
use crate::frames::data::{Data, FLAG_COMPRESS};
use crate::frames::frame::Frame;
use crate::frames::head::{ControlHead, DataHead, FLAG_FIN, HEAD_LEN, Head};
use crate::frames::kind::Kind;
use crate::stream_id::StreamId;
use crate::version::Version;

/// Limits of received frames.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum payload of a control frame, bytes. The specification requires at least 8192 (SPDY/3.1 §2.2.1). Default
    /// 128 KiB, so that a block somewhat larger than the plain limit of 64 KiB ends only its stream, not the session.
    pub control_payload_bytes: usize,
    /// SETTINGS entries that are read in one frame; the rest are ignored. Default 64.
    pub settings_entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            control_payload_bytes: 128 * 1024,
            settings_entries: 64,
        }
    }
}

/// Decodes one direction of one connection.
///
/// Control frames are returned complete. DATA is returned in pieces as its bytes arrive: each piece is a [`Frame::Data`], with
/// `fin` only on the last; a DATA frame of length 0 is one empty piece.
#[derive(Debug)]
pub struct Decoder {
    version: Version,
    limits: Limits,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    /// Between frames.
    Head,
    /// A control frame with an incomplete payload.
    Control { kind: Kind, head: ControlHead },
    /// In a DATA frame with `remaining` bytes to come, never 0.
    Data {
        stream_id: StreamId,
        fin: bool,
        remaining: usize,
    },
    /// In a skipped frame.
    Skip { remaining: usize },
    /// After an error: the start of the next frame is unknown.
    Failed(FrameError),
}

impl Decoder {
    /// For frames of `version`, at the start of a connection.
    #[must_use]
    pub const fn new(version: Version, limits: Limits) -> Self {
        Self {
            version,
            limits,
            state: State::Head,
        }
    }

    /// Takes the next frame, or piece of DATA, off the front of `input`; `None` when more bytes are needed.
    ///
    /// Bytes that remain in `input` must still be there at the next call, followed by the bytes that arrived since. At
    /// most one control frame remains.
    ///
    /// # Errors
    ///
    /// An error after which no frame can be decoded. Later calls return the same error.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let frame = self.step(input);
        if let Err(error) = &frame {
            self.state = State::Failed(error.clone());
        }
        frame
    }

    /// True if the bytes so far end between two frames: the peer has not left a frame incomplete.
    ///
    /// It only covers bytes that were passed to [`decode`](Self::decode), so `input` must be empty.
    #[must_use]
    pub const fn is_between_frames(&self) -> bool {
        matches!(self.state, State::Head)
    }

    /// True if the input so far ends inside a skipped frame, for which no more frames are returned.
    #[must_use]
    pub const fn is_skipping(&self) -> bool {
        matches!(self.state, State::Skip { .. })
    }

    fn step(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        loop {
            match self.state {
                State::Head => {
                    let Some(bytes) = input.first_chunk::<HEAD_LEN>() else {
                        return Ok(None);
                    };
                    let head = Head::decode(*bytes);
                    input.advance(HEAD_LEN);
                    let seen = match head {
                        Head::Data(head) => self.begin_data(head)?,
                        Head::Control(head) => self.begin_control(head)?,
                    };
                    if seen.is_some() {
                        return Ok(seen);
                    }
                }
                State::Control { kind, head } => {
                    if input.len() < head.len {
                        return Ok(None);
                    }
                    self.state = State::Head;
                    return Frame::decode(self.version, kind, head, &self.limits, input).map(Some);
                }
                State::Data {
                    stream_id,
                    fin,
                    remaining,
                } => {
                    let piece = remaining.min(input.len());
                    if piece == 0 {
                        return Ok(None);
                    }
                    let remaining = remaining - piece;
                    self.state = match remaining {
                        0 => State::Head,
                        remaining => State::Data {
                            stream_id,
                            fin,
                            remaining,
                        },
                    };
                    let payload = input.split_to(piece).freeze();
                    return Ok(Some(Frame::Data(Data {
                        stream_id,
                        payload,
                        fin: fin && remaining == 0,
                    })));
                }
                State::Skip { remaining } => {
                    let piece = remaining.min(input.len());
                    input.advance(piece);
                    if piece < remaining {
                        self.state = State::Skip {
                            remaining: remaining - piece,
                        };
                        return Ok(None);
                    }
                    self.state = State::Head;
                }
                State::Failed(ref error) => return Err(error.clone()),
            }
        }
    }

    /// Handles the head of a DATA frame. Returns a frame if it is complete, or will be dropped.
    fn begin_data(&mut self, head: DataHead) -> Result<Option<Frame>, FrameError> {
        let DataHead {
            stream_id,
            flags,
            len,
        } = head;
        if stream_id.is_zero() {
            return Err(FrameError::StreamZero { kind: Kind::Data });
        }
        if flags & FLAG_COMPRESS != 0 {
            if let Some(minor) = head.http1_response() {
                return Err(FrameError::Http1Response { minor });
            }
            self.skip(len);
            return Ok(Some(Frame::CompressedData {
                stream_id,
                len_bytes: len,
            }));
        }
        let fin = flags & FLAG_FIN != 0;
        if len == 0 {
            return Ok(Some(Frame::Data(Data {
                stream_id,
                payload: bytes::Bytes::new(),
                fin,
            })));
        }
        self.state = State::Data {
            stream_id,
            fin,
            remaining: len,
        };
        Ok(None)
    }

    /// Handles the head of a control frame. Returns a frame if it will be dropped.
    fn begin_control(&mut self, head: ControlHead) -> Result<Option<Frame>, FrameError> {
        let kind = head.kind(self.version);
        // A SYN_STREAM of another version may have changed the compression context, which we cannot follow, so the
        // session cannot continue. The RST_STREAM with UNSUPPORTED_VERSION of the spec would hide that.
        if head.version != self.version.wire() {
            let (expected, found) = (self.version.wire(), head.version);
            return Err(FrameError::Version {
                kind,
                expected,
                found,
            });
        }
        if !Frame::check(self.version, kind, head)? {
            self.skip(head.len);
            return Ok(Some(match kind {
                Kind::Noop => Frame::Noop,
                kind => Frame::Skipped {
                    kind,
                    len_bytes: head.len,
                },
            }));
        }
        if head.len > self.limits.control_payload_bytes {
            let (limit, found) = (self.limits.control_payload_bytes, head.len);
            return Err(FrameError::TooLarge { kind, limit, found });
        }
        self.state = State::Control { kind, head };
        Ok(None)
    }

    fn skip(&mut self, remaining: usize) {
        self.state = if remaining == 0 {
            State::Head
        } else {
            State::Skip { remaining }
        };
    }
}
