//! A stream of an upgraded session that ends as its peers expect.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::Error;
use crate::forward_io;
use crate::stream::Stream;

/// A raw stream that ends like a stream of Kubernetes.
///
/// - Reading: RST_STREAM(CANCEL) is the end, like FIN. The kubelet ends stdout and stderr this way.
/// - Dropped, or ended by [`end`](Self::end): FIN is sent behind all written bytes, and then, if the peer
///   has not sent FIN, RST_STREAM(CANCEL). No written bytes are lost.
#[derive(Debug)]
pub struct Channel {
    /// `None` only while it is being dropped.
    stream: Option<Stream>,
}

impl Channel {
    /// Wraps the stream.
    #[must_use]
    pub fn new(stream: Stream) -> Self {
        let stream = Some(stream);
        Self { stream }
    }

    fn stream(&mut self) -> &mut Stream {
        match &mut self.stream {
            Some(stream) => stream,
            None => unreachable!("used after it was dropped"),
        }
    }

    /// Its ID.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.stream.as_ref().map_or(StreamId::ZERO, Stream::id)
    }

    /// Like [`Stream::reply`]: the answer to a stream opened by this side.
    ///
    /// # Errors
    ///
    /// Why the stream ended early.
    pub async fn reply(&mut self) -> Result<HeaderBlock, Error> {
        self.stream().reply().await
    }

    /// The next DATA, never empty; `None` at the end. Cancel safe.
    pub async fn receive(&mut self) -> Option<Result<Bytes, Error>> {
        match self.stream().receive().await {
            Some(Err(error)) if is_end(&error) => None,
            received => received,
        }
    }

    /// Like [`Stream::send`].
    ///
    /// # Errors
    ///
    /// [`Error::SendClosed`] after FIN, otherwise why the stream ended.
    pub async fn send(&mut self, data: Bytes) -> Result<(), Error> {
        self.stream().send(data).await
    }

    /// Like [`Stream::finish`]: sends FIN.
    ///
    /// # Errors
    ///
    /// [`Error::SendClosed`] after FIN, otherwise why the stream ended.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.stream().finish()
    }

    /// Ends both halves, behind the written bytes.
    pub fn end(self) {
        drop(self);
    }

    /// Sends RST_STREAM at once; written bytes that were not sent yet are lost.
    pub fn reset(mut self, status: RstStatus) {
        if let Some(stream) = self.stream.take() {
            stream.reset(status);
        }
    }
}

/// True if the error is the peer's regular end of a stream.
fn is_end(error: &Error) -> bool {
    matches!(error, Error::ResetByPeer { status, .. } if *status == RstStatus::CANCEL)
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.end(RstStatus::CANCEL);
        }
    }
}

impl AsyncRead for Channel {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(self.stream()).poll_read(cx, buf));
        Poll::Ready(match read {
            Err(error)
                if error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref())
                    .is_some_and(is_end) =>
            {
                Ok(())
            }
            read => read,
        })
    }
}

impl AsyncWrite for Channel {
    forward_io!(poll_write, poll_flush, poll_shutdown => self.stream());
}
