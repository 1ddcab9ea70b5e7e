//! DATA frames that are handed on as they come.
//!
//! h2 hands a frame on when all of it is there. So the text of a page that fits one frame of 16 KiB would be read when its last packet comes,
//! where a browser reads each packet. Between the transport and h2, what has come of a DATA frame is made a frame of its own:
//!
//! ```text
//!   came   |DATA, 8000, END_STREAM| 1400 bytes | ..later.. | 6600 bytes |
//!   h2     |DATA, 1400| 1400 bytes |             |DATA, 6600, END_STREAM| 6600 bytes |
//! ```
//!
//! That is done where the bytes lie. Windows are none the wiser, for only payload counts (RFC 9113 §6.9.1). What has padding, or what h2 has
//! to refuse, passes as it is.

use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A frame's head (RFC 9113 §4.1).
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const END_STREAM: u8 = 0x1;
const PADDED: u8 = 0x8;
/// A frame becomes at most as many parts as it has of these: what h2 holds of each, and its budget for small frames, are bounded by
/// bytes.
const LEAST_MEAN_BYTES: usize = 1024;
/// With less room in a buffer than this it is not read into directly, for a head may have to go before the bytes.
const LEAST_ROOM_BYTES: usize = 64;

/// A transport that is read by h2.
#[derive(Debug)]
pub(crate) struct PartedData<T> {
    io: T,
    parting: Parting,
    /// What a buffer had no room for.
    ready: Vec<u8>,
}

impl<T> PartedData<T> {
    /// Frames of more than `max_frame_bytes` are h2's to refuse.
    pub(crate) fn new(io: T, max_frame_bytes: u32) -> Self {
        Self {
            io,
            parting: Parting {
                at: At::Head(Vec::new()),
                max_frame_bytes: max_frame_bytes as usize,
            },
            ready: Vec::new(),
        }
    }
}

/// Where in the frames we are.
#[derive(Debug)]
enum At {
    /// In a head, of which this has come.
    Head(Vec<u8>),
    /// In a payload that passes as it is, so many bytes before its end.
    Payload(usize),
    /// In a DATA frame, whose next part has no head yet.
    Data(Head, Parts),
}

#[derive(Clone, Copy, Debug)]
struct Head {
    len: usize,
    kind: u8,
    flags: u8,
    stream_id: [u8; 4],
}

impl Head {
    fn read(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream_id @ ..] = *bytes;
        Self {
            len: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream_id,
        }
    }

    /// This head, but of a frame of `len` bytes that is the last of its own or not.
    fn write(self, into: &mut [u8], len: usize, is_last: bool) {
        let len = u32::try_from(len).expect("24 bits, as it came");
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

/// What is still to come of a DATA frame.
#[derive(Clone, Copy, Debug)]
struct Parts {
    left_bytes: usize,
    /// In so many parts, at most.
    most: usize,
}

#[derive(Debug)]
struct Parting {
    at: At,
    max_frame_bytes: usize,
}

impl Parting {
    /// What goes before the bytes that are read next.
    fn before(&self) -> &[u8] {
        match &self.at {
            At::Head(came) => came,
            At::Payload(_) => &[],
            At::Data(..) => &[0; HEAD_BYTES], // its length is known when they are there
        }
    }

    /// Makes frames of `bytes`, which begin with [`before`](Self::before); tells how many of them stand for now. What comes behind is
    /// kept.
    fn part(&mut self, bytes: &mut [u8]) -> usize {
        let mut start = 0;
        loop {
            let here = &mut bytes[start..];
            let passed = match mem::replace(&mut self.at, At::Payload(0)) {
                At::Payload(0) | At::Head(_) => {
                    let Some(head) = here.first_chunk().map(Head::read) else {
                        self.at = At::Head(here.to_vec());
                        return start;
                    };
                    let most = head.len / LEAST_MEAN_BYTES;
                    let is_parted = head.kind == DATA
                        && head.flags & PADDED == 0
                        && head.len <= self.max_frame_bytes
                        && here.len() < HEAD_BYTES + head.len
                        && most > 1;
                    if is_parted {
                        let left_bytes = head.len;
                        self.at = At::Data(head, Parts { left_bytes, most });
                        0
                    } else {
                        self.at = At::Payload(head.len);
                        HEAD_BYTES
                    }
                }
                At::Payload(left_bytes) => {
                    let len = left_bytes.min(here.len());
                    self.at = At::Payload(left_bytes - len);
                    if left_bytes > len {
                        return start + len;
                    }
                    len
                }
                At::Data(head, parts) => {
                    let here_bytes = here.len() - HEAD_BYTES;
                    let left_bytes = parts.left_bytes.saturating_sub(here_bytes);
                    if here_bytes == 0 {
                        self.at = At::Data(head, parts);
                        return start;
                    }
                    if left_bytes == 0 || parts.most == 1 {
                        head.write(here, parts.left_bytes, true);
                        self.at = At::Payload(parts.left_bytes);
                        HEAD_BYTES
                    } else {
                        head.write(here, here_bytes, false);
                        let most = parts.most - 1;
                        self.at = At::Data(head, Parts { left_bytes, most });
                        return bytes.len();
                    }
                }
            };
            start += passed;
        }
    }
}

impl<T: AsyncRead + Unpin> PartedData<T> {
    /// Reads into `buf`, which has [`LEAST_ROOM_BYTES`].
    fn poll_fill(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let start = buf.filled().len();
        loop {
            buf.put_slice(self.parting.before());
            let before = buf.filled().len();
            let polled = Pin::new(&mut self.io).poll_read(cx, buf);
            let end = buf.filled().len();
            if !matches!(polled, Poll::Ready(Ok(()))) {
                buf.set_filled(start);
                return polled;
            }
            if end == before {
                // The end: of a head that has none, h2 sees what there is. A part that has not come goes without its head.
                match &mut self.parting.at {
                    At::Head(came) => came.clear(),
                    At::Payload(_) | At::Data(..) => buf.set_filled(start),
                }
                return polled;
            }
            let stands = self.parting.part(&mut buf.filled_mut()[start..]);
            buf.set_filled(start + stands);
            if stands > 0 {
                return polled;
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PartedData<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.ready.is_empty() && buf.remaining() >= LEAST_ROOM_BYTES {
            return this.poll_fill(cx, buf);
        }
        if this.ready.is_empty() {
            let mut room = [0; LEAST_ROOM_BYTES];
            let mut room = ReadBuf::new(&mut room);
            ready!(this.poll_fill(cx, &mut room))?;
            this.ready = room.filled().to_vec();
        }
        let len = this.ready.len().min(buf.remaining());
        buf.put_slice(&this.ready[..len]);
        this.ready.drain(..len);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for PartedData<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

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
            let head = Head::read(head);
            let (payload, rest) = rest.split_at(head.len);
            frames.push(Frame {
                kind: head.kind,
                flags: head.flags,
                stream_id: u32::from_be_bytes(head.stream_id),
                payload: payload.to_vec(),
            });
            bytes = rest;
        }
        assert!(bytes.is_empty(), "{} bytes of no frame", bytes.len());
        frames
    }

    /// Gives one piece a read, if there is room for it, and between any two of them nothing.
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

    /// All that is read with so much room at a time, in turn.
    async fn read_all(pieces: Vec<Vec<u8>>, rooms: &[usize]) -> Vec<u8> {
        let mut parted = PartedData::new(Pieces(pieces.into(), false), MAX_FRAME);
        let (mut all, mut rooms) = (Vec::new(), rooms.iter().cycle());
        loop {
            let mut room = vec![0; *rooms.next().expect("a room")];
            match parted.read(&mut room).await.expect("it does not fail") {
                0 => return all,
                len => all.extend_from_slice(&room[..len]),
            }
        }
    }

    /// DATA that belongs together, as one frame; whether any became more parts than it may.
    fn together(parts: Vec<Frame>, whole: &[Frame]) -> Vec<Frame> {
        let mut parts = parts.into_iter();
        let one = |frame: &Frame| {
            let (mut one, mut count) = (parts.next().expect("no fewer frames"), 1);
            while one.payload.len() < frame.payload.len() {
                let part = parts.next().expect("the rest of it");
                assert_eq!((one.kind, one.flags & END_STREAM), (DATA, 0));
                assert_eq!((part.kind, part.stream_id), (DATA, one.stream_id));
                one.flags = part.flags;
                one.payload.extend(part.payload);
                count += 1;
            }
            assert!(count <= (frame.payload.len() / LEAST_MEAN_BYTES).max(1));
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
    async fn what_has_come_of_a_frame_is_a_frame() {
        let (mut far, near) = tokio::io::duplex(64 * 1024);
        let mut parted = PartedData::new(near, MAX_FRAME);
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

    #[tokio::test]
    async fn what_is_padded_or_too_large_or_small_waits_for_all_of_it() {
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
    async fn what_ends_early_is_not_made_whole() {
        for end in [4, HEAD_BYTES, 5_000] {
            let bytes = data(8_000, END_STREAM);
            let read = read_all(vec![bytes[..end].to_vec()], &[40_000]).await;
            match end {
                5_000 => assert_eq!(read_frames(&read)[0].flags, 0),
                HEAD_BYTES => assert_eq!(read, b""),
                _ => assert_eq!(read, bytes[..end]),
            }
        }
    }

    #[tokio::test]
    async fn what_is_written_passes() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut parted = PartedData::new(near, MAX_FRAME);
        parted.write_all(b"PRI").await.unwrap();
        let slices = [io::IoSlice::new(b" * "), io::IoSlice::new(b"HTTP/2.0")];
        let written = poll_fn(|cx| Pin::new(&mut parted).poll_write_vectored(cx, &slices));
        assert!(written.await.unwrap() > 0);
        parted.shutdown().await.unwrap();
        let mut said = String::new();
        far.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("PRI * "), "{said}");
    }
}
