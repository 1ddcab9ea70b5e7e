//! The two kinds of stream that a process has, over a [`Channel`].

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use spdy::Error;
use spdy::upgrade::Channel;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What one reads: stdin at the server, stdout and stderr at the client. Dropped, the other side hears that
/// nobody listens.
#[derive(Debug)]
pub struct Input(pub(crate) Channel);

impl Input {
    /// The next bytes as they came, without a copy; `None` at the end.
    pub async fn receive(&mut self) -> Option<Result<Bytes, Error>> {
        self.0.receive().await
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

/// What one writes: stdout and stderr at the server, stdin at the client. Dropped, what was written goes
/// out, and then its end.
#[derive(Debug)]
pub struct Output(pub(crate) Channel);

impl Output {
    /// Sends `data` without copying it.
    ///
    /// # Errors
    ///
    /// Why the stream ended: the reader is gone, or the session.
    pub async fn send(&mut self, data: Bytes) -> Result<(), Error> {
        self.0.send(data).await
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
