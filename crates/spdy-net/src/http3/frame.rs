//! The frames of a stream as they arrive: heads and blocks whole and bounded, bodies in pieces (RFC 9114 §7).
//!
//! ```text
//!   type i | length i | payload           i: 1, 2, 4 or 8 bytes, told by the first two bits (RFC 9000 §16)
//! ```
//!
//! The length comes from the peer and can be up to 2^62. A payload that is stored whole has a limit, which is checked
//! before its first byte is stored. DATA is passed on as it comes. Unknown frames are skipped, up to a number of bytes
//! for each stream.

use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use octets::{Octets, OctetsMut, varint_len};
use spdy_session::observe::Direction;

use super::code::Code;
use super::control::Role;
use super::fault::Fault;
use super::floods::FloodBudget;
use super::watch::StreamObserver;

/// The types of frames (RFC 9114 §11.2.1, RFC 9218 §7.2).
pub(super) mod kind {
    pub(crate) const DATA: u64 = 0x0;
    pub(crate) const HEADERS: u64 = 0x1;
    pub(crate) const CANCEL_PUSH: u64 = 0x3;
    pub(crate) const SETTINGS: u64 = 0x4;
    pub(crate) const PUSH_PROMISE: u64 = 0x5;
    pub(crate) const GOAWAY: u64 = 0x7;
    pub(crate) const MAX_PUSH_ID: u64 = 0xd;
    pub(crate) const PRIORITY_UPDATE: u64 = 0xf_0700;
    /// The same for a push.
    pub(crate) const PRIORITY_UPDATE_OF_PUSH: u64 = 0xf_0701;
    /// Types of HTTP/2 that have no like here, and must not be used.
    pub(crate) const HTTP2_ONLY: [u64; 4] = [0x2, 0x6, 0x8, 0x9];
}

/// The longest frame that is taken on a control stream, bytes.
pub(super) const MAX_CONTROL_FRAME_BYTES: u64 = 4 * 1024;
/// Bytes of frames of unknown types that are passed over on one stream; with one more it ends.
pub(super) const MAX_UNKNOWN_BYTES: u64 = 64 * 1024;
/// The most that is taken from QUIC at once, bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// A type and a length of 8 bytes each.
const MAX_HEAD_BYTES: usize = 16;

/// Appends an integer of QUIC's.
pub(super) fn put_varint(out: &mut BytesMut, value: u64) {
    let start = out.len();
    out.resize(start + varint_len(value), 0);
    OctetsMut::with_slice(&mut out[start..])
        .put_varint(value)
        .expect("as long as it said");
}

/// A whole frame.
pub(super) fn frame(kind: u64, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(MAX_HEAD_BYTES + payload.len());
    put_head(&mut out, kind, payload.len());
    out.put_slice(payload);
    out.freeze()
}

/// Appends the head of a frame whose payload has `len_bytes`.
pub(super) fn put_head(out: &mut BytesMut, kind: u64, len_bytes: usize) {
    put_varint(out, kind);
    put_varint(out, len_bytes as u64);
}

/// Where frames arrive, which decides what may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StreamKind {
    /// Requests and responses.
    Request {
        /// This side of the connection.
        role: Role,
        /// The longest HEADERS, bytes.
        max_head_bytes: usize,
    },
    /// Everything about the connection.
    Control,
}

/// What arrived.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum FrameEvent {
    /// A part of a body.
    Data(Bytes),
    /// A header block.
    Headers(Bytes),
    /// Another frame, on a control stream.
    Frame(u64, Bytes),
}

/// What is done with the bytes at hand.
#[derive(Debug)]
enum State {
    /// They are of a frame's head, of which this much came.
    Head(BytesMut),
    /// They are handed on, so many more.
    Data(u64),
    /// They are kept until all came.
    Whole(u64, u64, BytesMut),
    /// They are passed over, so many more.
    Skip(u64),
}

/// Cuts the bytes of one stream into pieces, however they come.
#[derive(Debug)]
pub(super) struct FrameDecoder {
    place: StreamKind,
    state: State,
    /// What came, and is not looked at yet.
    chunk: Bytes,
    unknown_bytes: u64,
    /// A frame has begun: on a control stream the first must be SETTINGS, and no other may be.
    has_begun: bool,
    watch: Option<StreamObserver>,
    /// Where frames that carry nothing are counted.
    floods: Option<FloodBudget>,
}

impl FrameDecoder {
    /// For a stream that is at its beginning.
    pub(super) fn new(place: StreamKind, watch: Option<StreamObserver>) -> Self {
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

    /// More came. What came before must be used up.
    pub(super) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "{} bytes lost", self.chunk.len());
        self.chunk = chunk;
    }

    /// The next piece of what came; `None` if it is used up. Not to be called after an error.
    pub(super) fn next(&mut self) -> Result<Option<FrameEvent>, Fault> {
        while let Some(step) = self.step()? {
            match step {
                Step::Go => {}
                Step::Found(piece) => return Ok(Some(piece)),
            }
        }
        Ok(None)
    }

    /// Whether nothing is at hand, and no frame has begun.
    fn is_between(&self) -> bool {
        self.chunk.is_empty() && self.ended().is_ok()
    }

    /// Uses the chunk a step further; `None` if it is used up.
    fn step(&mut self) -> Result<Option<Step>, Fault> {
        let state = &mut self.state;
        // A frame of no bytes has its payload already.
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

    /// What is done with a frame of this head.
    fn begin(&mut self, kind: u64, len: u64) -> Result<State, Fault> {
        let head = || State::Head(BytesMut::new());
        let unexpected = |what: &str| {
            let why = format!("a frame of type {kind:#x} {what}");
            Err(Fault::Connection(Code::FRAME_UNEXPECTED, why))
        };
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if self.place == StreamKind::Control {
            if is_first && kind != kind::SETTINGS {
                let why = format!(
                    "control stream begins with a frame of type {kind:#x}, expected SETTINGS"
                );
                return Err(Fault::Connection(Code::MISSING_SETTINGS, why));
            }
            if !is_first && kind == kind::SETTINGS {
                return unexpected("after the first, which is SETTINGS");
            }
        }
        if kind::HTTP2_ONLY.contains(&kind) {
            return unexpected("of HTTP/2");
        }
        let carries = match self.place {
            StreamKind::Request { .. } => kind == kind::HEADERS || (kind == kind::DATA && len > 0),
            StreamKind::Control => kind == kind::SETTINGS, // once
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
                    let why = format!("a header block of {len} bytes, want {max_head_bytes}");
                    return Err(Fault::Stream(Code::EXCESSIVE_LOAD, why));
                }
                Ok(State::Whole(kind, len, BytesMut::new()))
            }
            (
                StreamKind::Request {
                    role: Role::Client, ..
                },
                kind::PUSH_PROMISE,
            ) => {
                let why = "PUSH_PROMISE from the server, and no MAX_PUSH_ID was sent".to_owned();
                Err(Fault::Connection(Code::ID_ERROR, why))
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
            ) => unexpected("on a request's stream"),
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
                    let why =
                        format!("a control frame of {len} bytes, want {MAX_CONTROL_FRAME_BYTES}");
                    return Err(Fault::Connection(Code::EXCESSIVE_LOAD, why));
                }
                Ok(State::Whole(kind, len, BytesMut::new()))
            }
            _ => {
                self.unknown_bytes = self.unknown_bytes.saturating_add(len);
                if self.unknown_bytes > MAX_UNKNOWN_BYTES {
                    let why = format!("unknown frames of more than {MAX_UNKNOWN_BYTES} bytes");
                    return Err(Fault::Connection(Code::EXCESSIVE_LOAD, why));
                }
                Ok(match len {
                    0 => head(),
                    len => State::Skip(len),
                })
            }
        }
    }

    /// The stream has ended: between frames, or too early.
    pub(super) fn ended(&self) -> Result<(), Fault> {
        match &self.state {
            State::Head(head) if head.is_empty() => Ok(()),
            _ => {
                let why = "a stream that ends within a frame".to_owned();
                Err(Fault::Connection(Code::FRAME_ERROR, why))
            }
        }
    }
}

/// Reads the frames of one stream.
#[derive(Debug)]
pub(super) struct FrameReader {
    recv: quinn::RecvStream,
    cutter: FrameDecoder,
    is_over: bool,
    /// A fault that was not reported to the reader yet: QUIC reports it once, and then an end.
    pending_fault: Option<Fault>,
    /// The code that the peer gets if the rest is not read.
    stop_code: Code,
}

impl FrameReader {
    /// Reads `recv`. `parting` is the code that the peer gets if it is not read to its end.
    pub(super) fn new(
        recv: quinn::RecvStream,
        place: StreamKind,
        watch: Option<StreamObserver>,
        parting: Code,
    ) -> Self {
        Self {
            recv,
            cutter: FrameDecoder::new(place, watch),
            is_over: false,
            pending_fault: None,
            stop_code: parting,
        }
    }

    /// The same, with frames that carry nothing counted.
    pub(super) fn with_flood_budget(mut self, floods: Option<FloodBudget>) -> Self {
        self.cutter.floods = floods;
        self
    }

    /// The next piece; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Result<Option<FrameEvent>, Fault> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`next`](Self::next). Not to be called after an error.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<FrameEvent>, Fault>> {
        loop {
            if let Some(piece) = self.cutter.next()? {
                return Poll::Ready(Ok(Some(piece)));
            }
            if let Some(fault) = self.pending_fault.take() {
                return Poll::Ready(Err(fault));
            }
            if self.is_over {
                return Poll::Ready(self.cutter.ended().map(|()| None));
            }
            match ready!(pin!(self.recv.read_chunk(CHUNK_BYTES, true)).poll(cx)) {
                Ok(Some(chunk)) => self.cutter.push(chunk.bytes),
                Ok(None) => self.is_over = true,
                Err(error) => {
                    self.is_over = true; // there is nothing left to stop
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    /// Whether nothing follows, as far as is known without waiting.
    pub(super) fn is_at_end(&mut self) -> bool {
        if self.is_over || !self.cutter.is_between() {
            return self.is_over && self.pending_fault.is_none();
        }
        let mut cx = Context::from_waker(Waker::noop());
        let polled = pin!(self.recv.read_chunk(CHUNK_BYTES, true)).poll(&mut cx);
        match polled {
            Poll::Ready(Ok(Some(chunk))) => self.cutter.push(chunk.bytes),
            Poll::Ready(Ok(None)) => self.is_over = true,
            Poll::Ready(Err(error)) => {
                (self.is_over, self.pending_fault) = (true, Some(error.into())); // there is nothing left to stop
            }
            Poll::Pending => {}
        }
        self.is_over && self.pending_fault.is_none()
    }

    /// Sets the code that the peer gets when this is dropped before the end.
    pub(super) fn stop_with(&mut self, code: Code) {
        self.stop_code = code;
    }
}

/// How far a step came.
enum Step {
    /// On.
    Go,
    /// To something that the caller wants.
    Found(FrameEvent),
}

impl Drop for FrameReader {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.recv.stop(self.stop_code.wire()); // of a lost connection there is nothing to stop
        }
    }
}
