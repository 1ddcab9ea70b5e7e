//! The streams of a process and of a forwarded port, over SPDY or over a plain WebSocket.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use spdy::upgrade::Channel;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::channels::{Reader, Writer};
use crate::error::StreamError;

/// A readable stream: stdin at the server, stdout and stderr at the client. Dropping it notifies the other
/// side. Over a plain WebSocket it does not, and further input is discarded.
#[derive(Debug)]
pub struct Input(Source);

#[derive(Debug)]
enum Source {
    Spdy(Channel),
    WebSocket(Reader),
}

impl Input {
    pub(crate) fn of_spdy(channel: Channel) -> Self {
        Self(Source::Spdy(channel))
    }

    pub(crate) fn of_channel(reader: Reader) -> Self {
        Self(Source::WebSocket(reader))
    }

    /// The next received bytes, without copying; `None` at the end. Cancel safe.
    pub async fn receive(&mut self) -> Option<Result<Bytes, StreamError>> {
        match &mut self.0 {
            Source::Spdy(channel) => {
                let received = channel.receive().await?;
                Some(received.map_err(StreamError::Spdy))
            }
            Source::WebSocket(reader) => reader.receive().await,
        }
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Source::Spdy(channel) => Pin::new(channel).poll_read(cx, buf),
            Source::WebSocket(reader) => Pin::new(reader).poll_read(cx, buf),
        }
    }
}

/// A writable stream: stdout and stderr in the server, stdin in the client. When it is dropped, the written bytes are sent, and
/// then its end. (A plain WebSocket supports that from version 5 on, and only for stdin.)
#[derive(Debug)]
pub struct Output(Sink);

#[derive(Debug)]
enum Sink {
    Spdy(Channel),
    WebSocket(Writer),
}

impl Output {
    pub(crate) fn of_spdy(channel: Channel) -> Self {
        Self(Sink::Spdy(channel))
    }

    pub(crate) fn of_channel(writer: Writer) -> Self {
        Self(Sink::WebSocket(writer))
    }

    /// Sends `data`; over SPDY without copying it.
    ///
    /// # Errors
    ///
    /// Why the stream ended: the reader or the session is gone.
    pub async fn send(&mut self, data: Bytes) -> Result<(), StreamError> {
        match &mut self.0 {
            Sink::Spdy(channel) => channel.send(data).await.map_err(StreamError::Spdy),
            Sink::WebSocket(writer) => writer.send(data).await,
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Sink::Spdy(channel) => Pin::new(channel).poll_write(cx, buf),
            Sink::WebSocket(writer) => Pin::new(writer).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Sink::Spdy(channel) => Pin::new(channel).poll_flush(cx),
            Sink::WebSocket(writer) => Pin::new(writer).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Sink::Spdy(channel) => Pin::new(channel).poll_shutdown(cx),
            Sink::WebSocket(writer) => Pin::new(writer).poll_shutdown(cx),
        }
    }
}

/// A forwarded connection, in both directions.
///
/// Over SPDY, also inside WebSocket, each half ends separately. A plain WebSocket has no message for that: shutting down one half
/// ends both, and the other side detects that only at the end of the whole connection.
#[derive(Debug)]
pub struct Connection(DuplexKind);

#[derive(Debug)]
enum DuplexKind {
    Spdy(Channel),
    WebSocket {
        reader: Reader,
        writer: Writer,
        ended: bool,
        /// The task that waits to read; woken when this side ends the connection.
        waiting: Option<Waker>,
    },
}

impl Connection {
    pub(crate) fn of_spdy(channel: Channel) -> Self {
        Self(DuplexKind::Spdy(channel))
    }

    pub(crate) fn of_channel(reader: Reader, writer: Writer) -> Self {
        Self(DuplexKind::WebSocket {
            reader,
            writer,
            ended: false,
            waiting: None,
        })
    }

    /// The next received bytes, without copying; `None` at the end. Cancel safe.
    pub async fn receive(&mut self) -> Option<Result<Bytes, StreamError>> {
        match &mut self.0 {
            DuplexKind::Spdy(channel) => {
                let received = channel.receive().await?;
                Some(received.map_err(StreamError::Spdy))
            }
            DuplexKind::WebSocket { ended: true, .. } => None,
            DuplexKind::WebSocket { reader, .. } => reader.receive().await,
        }
    }

    /// Sends `data`; over SPDY without copying it.
    ///
    /// # Errors
    ///
    /// Why the connection ended.
    pub async fn send(&mut self, data: Bytes) -> Result<(), StreamError> {
        match &mut self.0 {
            DuplexKind::Spdy(channel) => channel.send(data).await.map_err(StreamError::Spdy),
            DuplexKind::WebSocket { writer, .. } => writer.send(data).await,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            DuplexKind::Spdy(channel) => Pin::new(channel).poll_read(cx, buf),
            DuplexKind::WebSocket { ended: true, .. } => Poll::Ready(Ok(())),
            DuplexKind::WebSocket {
                reader, waiting, ..
            } => {
                *waiting = Some(cx.waker().clone());
                Pin::new(reader).poll_read(cx, buf)
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            DuplexKind::Spdy(channel) => Pin::new(channel).poll_write(cx, buf),
            DuplexKind::WebSocket { writer, .. } => Pin::new(writer).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            DuplexKind::Spdy(channel) => Pin::new(channel).poll_flush(cx),
            DuplexKind::WebSocket { writer, .. } => Pin::new(writer).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.0 {
            DuplexKind::Spdy(channel) => Pin::new(channel).poll_shutdown(cx),
            DuplexKind::WebSocket {
                writer,
                ended,
                waiting,
                ..
            } => {
                *ended = true;
                if let Some(waiting) = waiting.take() {
                    waiting.wake();
                }
                Pin::new(writer).poll_shutdown(cx)
            }
        }
    }
}
