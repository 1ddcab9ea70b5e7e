//! Parses WebSocket frames of both directions: splits them, unmasks them, and passes payload on at once (RFC 6455 §5.2).
//!
//! ```text
//! client  82 fe 40 00 mask payload ...     FIN and opcode, MASK and length, mask of 32 bits
//! server  82 7e 40 00 payload ...          the same without a mask
//! ```
//!
//! Boundaries of messages do not matter for the SPDY inside, so only the head of a frame is buffered.

use std::io::Cursor;

use bytes::{Buf, BytesMut};
use spdy_clock::Instant;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use crate::direction::Direction;

/// Output of the frames.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WebSocketOutput {
    Bytes(Instant, Direction, BytesMut),
    Gap(Instant, Direction, u64),
    /// The rest of this direction cannot be decoded.
    Lost(Instant, String),
}

/// Both directions of a connection after its 101.
#[derive(Debug, Default)]
pub(crate) struct WebSocket {
    halves: [Half; 2],
}

#[derive(Debug, Default)]
struct Half {
    /// The beginning of a head.
    input: BytesMut,
    payload: Option<Payload>,
    over: bool,
}

/// The rest of a frame's payload.
#[derive(Clone, Copy, Debug)]
struct Payload {
    remaining: u64,
    /// Rotated, so that the part for the next byte is first.
    mask: [u8; 4],
    /// True for a data frame; the payload of PING and similar frames is skipped.
    is_data: bool,
}

impl Payload {
    fn skip(&mut self, len: u64) {
        self.remaining -= len;
        self.mask.rotate_left((len % 4) as usize);
    }
}

impl WebSocket {
    pub(crate) fn push(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        out: &mut Vec<WebSocketOutput>,
    ) {
        let half = &mut self.halves[direction.index()];
        if half.over {
            return;
        }
        half.input.extend_from_slice(bytes);
        loop {
            match half.step() {
                Step::Wait => return,
                Step::Passed => {}
                Step::Data(bytes) => out.push(WebSocketOutput::Bytes(at, direction, bytes)),
                Step::Over => return half.lose(),
                Step::Lost(reason) => {
                    half.lose();
                    return out.push(WebSocketOutput::Lost(at, format!("{direction}: {reason}")));
                }
            }
        }
    }

    pub(crate) fn gap(
        &mut self,
        at: Instant,
        direction: Direction,
        len: u64,
        out: &mut Vec<WebSocketOutput>,
    ) {
        let half = &mut self.halves[direction.index()];
        if half.over {
            return;
        }
        match &mut half.payload {
            Some(payload) if len <= payload.remaining => {
                payload.skip(len);
                if payload.is_data {
                    out.push(WebSocketOutput::Gap(at, direction, len));
                }
            }
            _ => {
                half.lose();
                let reason = format!(
                    "{direction}: {len} bytes are missing, among them a WebSocket frame head"
                );
                out.push(WebSocketOutput::Lost(at, reason));
            }
        }
    }
}

enum Step {
    Wait,
    Data(BytesMut),
    Passed,
    /// A close: nothing follows it.
    Over,
    Lost(String),
}

impl Half {
    fn lose(&mut self) {
        self.over = true;
        self.input = BytesMut::new();
    }

    fn step(&mut self) -> Step {
        if self.input.is_empty() {
            return Step::Wait;
        }
        let Some(payload) = &mut self.payload else {
            return self.head();
        };
        let here = usize::try_from(payload.remaining).unwrap_or(usize::MAX);
        let mut bytes = self.input.split_to(here.min(self.input.len()));
        for (byte, mask) in bytes.iter_mut().zip(payload.mask.iter().cycle()) {
            *byte ^= mask;
        }
        payload.skip(bytes.len() as u64);
        let is_data = payload.is_data;
        if payload.remaining == 0 {
            self.payload = None;
        }
        match is_data {
            true => Step::Data(bytes),
            false => Step::Passed,
        }
    }

    fn head(&mut self) -> Step {
        let mut cursor = Cursor::new(&self.input[..]);
        let (head, len) = match FrameHeader::parse(&mut cursor) {
            Ok(Some(head)) => head,
            Ok(None) => return Step::Wait,
            Err(error) => return Step::Lost(error.to_string()),
        };
        let used = usize::try_from(cursor.position()).unwrap_or(usize::MAX);
        self.input.advance(used.min(self.input.len()));
        if head.rsv1 || head.rsv2 || head.rsv3 {
            return Step::Lost("WebSocket with an extension, possibly compression".to_owned());
        }
        let is_data = match head.opcode {
            OpCode::Data(Data::Binary | Data::Continue) => true,
            OpCode::Data(_) => return Step::Lost("text message, expected binary".to_owned()),
            OpCode::Control(Control::Close) => return Step::Over,
            OpCode::Control(_) => false,
        };
        self.payload = (len > 0).then_some(Payload {
            remaining: len,
            mask: head.mask.unwrap_or_default(),
            is_data,
        });
        Step::Passed
    }
}
