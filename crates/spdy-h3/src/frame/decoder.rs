//! Decodes the frames of a stream: control frames and header blocks complete and limited, bodies in pieces (RFC 9114 §7).
//!
//! ```text
//!   type i | length i | payload           i: 1, 2, 4 or 8 bytes, by the first two bits (RFC 9000 §16)
//! ```
//!
//! The length is chosen by the peer and can be up to 2^62. A payload that is buffered completely has a limit, which is checked
//! before its first byte is stored. DATA is passed on as it arrives. Unknown frames are skipped, up to a number of bytes for each
//! stream.

use bytes::{Buf, Bytes, BytesMut};
use octets::Octets;
use spdy_session::observe::Direction;

use crate::code::Code;
use crate::fault::Fault;
use crate::flood_budget::FloodBudget;
use crate::frame::encode::MAX_HEAD_BYTES;
use crate::frame::kind;
use crate::role::Role;
use crate::stream_observer::StreamObserver;

/// Maximum frame length on a control stream, bytes.
pub(crate) const MAX_CONTROL_FRAME_BYTES: u64 = 4 * 1024;
/// Limit of skipped bytes of unknown frames on one stream; one more ends the stream.
pub(crate) const MAX_UNKNOWN_BYTES: u64 = 64 * 1024;
/// The type of a stream, which decides the allowed frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StreamKind {
    /// A request stream.
    Request {
        /// This side of the connection.
        role: Role,
        /// Maximum length of HEADERS, bytes.
        max_head_bytes: usize,
    },
    /// A control stream.
    Control,
}

/// A decoded event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum FrameEvent {
    /// A part of a body.
    Data(Bytes),
    /// A header block.
    Headers(Bytes),
    /// Another frame, on a control stream.
    Frame(u64, Bytes),
}

/// How the next bytes are handled.
#[derive(Debug)]
enum State {
    /// Part of a frame's head, of which these bytes have arrived.
    Head(BytesMut),
    /// Passed on: the number of remaining bytes.
    Data(u64),
    /// They are buffered until the payload is complete.
    Whole(u64, u64, BytesMut),
    /// Skipped: the number of remaining bytes.
    Skip(u64),
}

/// Splits the bytes of one stream into events, however they arrive.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    place: StreamKind,
    state: State,
    /// Received bytes that were not processed yet.
    chunk: Bytes,
    unknown_bytes: u64,
    /// True after the first frame. On a control stream, the first frame must be SETTINGS, and no later frame may be.
    has_begun: bool,
    watch: Option<StreamObserver>,
    /// Counts frames that carry nothing.
    pub(super) floods: Option<FloodBudget>,
}

impl FrameDecoder {
    /// A decoder at the start of a stream.
    pub(crate) fn new(place: StreamKind, watch: Option<StreamObserver>) -> Self {
        Self {
            place,
            state: State::Head(BytesMut::new()),
            chunk: Bytes::new(),
            unknown_bytes: 0,
            has_begun: false,
            watch,
            floods: None,
        }
    }

    /// Adds received bytes. Earlier bytes must be used up.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(
            self.chunk.is_empty(),
            "{} unread bytes would be lost",
            self.chunk.len()
        );
        self.chunk = chunk;
    }

    /// The next event; `None` if the bytes are used up. Must not be called after an error.
    pub(crate) fn next(&mut self) -> Result<Option<FrameEvent>, Fault> {
        while let Some(step) = self.step()? {
            match step {
                Step::Go => {}
                Step::Found(piece) => return Ok(Some(piece)),
            }
        }
        Ok(None)
    }

    /// True if no bytes are buffered, and no frame has begun.
    pub(super) fn is_between(&self) -> bool {
        self.chunk.is_empty() && self.ended().is_ok()
    }

    /// Processes a part of the chunk; `None` if it is used up.
    fn step(&mut self) -> Result<Option<Step>, Fault> {
        let state = &mut self.state;
        // A frame without payload is already complete.
        if let State::Whole(kind, left, bytes) = state
            && *left == 0
        {
            let (kind, bytes) = (*kind, std::mem::take(bytes).freeze());
            *state = State::Head(BytesMut::new());
            return Ok(Some(Step::Found(match kind {
                kind::HEADERS => FrameEvent::Headers(bytes),
                other => FrameEvent::Frame(other, bytes),
            })));
        }
        if self.chunk.is_empty() {
            return Ok(None);
        }
        let take = |left: &mut u64, chunk: &mut Bytes| {
            let len = chunk
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= len as u64;
            chunk.split_to(len)
        };
        match state {
            State::Head(head) => {
                let missing = MAX_HEAD_BYTES - head.len();
                let had = head.len();
                head.extend_from_slice(&self.chunk[..missing.min(self.chunk.len())]);
                let mut read = Octets::with_slice(head);
                let (Ok(kind), Ok(len)) = (read.get_varint(), read.get_varint()) else {
                    self.chunk.advance(head.len() - had); // 16 bytes are always enough
                    return Ok(None);
                };
                self.chunk.advance(read.off() - had);
                if let Some(watch) = &self.watch {
                    watch.frame(Direction::Received, kind, len);
                }
                self.state = self.begin(kind, len)?;
            }
            State::Data(left) => {
                let data = take(left, &mut self.chunk);
                if *left == 0 {
                    *state = State::Head(BytesMut::new());
                }
                return Ok(Some(Step::Found(FrameEvent::Data(data))));
            }
            State::Whole(_, left, bytes) => {
                let part = take(left, &mut self.chunk);
                bytes.extend_from_slice(&part);
            }
            State::Skip(left) => {
                take(left, &mut self.chunk);
                if *left == 0 {
                    *state = State::Head(BytesMut::new());
                }
            }
        }
        Ok(Some(Step::Go))
    }

    /// The state after a frame head.
    fn begin(&mut self, kind: u64, len: u64) -> Result<State, Fault> {
        let head = || State::Head(BytesMut::new());
        let unexpected = |what: &str| {
            let reason = format!("unexpected frame of type {kind:#x} {what}");
            Err(Fault::Connection(Code::FRAME_UNEXPECTED, reason))
        };
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if self.place == StreamKind::Control {
            if is_first && kind != kind::SETTINGS {
                let reason = format!(
                    "control stream begins with a frame of type {kind:#x}, expected SETTINGS"
                );
                return Err(Fault::Connection(Code::MISSING_SETTINGS, reason));
            }
            if !is_first && kind == kind::SETTINGS {
                return unexpected("after the first SETTINGS");
            }
        }
        if kind::HTTP2_ONLY.contains(&kind) {
            return unexpected("of HTTP/2");
        }
        let carries = match self.place {
            StreamKind::Request { .. } => kind == kind::HEADERS || (kind == kind::DATA && len > 0),
            StreamKind::Control => kind == kind::SETTINGS, // only once
        };
        if !carries && let Some(floods) = &self.floods {
            floods.empty_frame()?;
        }
        match (self.place, kind) {
            (StreamKind::Request { .. }, kind::DATA) => Ok(match len {
                0 => head(),
                len => State::Data(len),
            }),
            (StreamKind::Request { max_head_bytes, .. }, kind::HEADERS) => {
                if len > max_head_bytes as u64 {
                    let reason = format!("header block has {len} bytes, limit {max_head_bytes}");
                    return Err(Fault::Stream(Code::EXCESSIVE_LOAD, reason));
                }
                Ok(State::Whole(kind, len, BytesMut::new()))
            }
            (
                StreamKind::Request {
                    role: Role::Client, ..
                },
                kind::PUSH_PROMISE,
            ) => {
                let reason = "PUSH_PROMISE from the server, but no MAX_PUSH_ID was sent".to_owned();
                Err(Fault::Connection(Code::ID_ERROR, reason))
            }
            (
                StreamKind::Request { .. },
                kind::CANCEL_PUSH
                | kind::SETTINGS
                | kind::PUSH_PROMISE
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE
                | kind::PRIORITY_UPDATE_OF_PUSH,
            ) => unexpected("on a request stream"),
            (StreamKind::Control, kind::DATA | kind::HEADERS | kind::PUSH_PROMISE) => {
                unexpected("on the control stream")
            }
            (
                StreamKind::Control,
                kind::SETTINGS
                | kind::GOAWAY
                | kind::CANCEL_PUSH
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE
                | kind::PRIORITY_UPDATE_OF_PUSH,
            ) => {
                if len > MAX_CONTROL_FRAME_BYTES {
                    let reason =
                        format!("control frame has {len} bytes, limit {MAX_CONTROL_FRAME_BYTES}");
                    return Err(Fault::Connection(Code::EXCESSIVE_LOAD, reason));
                }
                Ok(State::Whole(kind, len, BytesMut::new()))
            }
            _ => {
                self.unknown_bytes = self.unknown_bytes.saturating_add(len);
                if self.unknown_bytes > MAX_UNKNOWN_BYTES {
                    let reason = format!("unknown frames exceed {MAX_UNKNOWN_BYTES} bytes");
                    return Err(Fault::Connection(Code::EXCESSIVE_LOAD, reason));
                }
                Ok(match len {
                    0 => head(),
                    len => State::Skip(len),
                })
            }
        }
    }

    /// To be called at the end of the stream: fails within a frame.
    pub(crate) fn ended(&self) -> Result<(), Fault> {
        match &self.state {
            State::Head(head) if head.is_empty() => Ok(()),
            _ => {
                let reason = "the stream ended within a frame".to_owned();
                Err(Fault::Connection(Code::FRAME_ERROR, reason))
            }
        }
    }
}

/// The result of a step.
enum Step {
    /// Continue.
    Go,
    /// Return this event to the caller.
    Found(FrameEvent),
}
