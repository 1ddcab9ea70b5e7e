//! Received pushes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Response, request, response};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_http::content_length::LengthCheck;
use spdy_http::push::decode_response;
use spdy_http::response::BadResponse;

use crate::body::Body;
use crate::error::Error;
use crate::receive_body::ReceiveBody;
use crate::session::entry::{Inbound, Opening, register};
use crate::session::incoming;
use crate::session::push_limits::PushInfo;
use crate::session::push_parent::PushParent;
use crate::session::shared::Shared;
use crate::session::stream_ref::StreamRef;

/// The pushes of a session, in order of arrival. Dropping it refuses all later pushes.
#[derive(Debug)]
pub struct Pushes {
    shared: Arc<Shared>,
}

impl Pushes {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The next push; `None` when the session has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Push> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`next`](Self::next), for hand-written futures.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Push>> {
        let mut old = None;
        self.shared.watch_run();
        let opened = self.shared.look(|state| match state.incoming.pop_front() {
            Some(key) => {
                let entry = &mut state.entries[key];
                entry.handles = 1;
                Poll::Ready(entry.opening.take().map(|opening| (key, entry.id, opening)))
            }
            None if state.ended.is_some() => Poll::Ready(None),
            None => {
                register(&mut state.incoming_waker, cx.waker(), &mut old);
                Poll::Pending
            }
        });
        opened.map(|opened| {
            let (key, id, opening) = opened?;
            let stream = StreamRef::from_counted(self.shared.clone(), key);
            Push::new(stream, id, *opening)
        })
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        self.shared.command(incoming::refuse_all);
    }
}

/// One pushed response. Dropping it before it is used cancels the push.
#[derive(Debug)]
pub struct Push {
    /// `Some` until the response is taken.
    stream: Option<StreamRef>,
    id: StreamId,
    associated_to: StreamId,
    priority: Priority,
    request: request::Parts,
    response: Option<response::Parts>,
    /// The block with the response's head: that of SYN_STREAM, or of a later HEADERS.
    block: HeaderBlock,
    /// Our request that the push is associated with.
    parent: Option<Arc<PushParent>>,
}

impl Push {
    pub(crate) fn new(stream: StreamRef, id: StreamId, opening: Opening) -> Option<Self> {
        let promise = opening.promise?;
        Some(Self {
            stream: Some(stream),
            id,
            associated_to: opening.associated_to,
            priority: opening.priority,
            request: promise.request,
            response: promise.response,
            block: opening.headers,
            parent: opening.parent,
        })
    }

    /// Removes the push `key` from the queue.
    pub(crate) fn of_key(shared: &Arc<Shared>, key: usize) -> Option<Self> {
        let stream = StreamRef::from_counted(shared.clone(), key);
        let (id, opening) = stream.look(|entry| (entry.id, entry.opening.take()));
        Self::new(stream, id, *opening?)
    }

    /// The GET that it answers: an absolute URI with the same origin as the associated request.
    #[must_use]
    pub fn request(&self) -> &request::Parts {
        &self.request
    }

    /// The stream.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The stream of the associated request.
    #[must_use]
    pub fn associated_to(&self) -> StreamId {
        self.associated_to
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// True if `response`, the response of this push, matches a request with `headers`.
    pub(crate) fn is_for(&self, headers: &HeaderMap, response: &Response<Body>) -> bool {
        let head = (response.status(), response.headers());
        let parent = self.parent.as_ref();
        parent.is_some_and(|page| page.is_same_response(headers, Some(head)))
    }

    /// Waits for its status and headers. The response's extensions contain a [`PushInfo`].
    ///
    /// # Errors
    ///
    /// Why the push ended early, or [`Error::Response`] if it is not a valid response.
    pub async fn response(mut self) -> Result<Response<Body>, Error> {
        poll_fn(|cx| self.poll_response(cx)).await
    }

    /// Like [`response`](Self::response); must not be polled again after it was ready.
    pub(crate) fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<Body>, Error>> {
        let Some(stream) = &self.stream else {
            unreachable!("the response was taken before")
        };
        let mut head = match self.response.take() {
            Some(head) => head,
            None => {
                let (head, block) = ready!(poll_head(stream, cx))?;
                self.block = block;
                head
            }
        };
        let read_out = stream.look(|entry| {
            let mut length = LengthCheck::of(&head.headers);
            let received = usize::try_from(entry.received_bytes).unwrap_or(usize::MAX);
            entry.mismatch = length.count(received, entry.fin_received).err();
            entry.length = length;
            entry.is_drained() && entry.mismatch.is_none()
        });
        head.extensions.insert(self.id);
        head.extensions.insert(PushInfo {
            id: self.id,
            associated_to: self.associated_to,
        });
        let body = match self.stream.take() {
            Some(stream) if !read_out => {
                let block = std::mem::take(&mut self.block);
                Body::received(ReceiveBody::new(stream, block))
            }
            _ => Body::empty(),
        };
        Poll::Ready(Ok(Response::from_parts(head, body)))
    }
}

/// Waits for HEADERS with the pushed response's status.
fn poll_head(
    stream: &StreamRef,
    cx: &mut Context<'_>,
) -> Poll<Result<(response::Parts, HeaderBlock), Error>> {
    stream.poll_inbound(cx).map(|inbound| match inbound {
        Some(Ok(Inbound::Headers(block))) => {
            let head = decode_response(stream.shared.version, &block)?;
            Ok((head, block))
        }
        Some(Ok(Inbound::Data(_))) | None => {
            Err(Error::Response(BadResponse::Missing { name: ":status" }))
        }
        Some(Err(error)) => Err(error),
    })
}

impl Drop for Push {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.cancel_unless_received();
        }
    }
}
