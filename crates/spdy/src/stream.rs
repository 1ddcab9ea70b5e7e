//! A raw stream: `AsyncRead + AsyncWrite`, with headers.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_session::session::StreamOptions;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::Error;
use crate::session::block_check;
use crate::session::entry::{Entry, Inbound};
use crate::session::shared::Shared;
use crate::session::stream_ref::StreamRef;
use crate::trace;

/// The options of SYN_STREAM of a raw stream besides its headers.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The priority; 0, the default, is the most urgent.
    pub priority: Priority,
    /// True if the peer cannot answer.
    pub unidirectional: bool,
    /// True if we send no DATA.
    pub fin: bool,
}

/// Opens a stream, now or, if it may be queued, when the peer's limit allows it.
pub(crate) fn open_raw(
    shared: &Arc<Shared>,
    headers: HeaderBlock,
    options: OpenOptions,
    may_wait: bool,
) -> Result<StreamRef, Error> {
    block_check::check(shared.version, &headers)?;
    let open = StreamOptions {
        priority: options.priority,
        associated_to: StreamId::ZERO,
        unidirectional: options.unidirectional,
        fin: options.fin,
    };
    let mut entry = Entry::new(StreamId::ZERO, 1);
    entry.span = trace::local_stream(shared.role, || shared.runtime.now(), None);
    let key = shared.command(|state| state.open(entry, headers, open, may_wait))?;
    Ok(StreamRef::from_counted(shared.clone(), key))
}

/// One stream, without HTTP. If it is dropped before our half has ended, it is reset with CANCEL. If it is dropped after that, the
/// written bytes are still delivered, and the peer's are discarded.
///
/// Read and write it like any byte stream ([`tokio::io::split`] returns halves for two tasks). Or receive DATA with
/// [`receive`](Self::receive) and send [`Bytes`] with [`send`](Self::send), which do not copy. Credit returns to the peer as bytes
/// are read.
#[derive(Debug)]
pub struct Stream {
    stream: StreamRef,
    id: StreamId,
    /// DATA taken from the queue and not completely read yet.
    current: Bytes,
    /// Its initial length, whose credit is returned when it was read.
    current_len: usize,
    /// HEADERS received while reading.
    headers: Vec<HeaderBlock>,
    /// The peer's SYN_REPLY, once the caller has requested it.
    reply: Option<HeaderBlock>,
}

impl Stream {
    /// Wraps an open stream.
    pub(crate) fn new(stream: StreamRef, id: StreamId) -> Self {
        Self {
            stream,
            id,
            current: Bytes::new(),
            current_len: 0,
            headers: Vec::new(),
            reply: None,
        }
    }

    /// Its ID.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Waits for the peer's SYN_REPLY and returns its headers; later calls return the same headers.
    ///
    /// # Errors
    ///
    /// Why the stream ended early; [`Error::NoReply`] on a stream that the peer opened or that is unidirectional, because it gets
    /// no SYN_REPLY.
    pub async fn reply(&mut self) -> Result<HeaderBlock, Error> {
        if let Some(reply) = &self.reply {
            return Ok(reply.clone());
        }
        let reply = poll_fn(|cx| self.stream.poll_reply(cx)).await?;
        self.reply = Some(reply.clone());
        Ok(reply)
    }

    /// Takes the oldest HEADERS received so far while reading.
    pub fn take_headers(&mut self) -> Option<HeaderBlock> {
        (!self.headers.is_empty()).then(|| self.headers.remove(0))
    }

    /// Sends HEADERS; with `fin` our half is closed. (Several peers fail on HEADERS, and two wait forever on HEADERS with FIN. All
    /// peers understand [`finish`](Self::finish).)
    ///
    /// # Errors
    ///
    /// [`Error::SendClosed`] after FIN, [`Error::Headers`] if they cannot be encoded, otherwise why the stream ended.
    pub fn send_headers(&mut self, headers: &HeaderBlock, fin: bool) -> Result<(), Error> {
        block_check::check(self.stream.shared.version, headers)?;
        self.stream.command(|state, key| {
            let entry = &state.entries[key];
            let id = entry.id;
            if let Some(failure) = &entry.failure {
                return Err(failure.clone());
            }
            if entry.fin_sent || !state.machine.headers(id, headers, fin) {
                return Err(Error::SendClosed { id });
            }
            if fin {
                state.sent_fin(key);
            }
            Ok(())
        })
    }

    /// Sends `data` without copying it; resolves when all of it was passed to the session.
    ///
    /// # Errors
    ///
    /// [`Error::SendClosed`] after FIN, otherwise why the stream ended.
    pub async fn send(&mut self, mut data: Bytes) -> Result<(), Error> {
        poll_fn(|cx| self.stream.poll_send(cx, &mut data, false)).await
    }

    /// The next DATA, never empty; `None` after FIN. Small queued frames are joined. Cancel safe.
    pub async fn receive(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| {
            Poll::Ready(match ready!(self.poll_data(cx)) {
                Ok(true) => {
                    let data = std::mem::take(&mut self.current);
                    self.return_credit();
                    Some(Ok(data))
                }
                Ok(false) => None,
                Err(error) => Some(Err(error)),
            })
        })
        .await
    }

    /// Closes our half with FIN.
    ///
    /// # Errors
    ///
    /// [`Error::SendClosed`] after FIN, otherwise why the stream ended.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.stream.command(
            |state, key| match state.send(key, &mut Bytes::new(), true) {
                Poll::Ready(sent) => sent,
                Poll::Pending => unreachable!("an open stream always accepts FIN"),
            },
        )
    }

    /// Ends both halves at once with RST_STREAM.
    pub fn reset(self, status: RstStatus) {
        self.stream.reset(status);
    }

    /// Closes our half, then the stream: FIN behind all output and, once that is written, RST_STREAM if the peer has not closed its
    /// half by then. Unlike [`reset`](Self::reset) it drops no output. Further input is discarded.
    pub fn end(mut self, status: RstStatus) {
        self.return_credit();
        self.stream
            .command(|state, key| state.end_stream(key, status));
    }

    /// Waits until the stream has ended, and returns the reason if it ended before both halves sent FIN.
    pub async fn failed(&mut self) -> Option<Error> {
        poll_fn(|cx| self.stream.poll_end(cx)).await
    }

    /// Fills `current`; `false` after FIN.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        while self.current.is_empty() {
            match ready!(self.stream.poll_inbound(cx)) {
                Some(Ok(Inbound::Data(data))) => {
                    self.current_len = data.len();
                    self.current = data;
                }
                Some(Ok(Inbound::Headers(headers))) => self.headers.push(headers),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(false)),
            }
        }
        Poll::Ready(Ok(true))
    }

    /// Queues `data`, for which there was room at the last check; returns the number of queued bytes.
    fn poll_write_out(&self, cx: &mut Context<'_>, mut data: Bytes) -> Poll<io::Result<usize>> {
        let length = data.len();
        match self.stream.poll_send(cx, &mut data, false) {
            Poll::Ready(sent) => Poll::Ready(sent.map(|()| length).map_err(Into::into)),
            // The peer reduced its window in between.
            Poll::Pending if data.len() == length => Poll::Pending,
            Poll::Pending => Poll::Ready(Ok(length - data.len())),
        }
    }

    /// To be called when the current DATA was read: returns its credit.
    fn return_credit(&mut self) {
        self.stream.consume(std::mem::take(&mut self.current_len));
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if ready!(self.poll_data(cx))? {
            let length = self.current.len().min(buf.remaining());
            buf.put_slice(&self.current[..length]);
            self.current.advance(length);
            if self.current.is_empty() {
                self.return_credit();
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let room = ready!(self.stream.poll_capacity(cx))?;
        let length = room.min(buf.len());
        self.poll_write_out(cx, Bytes::copy_from_slice(&buf[..length]))
    }

    /// All pieces that fit are sent as one: small pieces do not become small frames.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let total_len = bufs
            .iter()
            .fold(0, |sum: usize, buf| sum.saturating_add(buf.len()));
        if total_len == 0 {
            return Poll::Ready(Ok(0));
        }
        let mut room = ready!(self.stream.poll_capacity(cx))?.min(total_len);
        let mut data = BytesMut::with_capacity(room);
        for buf in bufs {
            let piece = &buf[..room.min(buf.len())];
            data.extend_from_slice(piece);
            room -= piece.len();
        }
        self.poll_write_out(cx, data.freeze())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Written bytes are sent by the session; there is nothing to wait for here.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.finish() {
            Ok(()) | Err(Error::SendClosed { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }
}
