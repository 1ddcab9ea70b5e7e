//! A stream's DATA as the body of a message.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_http::content_length::LengthMismatch;
use spdy_http::trailers;
use spdy_session::config::Role;

use crate::error::Error;
use crate::session::entry::Inbound;
use crate::session::stream_ref::StreamRef;

/// The body that a stream carries after its head. Dropping it early cancels a client's stream. A server's stream continues, because
/// the response may still be needed; its input is discarded.
#[derive(Debug)]
pub(crate) struct ReceiveBody {
    stream: StreamRef,
    /// The block of the message's head, until DATA arrives.
    head: Option<HeaderBlock>,
    /// Received HEADERS, delivered at the end: DATA may follow them, and HEADERS before DATA are also trailers (see [`trailers`]).
    trailers: Option<HeaderMap>,
    ended: bool,
}

impl ReceiveBody {
    /// The body of a message with the header block `head`.
    pub(crate) fn new(stream: StreamRef, head: HeaderBlock) -> Self {
        Self {
            stream,
            head: Some(head),
            trailers: None,
            ended: false,
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.ended && self.trailers.is_none()
    }

    /// How long the peer could send nothing on any stream of the session, because of backpressure.
    pub(crate) fn backpressure_time(&self) -> Duration {
        let now = self.stream.shared.runtime.now();
        self.stream
            .shared
            .look(|state| state.machine.backpressure_time(now))
    }

    /// Content-length and the number of received bytes, if they differ.
    pub(crate) fn length_mismatch(&self) -> Option<LengthMismatch> {
        self.stream.look(|entry| entry.mismatch)
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        while !self.ended {
            match ready!(self.stream.poll_body(cx)) {
                Some(Ok((Inbound::Data(data), last))) => {
                    self.ended = last;
                    self.head = None;
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Ok((Inbound::Headers(block), last))) => {
                    self.ended = last;
                    let version = self.stream.shared.version;
                    let trailers = self.trailers.get_or_insert_default();
                    if let Err(error) = trailers::add(version, self.head.as_ref(), trailers, &block)
                    {
                        self.ended = true;
                        self.trailers = None;
                        self.stream.reset(RstStatus::PROTOCOL_ERROR);
                        return Poll::Ready(Some(Err(Error::Trailers(error))));
                    }
                }
                Some(Err(error)) => {
                    self.ended = true;
                    self.trailers = None;
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.ended = true,
            }
        }
        Poll::Ready(
            self.trailers
                .take()
                .map(|trailers| Ok(Frame::trailers(trailers))),
        )
    }
}

impl Drop for ReceiveBody {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        match self.stream.shared.role {
            Role::Client => self.stream.cancel_unless_received(),
            Role::Server => self.stream.discard_inbound(),
        }
    }
}
