//! Decodes both directions of a SPDY session, frame by frame, as an observer.
//!
//! ```text
//! bytes ─▶ Head ─┬─ DATA: payload is counted, never stored ───────────┐
//!                └─ control: whole, through the Decoder ─ Inflater ─┴─▶ FrameRecord ─▶ TimeLine
//! ```
//!
//! Missing bytes inside a DATA payload do no harm. Elsewhere the next head cannot be found, and the direction ends there. A capture
//! that begins inside a session lacks the beginning of the compression: its frames are decoded, their headers are not.

use bytes::{Buf, Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::data::Data;
use spdy_frame::decoder::{self, Decoder};
use spdy_frame::error::FrameError;
use spdy_frame::frame::Frame;
use spdy_frame::head::{FLAG_FIN, HEAD_LEN, Head};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::inflate::Inflater;
use spdy_frame::kind::Kind;
use spdy_frame::version::Version;

use crate::direction::Direction;
use crate::event::{EventKind, FrameRecord, SessionInfo};
use crate::finding::Finding;
use crate::limits::Limits;
use crate::timeline::{Summary, TimeLine};

#[derive(Debug)]
pub(crate) struct Session {
    halves: [Half; 2],
    time_line: TimeLine,
    payload_shown_bytes: usize,
}

#[derive(Debug)]
struct Half {
    version: Version,
    decoder: Decoder,
    /// Or the reason why headers cannot be decoded any more.
    inflater: Result<Inflater, String>,
    input: BytesMut,
    /// Offset of the first byte of `input`.
    offset: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Head,
    Data {
        seen: DataProgress,
        remaining: usize,
    },
    Control {
        offset: u64,
        len_bytes: usize,
        remaining: usize,
        bytes: BytesMut,
    },
    Lost,
}

#[derive(Debug)]
struct DataProgress {
    head: spdy_frame::head::DataHead,
    offset: u64,
    shown: BytesMut,
    missing: usize,
}

/// DATA's flag for compressed payloads (SPDY/2 and 3), which is never used.
const FLAG_COMPRESS: u8 = 0x02;

impl Session {
    /// `wire` is the version for decoding; `begun` is the known data of the session.
    pub(crate) fn new(
        wire: Version,
        begun: SessionInfo,
        timed: bool,
        at: Instant,
        limits: &Limits,
    ) -> Self {
        let half = || Half {
            version: wire,
            decoder: Decoder::new(wire, decoder::Limits::default()),
            inflater: Ok(Inflater::new(wire, BlockLimits::default())),
            input: BytesMut::new(),
            offset: 0,
            state: State::Head,
        };
        Self {
            halves: [half(), half()],
            time_line: TimeLine::new(begun, wire, timed, at, limits),
            payload_shown_bytes: limits.payload_shown_bytes,
        }
    }

    pub(crate) fn push(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        out: &mut Vec<(Instant, EventKind)>,
    ) {
        let half = &mut self.halves[direction.index()];
        if matches!(half.state, State::Lost) {
            return;
        }
        half.input.extend_from_slice(bytes);
        loop {
            let half = &mut self.halves[direction.index()];
            match half.step(at, direction, self.payload_shown_bytes) {
                Ok(Some(seen)) => {
                    self.time_line.frame(at, &seen);
                    out.push((at, EventKind::Frame(Box::new(seen))));
                }
                Ok(None) => return,
                Err(DirectionEnd(finding)) => {
                    half.lose();
                    out.push((at, EventKind::Unreadable(finding.to_string())));
                    self.time_line.add_finding(finding);
                    return;
                }
            }
        }
    }

    /// Handles `len` bytes that are not in the capture.
    pub(crate) fn gap(
        &mut self,
        at: Instant,
        direction: Direction,
        len: u64,
        out: &mut Vec<(Instant, EventKind)>,
    ) {
        let half = &mut self.halves[direction.index()];
        let whole = usize::try_from(len).unwrap_or(usize::MAX);
        let harmless = match &mut half.state {
            State::Lost => return,
            State::Data { seen, remaining } if whole <= *remaining => {
                seen.missing += whole;
                *remaining -= whole;
                true
            }
            _ => false,
        };
        let finding = Finding::Gap {
            at,
            direction,
            offset: half.offset + half.input.len() as u64,
            len,
            harmless,
        };
        out.push((at, EventKind::Unreadable(finding.to_string())));
        self.time_line.add_finding(finding);
        if harmless {
            half.offset += len;
            self.push(at, direction, &[], out);
        } else {
            half.lose();
        }
    }

    /// Ends the session; `whole` if the connection ended rather than the capture.
    pub(crate) fn finish(mut self, at: Instant, whole: bool) -> Summary {
        for direction in Direction::BOTH {
            let half = &self.halves[direction.index()];
            let inside = match &half.state {
                State::Lost => false,
                State::Head => !half.input.is_empty(),
                State::Data { .. } | State::Control { .. } => true,
            };
            if inside {
                let offset = half.offset + half.input.len() as u64;
                self.time_line
                    .add_finding(Finding::CutInFrame { direction, offset });
            }
        }
        self.time_line.finish(at, whole)
    }
}

/// The finding that ends a direction.
struct DirectionEnd(Finding);

impl Half {
    fn lose(&mut self) {
        self.state = State::Lost;
        self.input = BytesMut::new();
    }

    fn take(&mut self, len: usize) -> BytesMut {
        self.offset += len as u64;
        self.input.split_to(len)
    }

    fn fault(
        &self,
        at: Instant,
        direction: Direction,
        offset: u64,
        error: &FrameError,
    ) -> DirectionEnd {
        DirectionEnd(Finding::Fault {
            at,
            direction,
            offset,
            reason: error.to_string(),
        })
    }

    fn step(
        &mut self,
        at: Instant,
        direction: Direction,
        shown_limit: usize,
    ) -> Result<Option<FrameRecord>, DirectionEnd> {
        loop {
            match &mut self.state {
                State::Lost => return Ok(None),
                State::Head => {
                    let Some(&head) = self.input.first_chunk::<HEAD_LEN>() else {
                        return Ok(None);
                    };
                    let offset = self.offset;
                    self.state = match Head::decode(head) {
                        Head::Data(head) => {
                            if head.stream_id.is_zero() {
                                let error = FrameError::StreamZero { kind: Kind::Data };
                                return Err(self.fault(at, direction, offset, &error));
                            }
                            self.take(HEAD_LEN);
                            State::Data {
                                remaining: head.len,
                                seen: DataProgress {
                                    head,
                                    offset,
                                    shown: BytesMut::new(),
                                    missing: 0,
                                },
                            }
                        }
                        Head::Control(head) => State::Control {
                            offset,
                            len_bytes: head.len,
                            remaining: HEAD_LEN + head.len,
                            bytes: BytesMut::new(),
                        },
                    };
                }
                State::Data { seen, remaining } => {
                    let piece = (*remaining).min(self.input.len());
                    let shown = piece.min(shown_limit.saturating_sub(seen.shown.len()));
                    seen.shown.extend_from_slice(&self.input[..shown]);
                    *remaining -= piece;
                    self.input.advance(piece);
                    self.offset += piece as u64;
                    if *remaining > 0 {
                        return Ok(None);
                    }
                    let State::Data { seen, .. } = std::mem::replace(&mut self.state, State::Head)
                    else {
                        unreachable!("the state is DATA")
                    };
                    return Ok(Some(seen.finish(direction, self.version)));
                }
                State::Control {
                    offset,
                    len_bytes,
                    remaining,
                    bytes,
                } => {
                    let (offset, len_bytes) = (*offset, *len_bytes);
                    let piece = (*remaining).min(self.input.len());
                    *remaining -= piece;
                    let done = *remaining == 0;
                    bytes.extend_from_slice(&self.input[..piece]);
                    self.input.advance(piece);
                    self.offset += piece as u64;
                    let decoded = self.decoder.decode(bytes);
                    let frame = match decoded {
                        Ok(frame) => frame,
                        Err(error) => return Err(self.fault(at, direction, offset, &error)),
                    };
                    // A skipped frame is reported at its head: the decoder must still receive its payload, or it would skip as many
                    // bytes of the next frame.
                    if done && !bytes.is_empty() && !matches!(self.decoder.decode(bytes), Ok(None))
                    {
                        unreachable!("expected one frame at {offset}, found two")
                    }
                    if done {
                        self.state = State::Head;
                    }
                    match frame {
                        Some(frame) => {
                            return Ok(Some(self.control(direction, offset, len_bytes, frame)));
                        }
                        None if done => {}
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    fn control(
        &mut self,
        direction: Direction,
        offset: u64,
        len_bytes: usize,
        frame: Frame,
    ) -> FrameRecord {
        let block = match &frame {
            Frame::SynStream(frame) => Some(frame.block.clone()),
            Frame::SynReply(frame) => Some(frame.block.clone()),
            Frame::Headers(frame) => Some(frame.block.clone()),
            _ => None,
        };
        let (headers, plain_bytes) = match block.map(|block| self.inflate(&block)) {
            Some((headers, plain_bytes)) => (Some(headers), plain_bytes),
            None => (None, 0),
        };
        FrameRecord {
            direction,
            version: self.version,
            offset,
            frame,
            len_bytes,
            missing_bytes: 0,
            headers,
            plain_bytes,
        }
    }

    fn inflate(&mut self, block: &Bytes) -> (Result<HeaderBlock, String>, usize) {
        match &mut self.inflater {
            Ok(inflater) => match inflater.inflate(block) {
                Ok(inflated) => {
                    let headers = inflated.headers.map_err(|error| error.to_string());
                    (headers, inflated.plain_bytes)
                }
                Err(error) => {
                    let reason = error.to_string();
                    self.inflater = Err(reason.clone());
                    (Err(reason), 0)
                }
            },
            Err(reason) => (Err(format!("after an earlier error: {reason}")), 0),
        }
    }
}

impl DataProgress {
    fn finish(self, direction: Direction, version: Version) -> FrameRecord {
        let Self {
            head,
            offset,
            shown,
            missing,
        } = self;
        let frame = if head.flags & FLAG_COMPRESS != 0 {
            Frame::CompressedData {
                stream_id: head.stream_id,
                len_bytes: head.len,
            }
        } else {
            Frame::Data(Data {
                stream_id: head.stream_id,
                payload: shown.freeze(),
                fin: head.flags & FLAG_FIN != 0,
            })
        };
        FrameRecord {
            direction,
            version,
            offset,
            frame,
            len_bytes: head.len,
            missing_bytes: missing,
            headers: None,
            plain_bytes: 0,
        }
    }
}
