//! Counts header bytes on the wire, by parsing the bytes themselves.
//!
//! ```text
//! HTTP/1.1   GET / HTTP/1.1 CR LF .. CR LF CR LF | body                head: all up to the blank line
//! HTTP/2     length 24 | type 8 | flags 8 | stream 32 | payload        HEADERS, CONTINUATION: the payload
//! ```
//!
//! `ObservedIo` is below hyper or h2 and passes the bytes to a `ByteObserver`; SPDY has its own counters.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use spdy::forward_io;
use spdy_net_core::header_bytes::HeaderByteCounters;
use spdy_net_core::network::BoxIo;
use spdy_net_core::tap::{ConnectionTap, Http2Frame, MAX_SHOWN_HEAD, TapEvent};
use spdy_session::observe::Direction;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gets every byte in order, separately for each direction.
pub trait ByteObserver: Unpin {
    /// Called for these bytes.
    fn observe(&mut self, direction: Direction, bytes: &[u8]);
}

impl<One: ByteObserver, Other: ByteObserver> ByteObserver for (One, Other) {
    fn observe(&mut self, direction: Direction, bytes: &[u8]) {
        self.0.observe(direction, bytes);
        self.1.observe(direction, bytes);
    }
}

/// An observed connection.
#[derive(Debug)]
pub struct ObservedIo<W> {
    io: BoxIo,
    watch: W,
}

impl<W: ByteObserver> ObservedIo<W> {
    /// Passes the bytes of `io` to `watch`.
    pub fn new(io: BoxIo, watch: W) -> Self {
        Self { io, watch }
    }
}

impl<W: ByteObserver> AsyncRead for ObservedIo<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = &polled {
            self.watch
                .observe(Direction::Received, &into.filled()[before..]);
        }
        polled
    }
}

impl<W: ByteObserver> AsyncWrite for ObservedIo<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let Poll::Ready(Ok(len)) = polled {
            self.watch.observe(Direction::Sent, &bytes[..len]);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        if let Poll::Ready(Ok(mut left)) = polled {
            for slice in slices {
                let len = left.min(slice.len());
                self.watch.observe(Direction::Sent, &slice[..len]);
                left -= len;
            }
        }
        polled
    }

    forward_io!(is_write_vectored, poll_flush, poll_shutdown => self.io);
}

/// Heads of HTTP/1.1 exchanges. Only the codec knows where a body ends, so the codec's driver reports the start of the next
/// exchange.
#[derive(Clone, Debug)]
pub(crate) struct Http1HeadCounter {
    sides: Arc<Mutex<[HeadScanner; 2]>>,
    counters: Arc<HeaderByteCounters>,
    tap: Option<ConnectionTap>,
}

/// The head of one direction of an exchange.
#[derive(Debug, Default)]
struct HeadScanner {
    /// Between the first byte and the blank line.
    open: bool,
    /// Number of matched bytes of CR LF CR LF.
    matched: usize,
    /// The head so far, up to the part that observers need.
    text: Vec<u8>,
}

impl Http1HeadCounter {
    pub(crate) fn new(counters: Arc<HeaderByteCounters>, tap: Option<ConnectionTap>) -> Self {
        Self {
            sides: Arc::default(),
            counters,
            tap,
        }
    }

    /// Reports that the next bytes of both directions are heads.
    pub(crate) fn begin_exchange(&self) {
        let mut sides = self.sides.lock();
        for side in sides.iter_mut() {
            *side = HeadScanner {
                open: true,
                ..HeadScanner::default()
            };
        }
    }
}

impl HeadScanner {
    /// Number of leading bytes that belong to the head.
    fn take(&mut self, bytes: &[u8]) -> usize {
        const END: &[u8] = b"\r\n\r\n";
        let mut len = 0;
        for &byte in bytes {
            len += 1;
            self.matched = match byte {
                byte if byte == END[self.matched] => self.matched + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.matched == END.len() {
                self.matched = 0;
                self.open = false;
                break;
            }
        }
        let room = MAX_SHOWN_HEAD.saturating_sub(self.text.len());
        self.text.extend_from_slice(&bytes[..len.min(room)]);
        len
    }

    /// True if another head follows this interim response (RFC 9110 §15.2).
    fn is_interim(&self) -> bool {
        self.text.starts_with(b"HTTP/1.1 1") && !self.text.starts_with(b"HTTP/1.1 101")
    }
}

impl ByteObserver for Http1HeadCounter {
    fn observe(&mut self, direction: Direction, mut bytes: &[u8]) {
        let mut sides = self.sides.lock();
        let side = &mut sides[usize::from(direction == Direction::Received)];
        while side.open && !bytes.is_empty() {
            let len = side.take(bytes);
            self.counters.add(direction, len);
            bytes = &bytes[len..];
            if !side.open {
                if let Some(tap) = &self.tap {
                    tap.emit(direction, &TapEvent::Http1Head(&side.text));
                }
                side.open = side.is_interim();
                side.text.clear();
            }
        }
        if let (Some(tap), false) = (&self.tap, bytes.is_empty()) {
            tap.emit(direction, &TapEvent::Http1Body(bytes.len()));
        }
    }
}

/// Length of a frame's head (RFC 9113 §4.1).
const FRAME_HEAD_BYTES: usize = 9;
/// Length of the preface of an HTTP/2 client, before its first frame (RFC 9113 §3.4).
const PREFACE_BYTES: usize = 24;
/// The longest payload that is stored for observers: a SETTINGS of 16 entries.
const MAX_STORED_PAYLOAD: usize = 96;

/// Parses the frames of one direction of an HTTP/2 connection.
#[derive(Debug, Default)]
pub struct FrameScanner {
    /// Bytes before the first frame.
    skip: usize,
    head: [u8; FRAME_HEAD_BYTES],
    head_len: usize,
    /// Remaining payload bytes of the current frame.
    left: usize,
    payload: Vec<u8>,
}

/// A decoded frame head.
#[derive(Clone, Copy, Debug)]
pub struct FrameHead {
    /// Type number.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// 0 for the connection.
    pub stream_id: u32,
    /// Payload length, bytes.
    pub len_bytes: usize,
}

impl FrameScanner {
    /// A parser for a client's output, which begins with the preface.
    #[must_use]
    pub fn for_client() -> Self {
        Self {
            skip: PREFACE_BYTES,
            ..Self::default()
        }
    }

    fn current_head(&self) -> FrameHead {
        let [a, b, c, kind, flags, s @ ..] = self.head;
        FrameHead {
            kind,
            flags,
            stream_id: u32::from_be_bytes(s) & 0x7fff_ffff,
            len_bytes: u32::from_be_bytes([0, a, b, c]) as usize,
        }
    }

    /// Calls `ended` for each frame that ends in `bytes`, with the stored part of its payload.
    pub fn scan(&mut self, bytes: &[u8], ended: impl FnMut(FrameHead, &[u8])) {
        self.scan_parts(bytes, |_, _| {}, ended);
    }

    /// Like [`scan`](Self::scan), and calls `part` for each piece of payload in `bytes`, with its frame and its length in bytes.
    pub(crate) fn scan_parts(
        &mut self,
        mut bytes: &[u8],
        mut part: impl FnMut(FrameHead, usize),
        mut ended: impl FnMut(FrameHead, &[u8]),
    ) {
        let skip = self.skip.min(bytes.len());
        self.skip -= skip;
        bytes = &bytes[skip..];
        while !bytes.is_empty() {
            if self.head_len < FRAME_HEAD_BYTES {
                let len = (FRAME_HEAD_BYTES - self.head_len).min(bytes.len());
                self.head[self.head_len..self.head_len + len].copy_from_slice(&bytes[..len]);
                self.head_len += len;
                bytes = &bytes[len..];
                if self.head_len < FRAME_HEAD_BYTES {
                    return;
                }
                self.left = self.current_head().len_bytes;
                self.payload.clear();
            }
            let frame = self.current_head();
            let len = self.left.min(bytes.len());
            // DATA, HEADERS, PUSH_PROMISE and CONTINUATION are long, and their payload is not used here.
            if !matches!(frame.kind, 0 | 1 | 5 | 9) {
                let room = MAX_STORED_PAYLOAD.saturating_sub(self.payload.len());
                self.payload.extend_from_slice(&bytes[..len.min(room)]);
            }
            self.left -= len;
            bytes = &bytes[len..];
            part(frame, len);
            if self.left == 0 {
                self.head_len = 0;
                ended(frame, &self.payload);
            }
        }
    }
}

/// Frames of an HTTP/2 client's connection.
#[derive(Debug)]
pub(crate) struct Http2HeaderCounter {
    sent: FrameScanner,
    received: FrameScanner,
    counters: Arc<HeaderByteCounters>,
    tap: Option<ConnectionTap>,
}

impl Http2HeaderCounter {
    pub(crate) fn new(counters: Arc<HeaderByteCounters>, tap: Option<ConnectionTap>) -> Self {
        Self {
            sent: FrameScanner::for_client(),
            received: FrameScanner::default(),
            counters,
            tap,
        }
    }
}

impl ByteObserver for Http2HeaderCounter {
    fn observe(&mut self, direction: Direction, bytes: &[u8]) {
        let walk = match direction {
            Direction::Sent => &mut self.sent,
            Direction::Received => &mut self.received,
        };
        walk.scan(bytes, |frame, payload| {
            if matches!(frame.kind, 1 | 5 | 9) {
                self.counters.add(direction, frame.len_bytes);
            }
            if let Some(tap) = &self.tap {
                let FrameHead {
                    kind,
                    flags,
                    stream_id,
                    len_bytes,
                } = frame;
                let frame = Http2Frame {
                    kind,
                    flags,
                    stream_id,
                    len_bytes,
                    payload,
                };
                tap.emit(direction, &TapEvent::Http2Frame(frame));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spdy_net_core::header_bytes::HeaderBytes;

    fn pieces(bytes: &[u8], len: usize) -> impl Iterator<Item = &[u8]> {
        bytes.chunks(len)
    }

    #[test]
    fn http1_heads_are_counted_and_bodies_are_not_however_they_are_cut() {
        let request = b"POST / HTTP/1.1\r\nhost: a\r\n\r\nbody\r\n\r\n";
        let response = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx: \r\r\n\r\nbody";
        for len in 1..request.len() {
            let counters = Arc::new(HeaderByteCounters::default());
            let mut watch = Http1HeadCounter::new(counters.clone(), None);
            watch.begin_exchange();
            pieces(request, len).for_each(|piece| watch.observe(Direction::Sent, piece));
            pieces(response, len).for_each(|piece| watch.observe(Direction::Received, piece));
            let expected = HeaderBytes {
                sent: (request.len() - b"body\r\n\r\n".len()) as u64,
                received: (response.len() - b"body".len()) as u64,
            };
            assert_eq!(counters.read(), expected, "cut into pieces of {len}");
        }
    }

    #[test]
    fn http2_header_payloads_are_counted_however_they_are_cut() {
        let mut wire = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        wire.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]); // SETTINGS, empty
        wire.extend([0, 0, 3, 1, 0, 0, 0, 0, 1, 9, 9, 9]); // HEADERS of 3
        wire.extend([0, 0, 2, 9, 4, 0, 0, 0, 1, 9, 9]); // CONTINUATION of 2
        wire.extend([0, 0, 4, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1]); // DATA of 4
        for len in 1..wire.len() {
            let counters = Arc::new(HeaderByteCounters::default());
            let mut watch = Http2HeaderCounter::new(counters.clone(), None);
            pieces(&wire, len).for_each(|piece| watch.observe(Direction::Sent, piece));
            assert_eq!(counters.read().sent, 5, "cut into pieces of {len}");
        }
    }
}
