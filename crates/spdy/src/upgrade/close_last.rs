//! A server's connection that lets the client close first.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::forward_io;

/// Keeps its side open until the peer has closed its own, for as long as a session waits for its end to be
/// written (10 s).
///
/// Between a runtime and its client stands the API server, whose proxy closes both connections as soon as
/// one side is closed. If the client has sent anything by then that the proxy has not read (the end of its
/// stdin will do), TCP resets that connection, and megabytes that the client had yet to read are gone
/// without an error. A client closes by itself once it has read GOAWAY and everything before.
#[derive(Debug)]
pub struct CloseLast<T> {
    io: T,
    peer_closed: bool,
    closing: Option<Waker>,
}

impl<T> CloseLast<T> {
    /// Over `io`.
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
