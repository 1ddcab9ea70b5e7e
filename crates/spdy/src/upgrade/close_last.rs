//! A server's connection that waits for the client to close first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::forward_io;

/// Keeps its side open until the peer has closed its own, for at most the time in which a session must write its end (10 s).
///
/// Between a runtime and its client is the API server, whose proxy closes both connections as soon as one side is closed. If the
/// proxy has unread bytes from the client at that time (the end of its stdin is enough), TCP resets that connection, and megabytes
/// that the client has not read yet are lost without an error. A client closes by itself after it has read GOAWAY and everything
/// before it.
#[derive(Debug)]
pub struct CloseLast<T> {
    io: T,
    peer_closed: bool,
    closing: Option<Waker>,
}

impl<T> CloseLast<T> {
    /// Wraps `io`.
    #[must_use]
    pub fn new(io: T) -> Self {
        Self {
            io,
            peer_closed: false,
            closing: None,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for CloseLast<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (into.filled().len(), into.remaining() > 0);
        let read = Pin::new(&mut self.io).poll_read(cx, into);
        let nothing = room && into.filled().len() == before;
        if matches!(read, Poll::Ready(Err(_))) || (read.is_ready() && nothing) {
            self.peer_closed = true;
            if let Some(closing) = self.closing.take() {
                closing.wake();
            }
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for CloseLast<T> {
    forward_io!(poll_write, poll_write_vectored, is_write_vectored, poll_flush => self.io);

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.peer_closed {
            return Pin::new(&mut self.io).poll_shutdown(cx);
        }
        self.closing = Some(cx.waker().clone());
        Poll::Pending
    }
}
