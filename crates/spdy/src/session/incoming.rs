//! A stream that the peer opened and that was not answered yet, from a server's [`Accept`](crate::server::Accept) or a client's
//! [`IncomingStreams`](crate::client::IncomingStreams).

use std::sync::Arc;
use std::task::{Context, Poll};

use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::error::Error;
use crate::session::block_check;
use crate::session::entry::{Opening, register};
use crate::session::shared::Shared;
use crate::session::state::State;
use crate::session::stream_ref::StreamRef;
use crate::stream::Stream;
use crate::trace;

/// A stream of the peer, removed from the queue.
struct OpenedStream {
    key: usize,
    id: StreamId,
    opening: Box<Opening>,
    /// FIN has arrived, without DATA.
    ended: bool,
}

/// Removes the first queued stream, with one handle.
fn take(state: &mut State) -> Option<OpenedStream> {
    while let Some(key) = state.incoming.pop_front() {
        let entry = &mut state.entries[key];
        entry.handles = 1;
        if let Some(opening) = entry.opening.take() {
            return Some(OpenedStream {
                key,
                id: entry.id,
                opening,
                ended: entry.is_drained(),
            });
        }
    }
    None
}

/// The next stream that the peer opened; `None` when the session has ended.
pub(crate) fn poll_next(shared: &Arc<Shared>, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
    let mut old = None;
    shared.watch_run();
    let opened = shared.look(|state| match take(state) {
        Some(opened) => Poll::Ready(Some(opened)),
        None if state.ended.is_some() => Poll::Ready(None),
        None => {
            register(&mut state.incoming_waker, cx.waker(), &mut old);
            Poll::Pending
        }
    });
    opened.map(|opened| opened.map(|opened| Incoming::new(shared, opened)))
}

/// The next stream, if one is queued.
pub(crate) fn try_next(shared: &Arc<Shared>) -> Option<Incoming> {
    shared
        .look(take)
        .map(|opened| Incoming::new(shared, opened))
}

/// Refuses the queued streams, and all later ones.
pub(crate) fn refuse_all(state: &mut State) {
    state.accepts_streams = false;
    while let Some(opened) = take(state) {
        let (id, status) = (opened.id, RstStatus::REFUSED_STREAM);
        state.reset(opened.key, status, Error::ResetByUs { id, status });
        // No task waits for it, so no waker is dropped with it.
        drop(state.release(opened.key));
    }
}

/// A stream that the peer opened and that was not answered yet. Dropping it refuses the stream.
#[derive(Debug)]
pub struct Incoming {
    pub(crate) stream: UnansweredStream,
    id: StreamId,
    pub(crate) opening: Box<Opening>,
    /// FIN has arrived, without DATA.
    pub(crate) ended: bool,
}

/// Refuses the stream when dropped, unless it was accepted.
#[derive(Debug)]
pub(crate) struct UnansweredStream(Option<StreamRef>);

impl UnansweredStream {
    pub(crate) fn take(mut self) -> StreamRef {
        let Some(stream) = self.0.take() else {
            unreachable!("the stream was taken twice")
        };
        stream
    }
}

impl Drop for UnansweredStream {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            stream.reset(RstStatus::REFUSED_STREAM);
        }
    }
}

impl Incoming {
    fn new(shared: &Arc<Shared>, opened: OpenedStream) -> Self {
        let OpenedStream {
            key,
            id,
            opening,
            ended,
        } = opened;
        Self {
            stream: UnansweredStream(Some(StreamRef::from_counted(shared.clone(), key))),
            id,
            opening,
            ended,
        }
    }

    /// Its headers, unchanged.
    #[must_use]
    pub fn headers(&self) -> &HeaderBlock {
        &self.opening.headers
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.opening.priority
    }

    /// Its ID.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The associated stream; 0 for none.
    #[must_use]
    pub fn associated_to(&self) -> StreamId {
        self.opening.associated_to
    }

    /// True if the stream is unidirectional, so that the peer accepts no answer.
    #[must_use]
    pub fn is_unidirectional(&self) -> bool {
        self.opening.unidirectional
    }

    /// Accepts the stream with SYN_REPLY, without HTTP. On a unidirectional stream nothing is sent.
    ///
    /// # Errors
    ///
    /// Why the stream ended early; [`Error::Headers`] if the headers cannot be encoded. The stream is reset then.
    pub fn accept_raw(self, headers: &HeaderBlock) -> Result<Stream, Error> {
        let unidirectional = self.is_unidirectional();
        let (stream, id) = (self.stream.take(), self.id);
        if let Err(error) = block_check::check(stream.shared.version, headers) {
            stream.reset(RstStatus::INTERNAL_ERROR);
            return Err(error);
        }
        let shared = &stream.shared;
        let now = || shared.runtime.now();
        let followed = trace::peer_stream(&shared.span, shared.role, id, now, None);
        stream.command(|state, key| {
            let entry = &mut state.entries[key];
            entry.span = followed;
            entry.answered = true;
            match &entry.failure {
                Some(failure) => Err(failure.clone()),
                None if unidirectional || state.machine.reply(id, headers, false) => Ok(()),
                None => Err(Error::SendClosed { id }),
            }
        })?;
        Ok(Stream::new(stream, id))
    }

    /// Refuses the stream with RST_STREAM.
    pub fn reject(self, status: RstStatus) {
        self.stream.take().reset(status);
    }
}
