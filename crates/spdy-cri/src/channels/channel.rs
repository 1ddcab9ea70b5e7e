//! Our ends of a channel: reader and writer.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

use super::codec::Piece;
use crate::error::StreamError;

/// Cost of a message in addition to its bytes, so that many small messages are limited too.
pub(super) const ENTRY_BYTES: usize = 64;
/// Maximum size of a message that we write; the kubelet copies in pieces of that size.
pub(super) const MESSAGE_BYTES: usize = 32 * 1024;

/// The cost of a message against a connection's limit of buffered bytes.
pub(super) fn message_cost(bytes: usize) -> u32 {
    // A message is far below 4 GiB: `connection` clamps the limit.
    u32::try_from(bytes + ENTRY_BYTES).unwrap_or(u32::MAX)
}

/// Received bytes, with the permit for their buffer space.
pub(super) type ReceivedBytes = Result<(Bytes, OwnedSemaphorePermit), StreamError>;

/// Reads a channel. After it is dropped, further input of the channel is discarded.
#[derive(Debug)]
pub(crate) struct Reader {
    arrived: UnboundedReceiver<ReceivedBytes>,
    current: Bytes,
    /// The permit of `current`, released when the next bytes are taken.
    room: Option<OwnedSemaphorePermit>,
}

impl Reader {
    pub(super) fn new(arrived: UnboundedReceiver<ReceivedBytes>) -> Self {
        Self {
            arrived,
            current: Bytes::new(),
            room: None,
        }
    }

    /// The next received bytes, never empty; `None` at the end.
    pub(crate) async fn receive(&mut self) -> Option<Result<Bytes, StreamError>> {
        std::future::poll_fn(|cx| self.poll_receive(cx)).await
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        if !self.current.is_empty() {
            return Poll::Ready(Some(Ok(std::mem::take(&mut self.current))));
        }
        self.room = None;
        Poll::Ready(match ready!(self.arrived.poll_recv(cx)) {
            Some(Ok((bytes, room))) => {
                self.room = Some(room);
                Some(Ok(bytes))
            }
            Some(Err(error)) => Some(Err(error)),
            None => None,
        })
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match ready!(self.poll_receive(cx)) {
            Some(Ok(mut bytes)) => {
                let len = bytes.len().min(buf.remaining());
                buf.put_slice(&bytes[..len]);
                bytes.advance(len);
                self.current = bytes;
                Poll::Ready(Ok(()))
            }
            Some(Err(error)) => Poll::Ready(Err(error.into())),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// A queued piece, with the permit for its buffer space.
#[derive(Debug)]
pub(super) struct QueuedPiece {
    pub(super) piece: Piece,
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

/// Writes a channel. When it is dropped, the written bytes are sent, and then the end of the channel, if the sub-protocol has a
/// message for it.
#[derive(Debug)]
pub(crate) struct Writer {
    channel: u8,
    sends_close: bool,
    ended: bool,
    outgoing: UnboundedSender<QueuedPiece>,
    room: PollSemaphore,
}

impl Writer {
    pub(super) fn new(
        channel: u8,
        sends_close: bool,
        outgoing: UnboundedSender<QueuedPiece>,
        room: Arc<Semaphore>,
    ) -> Self {
        Self {
            channel,
            sends_close,
            ended: false,
            outgoing,
            room: PollSemaphore::new(room),
        }
    }

    /// Sends `data` in as many messages as needed; empty data is sent as an empty message.
    ///
    /// # Errors
    ///
    /// The channel was ended, or the connection has ended.
    pub(crate) async fn send(&mut self, mut data: Bytes) -> Result<(), StreamError> {
        loop {
            let len = data.len().min(MESSAGE_BYTES);
            let room = std::future::poll_fn(|cx| self.poll_room(cx, len)).await?;
            self.push(data.split_to(len), room)?;
            if data.is_empty() {
                return Ok(());
            }
        }
    }

    fn poll_room(
        &mut self,
        cx: &mut Context<'_>,
        len: usize,
    ) -> Poll<Result<OwnedSemaphorePermit, StreamError>> {
        if self.ended {
            return Poll::Ready(Err(StreamError::Ended));
        }
        // `None` once the connection has closed it.
        let room = ready!(self.room.poll_acquire_many(cx, message_cost(len)));
        Poll::Ready(room.ok_or_else(StreamError::peer_gone))
    }

    fn push(&self, data: Bytes, room: OwnedSemaphorePermit) -> Result<(), StreamError> {
        let channel = self.channel;
        let piece = Piece::Data { channel, data };
        let _room = Some(room);
        let sent = self.outgoing.send(QueuedPiece { piece, _room });
        sent.map_err(|_| StreamError::peer_gone())
    }

    /// Sends the end of the channel.
    pub(crate) fn finish(&mut self) {
        if !std::mem::replace(&mut self.ended, true) && self.sends_close {
            let channel = self.channel;
            // Two bytes, once per channel, so no permit is acquired. A connection that has ended need not send it.
            let _ = self.outgoing.send(QueuedPiece {
                piece: Piece::Close { channel },
                _room: None,
            });
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

impl AsyncWrite for Writer {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let len = bytes.len().min(MESSAGE_BYTES);
        let room = ready!(self.poll_room(cx, len))?;
        self.push(Bytes::copy_from_slice(&bytes[..len]), room)?;
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(())) // written bytes are already queued
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}
