//! Splits DATA frames, so that their bytes are delivered on arrival.
//!
//! h2 delivers a frame only when it is complete. So the text of a page in one frame of 16 KiB would be read when its last packet
//! arrives, while a browser reads each packet. Between the transport and h2, the received part of a DATA frame is converted to a
//! separate frame:
//!
//! ```text
//!   wire   |DATA, 8000, END_STREAM| 1400 bytes | ..later.. | 6600 bytes |
//!   h2     |DATA, 1400| 1400 bytes |             |DATA, 6600, END_STREAM| 6600 bytes |
//! ```
//!
//! These frames are not changed: frames that are completely available, frames of less than two kilobytes, padded frames, and frames
//! that are longer than a server may send. The rest of a frame is delivered as one more part, after its maximum number of parts, or if
//! the read buffer was filled completely. Flow-control windows are not affected, because only payload counts (RFC 9113 §6.9.1).

use std::future::Future as _;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use spdy::forward_io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// A frame's head (RFC 9113 §4.1).
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const END_STREAM: u8 = 0x1;
const PADDED: u8 = 0x8;
/// A frame is split into at most one part per this many bytes: h2's memory per frame, and its budget for small frames, are limited
/// by bytes.
const MIN_MEAN_PART: usize = 1024;
/// Maximum number of bytes that are read before h2 gets any, bytes: two frames of the default size, or two TLS records.
const READ_BYTES: usize = 32 * 1024;

/// A transport for h2.
#[derive(Debug)]
pub(crate) struct DataFrameSplitter<T> {
    io: T,
    split: SplitState,
    /// Bytes that were read.
    read: BytesMut,
    /// Number of bytes that may be passed to h2. The rest, if any, is an incomplete frame head.
    ready_bytes: usize,
    /// The end of input, or the error.
    end: Option<io::Result<()>>,
}

impl<T> DataFrameSplitter<T> {
    /// h2 itself rejects frames of more than `max_frame_bytes`.
    pub(crate) fn new(io: T, max_frame_bytes: u32) -> Self {
        Self {
            io,
            split: SplitState {
                at: SplitPosition::Head,
                max_frame_bytes: max_frame_bytes as usize,
            },
            read: BytesMut::new(),
            ready_bytes: 0,
            end: None,
        }
    }
}

/// Position within the frames.
#[derive(Clone, Copy, Debug)]
enum SplitPosition {
    /// Before a frame head.
    Head,
    /// In a payload that is passed unchanged, with this many bytes remaining.
    Payload(usize),
    /// In a DATA frame, before its next part, which has no head yet.
    Data(SplitFrameHead, RemainingParts),
}

#[derive(Clone, Copy, Debug)]
struct SplitFrameHead {
    len: usize,
    kind: u8,
    flags: u8,
    stream_id: [u8; 4],
}

impl SplitFrameHead {
    fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream_id @ ..] = *bytes;
        Self {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream_id,
        }
    }

    /// Writes this head for a frame of `len` bytes, which is the last part or not.
    fn write(self, into: &mut [u8], len: usize, is_last: bool) {
        let len = u32::try_from(len).expect("the length fits 24 bits");
        into[..3].copy_from_slice(&len.to_be_bytes()[1..]);
        into[3] = self.kind;
        into[4] = if is_last {
            self.flags
        } else {
            self.flags & !END_STREAM
        };
        into[5..HEAD_BYTES].copy_from_slice(&self.stream_id);
    }
}

/// The rest of a DATA frame.
#[derive(Clone, Copy, Debug)]
struct RemainingParts {
    left_bytes: usize,
    /// Maximum number of further parts.
    most: usize,
}

#[derive(Debug)]
struct SplitState {
    at: SplitPosition,
    max_frame_bytes: usize,
}

impl SplitState {
    /// Space for the head of the next part.
    fn before(&self) -> &'static [u8] {
        match self.at {
            SplitPosition::Head | SplitPosition::Payload(_) => &[],
            SplitPosition::Data(..) => &[0; HEAD_BYTES],
        }
    }

    /// Splits `bytes` into frames. Returns how many leading bytes can be sent; the rest is an incomplete frame head. The head of a part
    /// without payload is removed. If there is `more`, no frame is split.
    fn part(&mut self, bytes: &mut BytesMut, more: bool) -> usize {
        let mut start = 0;
        loop {
            let here = &mut bytes[start..];
            match self.at {
                SplitPosition::Head => {
                    let Some(head) = here.first_chunk().map(SplitFrameHead::read) else {
                        return start;
                    };
                    let most = head.len / MIN_MEAN_PART;
                    let is_parted = head.kind == DATA
                        && head.flags & PADDED == 0
                        && head.len <= self.max_frame_bytes
                        && here.len() < HEAD_BYTES + head.len
                        && most > 1
                        && !more;
                    if is_parted {
                        let left_bytes = head.len;
                        self.at = SplitPosition::Data(head, RemainingParts { left_bytes, most });
                    } else {
                        self.at = SplitPosition::Payload(head.len);
                        start += HEAD_BYTES;
                    }
                }
                SplitPosition::Payload(left_bytes) => {
                    let len = left_bytes.min(here.len());
                    start += len;
                    if left_bytes > len {
                        self.at = SplitPosition::Payload(left_bytes - len);
                        return start;
                    }
                    self.at = SplitPosition::Head;
                }
                SplitPosition::Data(head, parts) => {
                    let here_bytes = here.len() - HEAD_BYTES;
                    let left_bytes = parts.left_bytes.saturating_sub(here_bytes);
                    if here_bytes == 0 {
                        bytes.truncate(start);
                        return start;
                    }
                    if left_bytes > 0 && parts.most > 1 && !more {
                        head.write(here, here_bytes, false);
                        let most = parts.most - 1;
                        self.at = SplitPosition::Data(head, RemainingParts { left_bytes, most });
                        return bytes.len();
                    }
                    head.write(here, parts.left_bytes, true);
                    self.at = SplitPosition::Payload(parts.left_bytes);
                    start += HEAD_BYTES;
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin> DataFrameSplitter<T> {
    /// Reads until bytes are available for h2, or the input ends.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.read.extend_from_slice(self.split.before());
        let before = self.read.len();
        while self.end.is_none() && self.read.len() < READ_BYTES {
            self.read.reserve(READ_BYTES - self.read.len());
            match pin!(self.io.read_buf(&mut self.read)).poll(cx) {
                Poll::Ready(Ok(0)) => self.end = Some(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.end = Some(Err(error)),
                Poll::Pending => break,
            }
        }
        let more = self.read.len() >= READ_BYTES;
        self.ready_bytes = match self.read.len() > before {
            true => self.split.part(&mut self.read, more),
            false => 0,
        };
        if self.ready_bytes == 0 && matches!(self.split.at, SplitPosition::Data(..)) {
            self.read.clear(); // an incomplete part is dropped with its head
        }
        if self.read.is_empty() {
            self.read = BytesMut::new(); // an idle connection uses no memory
        }
        match self.ready_bytes == 0 && self.end.is_none() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for DataFrameSplitter<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.ready_bytes == 0 {
            if this.end.is_none() {
                ready!(this.poll_fill(cx));
            }
            if this.ready_bytes == 0 && this.read.is_empty() {
                return Poll::Ready(this.end.replace(Ok(())).unwrap_or(Ok(())));
            }
            if this.ready_bytes == 0 {
                this.ready_bytes = this.read.len(); // h2 rejects an incomplete head
            }
        }
        let len = this.ready_bytes.min(buf.remaining());
        buf.put_slice(&this.read[..len]);
        this.read.advance(len);
        this.ready_bytes -= len;
        if this.read.is_empty() {
            this.read = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for DataFrameSplitter<T> {
    forward_io!(
        poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown => self.io
    );
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;

    const MAX_FRAME: u32 = 16 * 1024;

    #[derive(Clone, Debug, Eq, PartialEq)]
    struct Frame {
        kind: u8,
        flags: u8,
        stream_id: u32,
        payload: Vec<u8>,
    }

    impl Frame {
        fn write(&self, into: &mut Vec<u8>) {
            into.extend_from_slice(&(self.payload.len() as u32).to_be_bytes()[1..]);
            into.extend([self.kind, self.flags]);
            into.extend_from_slice(&self.stream_id.to_be_bytes());
            into.extend_from_slice(&self.payload);
        }
    }

    fn read_frames(mut bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some((head, rest)) = bytes.split_first_chunk() {
            let head = SplitFrameHead::read(head);
            let (payload, rest) = rest.split_at(head.len);
            frames.push(Frame {
                kind: head.kind,
                flags: head.flags,
                stream_id: u32::from_be_bytes(head.stream_id),
                payload: payload.to_vec(),
            });
            bytes = rest;
        }
        assert!(
            bytes.is_empty(),
            "{} bytes after the last frame",
            bytes.len()
        );
        frames
    }

    /// Returns one piece per read, if it fits, and is pending once between two pieces.
    struct Pieces(VecDeque<Vec<u8>>, bool);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.1 = !self.1;
            if self.1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(mut piece) = self.0.pop_front() {
                let len = piece.len().min(buf.remaining());
                buf.put_slice(&piece[..len]);
                piece.drain(..len);
                if !piece.is_empty() {
                    self.0.push_front(piece);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    /// Reads everything, with the buffer sizes `rooms` in turn.
    async fn read_all(pieces: Vec<Vec<u8>>, rooms: &[usize]) -> Vec<u8> {
        let mut parted = DataFrameSplitter::new(Pieces(pieces.into(), false), MAX_FRAME);
        let (mut all, mut rooms) = (Vec::new(), rooms.iter().cycle());
        loop {
            let mut room = vec![0; *rooms.next().expect("a room")];
            match parted.read(&mut room).await.expect("the read succeeds") {
                0 => return all,
                len => all.extend_from_slice(&room[..len]),
            }
        }
    }

    /// Joins the DATA of split frames; fails if one was split into more parts than allowed.
    fn together(parts: Vec<Frame>, whole: &[Frame]) -> Vec<Frame> {
        let mut parts = parts.into_iter();
        let one = |frame: &Frame| {
            let (mut one, mut count) = (parts.next().expect("no fewer frames"), 1);
            while one.payload.len() < frame.payload.len() {
                let part = parts.next().expect("the rest of the frame");
                assert_eq!((one.kind, one.flags & END_STREAM), (DATA, 0));
                assert_eq!((part.kind, part.stream_id), (DATA, one.stream_id));
                one.flags = part.flags;
                one.payload.extend(part.payload);
                count += 1;
            }
            assert!(count <= (frame.payload.len() / MIN_MEAN_PART).max(1));
            one
        };
        let frames = whole.iter().map(one).collect();
        assert_eq!(parts.next(), None);
        frames
    }

    prop_compose! {
        fn frame()(
            kind in prop_oneof![3 => Just(DATA), 1 => 1_u8..10],
            flags in prop_oneof![Just(0), Just(END_STREAM), Just(PADDED), any::<u8>()],
            stream_id in 0_u32..4,
            len in prop_oneof![Just(0), 1_usize..20, 1_000_usize..3_000, 16_300_usize..16_500, 16_500_usize..40_000],
        ) -> Frame {
            let payload = (0..len).map(|at| (at * 31 + at / 251) as u8).collect();
            Frame { kind, flags, stream_id, payload }
        }
    }

    proptest! {
        #[test]
        fn frames_are_the_same_however_they_come(
            frames in prop::collection::vec(frame(), 1..6),
            pieces in prop::collection::vec(prop_oneof![1_usize..12, 1_usize..3_000], 1..12),
            rooms in prop::collection::vec(prop_oneof![1_usize..80, 1_usize..20_000], 1..6),
        ) {
            let mut bytes = Vec::new();
            frames.iter().for_each(|frame| frame.write(&mut bytes));
            let (mut cut, mut left, mut lens) = (Vec::new(), &bytes[..], pieces.iter().cycle());
            while !left.is_empty() {
                let (piece, rest) = left.split_at((*lens.next().unwrap()).min(left.len()));
                cut.push(piece.to_vec());
                left = rest;
            }
            let read = read_all(cut, &rooms);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let read = runtime.block_on(read);
            prop_assert_eq!(together(read_frames(&read), &frames), frames);
        }
    }

    fn data(len: usize, flags: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (kind, stream_id, payload) = (DATA, 1, vec![b'x'; len]);
        Frame {
            kind,
            flags,
            stream_id,
            payload,
        }
        .write(&mut bytes);
        bytes
    }

    #[tokio::test]
    async fn the_received_part_of_a_data_frame_is_passed_on() {
        let (mut far, near) = tokio::io::duplex(64 * 1024);
        let mut parted = DataFrameSplitter::new(near, MAX_FRAME);
        let bytes = data(8_000, END_STREAM);
        let mut room = vec![0; 32 * 1024];

        far.write_all(&bytes[..HEAD_BYTES]).await.unwrap();
        assert_eq!(
            parted.read(&mut room).now_or_never().map(Result::unwrap),
            None
        );
        far.write_all(&bytes[HEAD_BYTES..1_400]).await.unwrap();
        let len = parted.read(&mut room).await.unwrap();
        let came = read_frames(&room[..len]);
        assert_eq!(
            (came.len(), came[0].payload.len(), came[0].flags),
            (1, 1_400 - HEAD_BYTES, 0)
        );

        far.write_all(&bytes[1_400..]).await.unwrap();
        let len = parted.read(&mut room).await.unwrap();
        let came = read_frames(&room[..len]);
        assert_eq!((came.len(), came[0].flags), (1, END_STREAM));
        assert_eq!(came[0].payload.len(), 8_000 - (1_400 - HEAD_BYTES));
    }

    /// Otherwise the buffer size of h2 would determine the parts, and leave tiny ones.
    #[tokio::test]
    async fn frames_that_are_at_hand_are_not_parted() {
        let bytes = data(16_384, 0).repeat(20);
        let (mut far, near) = tokio::io::duplex(bytes.len());
        far.write_all(&bytes).await.unwrap();
        drop(far);
        let mut parted = DataFrameSplitter::new(near, MAX_FRAME);
        let mut all = Vec::new();
        let mut room = vec![0; 8 * 1024];
        loop {
            match parted.read(&mut room).await.unwrap() {
                0 => break,
                len => all.extend_from_slice(&room[..len]),
            }
        }
        assert!(all == bytes);
    }

    #[tokio::test]
    async fn padded_small_and_oversized_frames_are_not_split() {
        for (len, flags) in [(8_000, PADDED), (MAX_FRAME as usize + 1, 0), (2_047, 0)] {
            let bytes = data(len, flags);
            let read = read_all(
                vec![bytes[..1_000].to_vec(), bytes[1_000..].to_vec()],
                &[40_000],
            );
            assert_eq!(read.await, bytes);
        }
    }

    #[tokio::test]
    async fn a_frame_cut_by_the_end_of_input_stays_incomplete() {
        for end in [4, HEAD_BYTES, 5_000] {
            let bytes = data(8_000, END_STREAM);
            let read = read_all(vec![bytes[..end].to_vec()], &[40_000]).await;
            match end {
                5_000 => assert_eq!(read_frames(&read)[0].flags, 0),
                HEAD_BYTES => assert_eq!(read, b""), // the head of nothing
                _ => assert_eq!(read, bytes[..end]),
            }
        }
    }

    #[tokio::test]
    async fn writes_pass_through_unchanged() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut parted = DataFrameSplitter::new(near, MAX_FRAME);
        parted.write_all(b"PRI").await.unwrap();
        let slices = [io::IoSlice::new(b" * "), io::IoSlice::new(b"HTTP/2.0")];
        let written = poll_fn(|cx| Pin::new(&mut parted).poll_write_vectored(cx, &slices));
        assert!(written.await.unwrap() > 0);
        parted.shutdown().await.unwrap();
        let mut output = String::new();
        far.read_to_string(&mut output).await.unwrap();
        assert!(output.starts_with("PRI * "), "{output}");
    }
}
