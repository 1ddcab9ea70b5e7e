//! A connection whose first bytes were already read, together with a head.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::forward_io;

/// Reads bytes that were already read, before those of the connection.
#[derive(Debug)]
pub struct Rewind<T> {
    seen: Bytes,
    io: T,
}

impl<T> Rewind<T> {
    /// Reads `seen` first, then `io`.
    #[must_use]
    pub fn new(seen: Bytes, io: T) -> Self {
        Self { seen, io }
    }

    /// The bytes that were not read again yet, and the connection.
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
            self.seen = Bytes::new(); // frees the buffer of the head
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Rewind<T> {
    forward_io!(
        poll_write, poll_write_vectored, is_write_vectored, poll_flush, poll_shutdown => self.io
    );
}
