//! Coalesces the output of one poll of a connection into one write.
//!
//! h2 flushes after each DATA frame. Sixteen small responses that are ready together would need sixteen system calls and sixteen TLS
//! records; a client's preface would be a separate packet. Here flushes are delayed until the task that polls the connection has
//! finished its poll:
//!
//! ```text
//!   h2 --frame, flush, frame, flush ...--> held --the poll is over (Gate), or too much is held--> TLS, socket
//! ```
//!
//! The delay is at most one poll. If the transport did not accept everything, nothing is added to the buffer, because more urgent
//! output cannot overtake it there. Nothing is flushed then either: a flush without work would look like progress of the peer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum size of the buffer, bytes: a TLS record.
const MAX_COALESCED: usize = 16 * 1024;

/// A transport whose flushes are delayed by its [`FlushGate`].
#[derive(Debug)]
pub(crate) struct WriteCoalescer<T>(Arc<Mutex<State<T>>>);

/// The side of a [`WriteCoalescer`] for the task that polls the connection.
#[derive(Debug)]
pub(crate) struct FlushGate<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    io: T,
    held: BytesMut,
    /// True if flushes are delayed.
    holds_flushes: bool,
    /// True if the transport did not accept everything.
    is_blocked: bool,
    /// An error of the gate, to be returned to the writer.
    failed: Option<io::Error>,
}

impl<T> WriteCoalescer<T> {
    pub(crate) fn new(io: T) -> (Self, FlushGate<T>) {
        let state = Arc::new(Mutex::new(State {
            io,
            held: BytesMut::new(),
            holds_flushes: false,
            is_blocked: false,
            failed: None,
        }));
        (Self(state.clone()), FlushGate(state))
    }
}

fn lock<T>(state: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    state.lock()
}

impl<T: AsyncWrite + Unpin> FlushGate<T> {
    /// Delays flushes until [`poll_end`](Self::poll_end) from now on.
    pub(crate) fn hold_flushes(&self) {
        lock(&self.0).holds_flushes = true;
    }

    /// Writes the output of one poll of the connection. If that fails, the connection is polled again and gets the error.
    pub(crate) fn poll_flush_batch(&self, cx: &mut Context<'_>) {
        let mut state = lock(&self.0);
        if state.is_blocked && state.held.is_empty() {
            return; // the writer waits for it
        }
        match state.poll_out(cx) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                state.failed = Some(error);
                cx.waker().wake_by_ref();
            }
            Poll::Pending => state.is_blocked |= !state.held.is_empty(),
        }
    }
}

impl<T: AsyncWrite + Unpin> State<T> {
    /// Ready when this buffer and the transport below are empty.
    fn poll_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(written);
            self.is_blocked = !self.held.is_empty();
        }
        self.held = BytesMut::new(); // an idle connection uses no memory
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(error) = self.failed.take() {
            return Poll::Ready(Err(error));
        }
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        if self.holds_flushes && !self.is_blocked && self.held.len() + len <= MAX_COALESCED {
            self.held.reserve(MAX_COALESCED - self.held.len());
            bufs.iter().for_each(|buf| self.held.extend_from_slice(buf));
            return Poll::Ready(Ok(len));
        }
        loop {
            let held = [IoSlice::new(&self.held)];
            let held = held.iter().filter(|held| !held.is_empty());
            let all: Vec<_> = held.chain(bufs).copied().collect();
            let writing = Pin::new(&mut self.io).poll_write_vectored(cx, &all);
            self.is_blocked |= writing.is_pending();
            let written = ready!(writing)?;
            self.is_blocked = written < self.held.len() + len;
            let of_held = written.min(self.held.len());
            self.held.advance(of_held);
            if written == 0 || written > of_held {
                return Poll::Ready(Ok(written - of_held));
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteCoalescer<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteCoalescer<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        match state.failed.take() {
            Some(error) => Poll::Ready(Err(error)),
            None if state.holds_flushes => Poll::Ready(Ok(())),
            None => state.poll_out(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = lock(&self.0);
        if let Some(error) = state.failed.take() {
            return Poll::Ready(Err(error));
        }
        ready!(state.poll_out(cx))?;
        Pin::new(&mut state.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use futures_util::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Accepts at most `limit` bytes of each write, `room` in total, and records the writes.
    #[derive(Debug, Default)]
    struct Wire {
        writes: Vec<Vec<u8>>,
        most: usize,
        room: usize,
    }

    impl AsyncWrite for Wire {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let len = buf.len().min(self.most).min(self.room);
            if len == 0 {
                return Poll::Pending;
            }
            self.room -= len;
            self.writes.push(buf[..len].to_vec());
            Poll::Ready(Ok(len))
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            // No more bytes than needed: joining all of them for each byte would take a minute.
            let bytes = bufs.iter().flat_map(|buf| buf.iter().copied());
            let joined: Vec<u8> = bytes.take(self.most).collect();
            self.poll_write(cx, &joined)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn wire(most: usize, room: usize) -> (WriteCoalescer<Wire>, FlushGate<Wire>) {
        let writes = Vec::new();
        WriteCoalescer::new(Wire { writes, most, room })
    }

    fn writes(gate: &FlushGate<Wire>) -> Vec<usize> {
        lock(&gate.0).io.writes.iter().map(Vec::len).collect()
    }

    async fn end<T: AsyncWrite + Unpin>(gate: &FlushGate<T>) {
        let over = std::future::poll_fn(|cx| {
            gate.poll_flush_batch(cx);
            Poll::Ready(())
        });
        over.await;
    }

    #[tokio::test]
    async fn writes_of_one_poll_leave_in_one_write_at_its_end() {
        let (mut io, gate) = wire(usize::MAX, usize::MAX);
        for _ in 0..2 {
            io.write_all(b"at once").await.expect("room");
            io.flush().await.expect("the write succeeds");
        }
        assert_eq!(writes(&gate), [7, 7], "writes are not combined yet");
        gate.hold_flushes();
        for _ in 0..16 {
            io.write_all(b"answer").await.expect("room");
            io.flush().await.expect("it waits");
        }
        assert_eq!(writes(&gate), [7, 7]);
        end(&gate).await;
        end(&gate).await;
        assert_eq!(writes(&gate), [7, 7, 16 * 6]);
    }

    #[tokio::test]
    async fn bytes_keep_their_order_with_any_split_and_any_short_write() {
        for most in [1, 100, MAX_COALESCED - 1, usize::MAX] {
            let (mut io, gate) = wire(most, usize::MAX);
            gate.hold_flushes();
            let mut all = Vec::new();
            for len in [
                10,
                MAX_COALESCED - 10,
                1,
                MAX_COALESCED,
                3 * MAX_COALESCED,
                20,
                MAX_COALESCED - 1,
            ] {
                let piece: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
                io.write_all(&piece).await.expect("room");
                all.extend(piece);
                assert!(lock(&gate.0).held.len() <= MAX_COALESCED, "{most}");
            }
            io.shutdown().await.expect("the write succeeds");
            assert_eq!(lock(&gate.0).io.writes.concat(), all, "{most}");
        }
    }

    #[tokio::test]
    async fn buffer_is_bounded_and_a_flush_error_reaches_the_writer() {
        let (mut io, gate) = wire(usize::MAX, 5);
        gate.hold_flushes();
        let writing = io.write_all(&[7; 2 * MAX_COALESCED]);
        assert!(writing.now_or_never().is_none(), "the write is pending");
        let (mut io, gate) = wire(usize::MAX, 5);
        gate.hold_flushes();
        io.write_all(b"answer")
            .await
            .expect("the write is buffered");
        end(&gate).await;
        let writing = io.write_all(b"another");
        assert!(
            writing.now_or_never().is_none(),
            "a buffered write is pending"
        );
        lock(&gate.0).io.room = 100;
        io.write_all(b"another").await.expect("there is room");
        end(&gate).await;
        assert_eq!(writes(&gate), [5, 8]);
        let (near, far) = tokio::io::duplex(64);
        let (mut io, gate) = WriteCoalescer::new(near);
        gate.hold_flushes();
        io.write_all(b"unread")
            .await
            .expect("the write is buffered");
        drop(far);
        end(&gate).await;
        let error = io.flush().await.expect_err("it is gone");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(io.read(&mut [0]).await.expect("the end"), 0);
    }
}
