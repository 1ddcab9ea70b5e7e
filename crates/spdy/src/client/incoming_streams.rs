//! Streams that a server opens, for protocols that are not HTTP (SPDY/3.1 §2.3: either side may open one).

use std::future::poll_fn;
use std::task::{Context, Poll};

use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::client::session::Session;
use crate::error::Error;
use crate::session::incoming;
use crate::session::incoming::Incoming;
use crate::stream::Stream;

/// The streams that the server opens, in order of arrival. Dropping it refuses all later streams.
///
/// It keeps the session open like a [`Session`] handle: a program that only accepts streams needs no other handle. A program that
/// drops all of them and still accepts streams calls [`Session::shutdown`] first, to end the session.
#[derive(Debug)]
pub struct IncomingStreams {
    session: Session,
}

impl IncomingStreams {
    pub(super) fn new(session: Session) -> Self {
        Self { session }
    }

    /// The next stream; `None` when the session has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<IncomingStream> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`next`](Self::next), for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<IncomingStream>> {
        incoming::poll_next(&self.session.shared, cx).map(|next| next.map(IncomingStream))
    }
}

impl Drop for IncomingStreams {
    fn drop(&mut self) {
        self.session.shared.command(incoming::refuse_all);
    }
}

/// A stream that the server opened and that was not accepted yet. Dropping it refuses the stream.
#[derive(Debug)]
pub struct IncomingStream(Incoming);

impl IncomingStream {
    /// Its headers, unchanged.
    #[must_use]
    pub fn headers(&self) -> &HeaderBlock {
        self.0.headers()
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.0.priority()
    }

    /// Its ID.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.0.id()
    }

    /// The associated stream, opened by this side; 0 for none.
    #[must_use]
    pub fn associated_to(&self) -> StreamId {
        self.0.associated_to()
    }

    /// True if this side cannot send on it: the server set the flag, or it is associated with a stream of this side (the pushes of
    /// node-spdy and moby/spdystream lack the flag).
    #[must_use]
    pub fn is_unidirectional(&self) -> bool {
        self.0.is_unidirectional()
    }

    /// Accepts the stream with SYN_REPLY. On a unidirectional stream nothing is sent.
    ///
    /// # Errors
    ///
    /// Why the stream ended early; [`Error::Headers`] if the headers cannot be encoded. The stream is reset then.
    pub fn accept(self, headers: &HeaderBlock) -> Result<Stream, Error> {
        self.0.accept_raw(headers)
    }

    /// Refuses the stream with RST_STREAM.
    pub fn reject(self, status: RstStatus) {
        self.0.reject(status);
    }
}
