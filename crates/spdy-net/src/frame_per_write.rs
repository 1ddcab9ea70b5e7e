//! Passes each frame to the transport in its own write, as Chromium does.
//!
//! ```text
//!   h2, SPDY --preface SETTINGS HEADERS HEADERS--> preface SETTINGS │ HEADERS │ HEADERS ──► TLS: a record for each ──► TCP
//! ```
//!
//! TCP sends each record in its own packet while the congestion window allows it. So a burst of requests fills the initial window of
//! ten packets, and the rest of the burst waits for a round trip.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use spdy::forward_io;
use spdy_net_core::network::BoxIo;
use spdy_net_core::protocol::Protocol;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::negotiate::H2_PREFACE;

/// The longest head of a frame: that of HTTP/2.
const MAX_HEAD_BYTES: usize = 9;
/// The type of HEADERS in HTTP/2 (RFC 9113 §6.2).
const HEADERS: u8 = 1;

/// Wraps `io` so that each frame of `protocol` is one write. HTTP/1.1 has no frames.
pub(crate) fn write_frames_alone(io: BoxIo, protocol: Protocol) -> BoxIo {
    let frames = match protocol {
        Protocol::Http2 => FrameBoundaries::of_http2(),
        Protocol::Spdy(_) => FrameBoundaries::of_spdy(),
        Protocol::Http1 | Protocol::Http3 => return io,
    };
    Box::new(FramePerWrite { io, frames })
}

/// A transport to which each frame is written alone. A vectored write is copied, so that a frame is not divided at a slice.
struct FramePerWrite {
    io: BoxIo,
    /// The frames that were written so far.
    frames: FrameBoundaries,
}

impl AsyncRead for FramePerWrite {
    forward_io!(poll_read => self.io);
}

impl AsyncWrite for FramePerWrite {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let len = self.frames.write_len(bytes);
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, &bytes[..len]))?;
        self.frames.pass(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match slices {
            [bytes] => self.poll_write(cx, bytes),
            _ => {
                let slices: Vec<&[u8]> = slices.iter().map(|slice| &**slice).collect();
                self.poll_write(cx, &slices.concat())
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    forward_io!(poll_flush, poll_shutdown => self.io);
}

/// Finds the ends of frames in a stream of bytes.
#[derive(Clone, Copy, Debug)]
struct FrameBoundaries {
    /// Length of a frame's head, bytes.
    head_bytes: usize,
    /// Where in a head the length of the payload is: 24 bits.
    length_at: usize,
    /// The head of the current frame, as far as it was passed.
    head: [u8; MAX_HEAD_BYTES],
    head_len: usize,
    /// Bytes of its payload that were not passed. Valid once its head is complete.
    payload_left: usize,
    /// True until the first HEADERS of HTTP/2: Chromium writes the frames before it together.
    in_prologue: bool,
}

impl FrameBoundaries {
    fn of_http2() -> Self {
        Self {
            head_bytes: 9, // RFC 9113 §4.1
            length_at: 0,
            head: [0; MAX_HEAD_BYTES],
            // The preface counts as the payload of a frame whose head was passed.
            head_len: 9,
            payload_left: H2_PREFACE.len(),
            in_prologue: true,
        }
    }

    fn of_spdy() -> Self {
        Self {
            head_bytes: 8, // SPDY/3.1 §2.2
            length_at: 5,
            head: [0; MAX_HEAD_BYTES],
            head_len: 0,
            payload_left: 0,
            in_prologue: false,
        }
    }

    /// How many of the next `bytes` are written together.
    fn write_len(mut self, bytes: &[u8]) -> usize {
        let mut len = 0;
        while let Some(frame_len) = self.pass_frame(&bytes[len..]) {
            len += frame_len;
            let may_be_headers = bytes.get(len + 3).is_none_or(|kind| *kind == HEADERS);
            if !self.in_prologue || may_be_headers {
                return len;
            }
        }
        bytes.len()
    }

    /// Passes all of `bytes`.
    fn pass(&mut self, mut bytes: &[u8]) {
        while let Some(frame_len) = self.pass_frame(bytes) {
            bytes = &bytes[frame_len..];
        }
    }

    /// Passes `bytes` up to the end of the current frame, and returns their number. `None` if all were passed and the frame has not
    /// ended.
    fn pass_frame(&mut self, bytes: &[u8]) -> Option<usize> {
        let of_head = bytes.len().min(self.head_bytes - self.head_len);
        if of_head > 0 {
            self.head[self.head_len..][..of_head].copy_from_slice(&bytes[..of_head]);
            self.head_len += of_head;
        }
        if self.head_len < self.head_bytes {
            return None;
        }
        if of_head > 0 {
            self.read_head();
        }
        let of_payload = self.payload_left.min(bytes.len() - of_head);
        self.payload_left -= of_payload;
        if self.payload_left > 0 {
            return None;
        }
        self.head_len = 0;
        Some(of_head + of_payload)
    }

    fn read_head(&mut self) {
        let mut length = [0; 4];
        length[1..].copy_from_slice(&self.head[self.length_at..][..3]);
        self.payload_left = u32::from_be_bytes(length) as usize;
        self.in_prologue &= self.head[3] != HEADERS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lengths of the writes of `bytes`, of which the transport accepts at most `accepted` each.
    fn writes(mut frames: FrameBoundaries, mut bytes: &[u8], accepted: usize) -> Vec<usize> {
        let mut lengths = Vec::new();
        while !bytes.is_empty() {
            let len = frames.write_len(bytes).min(accepted);
            frames.pass(&bytes[..len]);
            bytes = &bytes[len..];
            lengths.push(len);
        }
        lengths
    }

    fn http2_frame(kind: u8, payload_bytes: u8) -> Vec<u8> {
        let head = [0, 0, payload_bytes, kind, 0, 0, 0, 0, 1];
        [&head[..], &vec![HEADERS; payload_bytes.into()]].concat()
    }

    #[test]
    fn each_frame_of_http2_is_written_alone_from_the_first_request_on() {
        const SETTINGS: u8 = 4;
        let frames = [
            http2_frame(SETTINGS, 12),
            http2_frame(HEADERS, 100),
            http2_frame(HEADERS, 0),
            http2_frame(SETTINGS, 0),
        ];
        let bytes = [H2_PREFACE, &frames.concat()].concat();
        let whole = writes(FrameBoundaries::of_http2(), &bytes, usize::MAX);
        assert_eq!(whole, [24 + 21, 109, 9, 9]);
        for accepted in 1..30 {
            let parts = writes(FrameBoundaries::of_http2(), &bytes, accepted);
            let expected: usize = whole.iter().map(|len| len.div_ceil(accepted)).sum();
            assert_eq!(parts.len(), expected, "{accepted} bytes at a time");
        }
    }

    #[test]
    fn each_frame_of_spdy_is_written_alone() {
        let frame = |payload_bytes: u8| {
            let head = [0x80, 3, 0, 1, 0, 0, 0, payload_bytes];
            [&head[..], &vec![0; payload_bytes.into()]].concat()
        };
        let bytes = [frame(20), frame(0), frame(200)].concat();
        let whole = writes(FrameBoundaries::of_spdy(), &bytes, usize::MAX);
        assert_eq!(whole, [28, 8, 208]);
        // The end of the input is no end of a frame.
        assert_eq!(
            writes(FrameBoundaries::of_spdy(), &bytes[..30], 50),
            [28, 2]
        );
    }

    #[test]
    fn input_that_ends_within_a_head_does_not_join_a_request_to_the_prologue() {
        let frames = [http2_frame(4, 12), http2_frame(HEADERS, 100)].concat();
        let bytes = [H2_PREFACE, &frames].concat();
        for of_head in 0..9 {
            let mut boundaries = FrameBoundaries::of_http2();
            let first = &bytes[..24 + 21 + of_head];
            let len = boundaries.write_len(first);
            assert_eq!(len, 24 + 21, "{of_head} bytes of the head");
            boundaries.pass(&first[..len]);
            assert_eq!(boundaries.write_len(&bytes[len..]), 109);
        }
    }
}
