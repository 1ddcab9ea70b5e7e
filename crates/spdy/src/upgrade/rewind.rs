//! A connection whose first bytes were read already, together with the end of a head.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives bytes that were read already before those of the connection.
#[derive(Debug)]
pub struct Rewind<T> {
    seen: Bytes,
    io: T,
}

impl<T> Rewind<T> {
    /// `seen` first, then what `io` gives.
    #[must_use]
    pub fn new(seen: Bytes, io: T) -> Self {
        Self { seen, io }
    }

    /// What was not read again yet, and the connection.
    #[must_use]
    pub fn into_parts(self) -> (Bytes, T) {
        (self.seen, self.io)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Rewind<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.seen.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, into);
        }
        let len = self.seen.len().min(into.remaining());
        into.put_slice(&self.seen[..len]);
        self.seen.advance(len);
        if self.seen.is_empty() {
            self.seen = Bytes::new(); // the buffer of the head goes
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewind<T> {
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
