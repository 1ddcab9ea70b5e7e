//! Answers a request, and pushes further responses.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
#[cfg(doc)]
use spdy_http::push::PushForm;
use spdy_http::{push, response, urgency};

use tracing::Span;

use crate::body::{Body, BoxError};
use crate::error::Error;
use crate::send_body::SendBody;
use crate::server::push::open_push;
use crate::session::block_check;
use crate::session::stream_ref::StreamRef;

/// Sends the rest of a response; resolves when the last byte was passed to the session.
#[derive(Debug)]
#[must_use = "dropping it cancels the stream"]
pub struct ResponseBodyFuture(Option<SendBody>);

impl Future for ResponseBodyFuture {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Some(rest) => Pin::new(rest).poll(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Answers one request, or one push. Dropping it unused resets the stream with INTERNAL_ERROR.
#[derive(Debug)]
pub struct Responder {
    /// `Some` until the response begins.
    stream: Option<StreamRef>,
    id: StreamId,
    kind: Kind,
    /// The URL of a push. That of a request is stored with the stream.
    pushed: Option<Uri>,
    /// The span in which the request is handled.
    pub(super) span: Span,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Answered by SYN_REPLY.
    Reply { head: bool, tunnel: bool },
    /// Answered by HEADERS, because this side sent SYN_STREAM.
    Push,
    /// A push in one block, not announced yet: answered by SYN_STREAM.
    Deferred {
        parent: StreamId,
        priority: Priority,
    },
}

impl Responder {
    pub(super) fn new(stream: StreamRef, id: StreamId, method: &Method, span: Span) -> Self {
        Self {
            stream: Some(stream),
            id,
            kind: Kind::Reply {
                head: *method == Method::HEAD,
                tunnel: *method == Method::CONNECT,
            },
            pushed: None,
            span,
        }
    }

    /// Creates the responder of a push.
    pub(super) fn of_push(stream: StreamRef, id: StreamId, kind: Kind, uri: Uri) -> Self {
        Self {
            stream: Some(stream),
            id,
            kind,
            pushed: Some(uri),
            span: Span::none(),
        }
    }

    fn stream(&self) -> &StreamRef {
        let Some(stream) = &self.stream else {
            unreachable!("the stream was taken before the response")
        };
        stream
    }

    /// The ID of the stream; 0 for a push in one block, which has none before its response.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Sends `response`; resolves when its last byte was passed to the session.
    ///
    /// Hop-by-hop headers are removed, and a content-length is added if the body's length is known. No body is sent for HEAD, or
    /// with 204 and 304. If the length of a request's DATA differs from its content-length, 400 is sent instead.
    ///
    /// While all requests of the client have the highest priority, responses are ordered by content-type: pages, style sheets,
    /// scripts, then images. Tunnels, event streams and responses without a type are not reordered. From the first request with
    /// another priority on, the client's priorities apply, also to responses in progress.
    ///
    /// # Errors
    ///
    /// Why the stream ended early: reset by the peer, session lost. [`Error::Body`] if the body failed, or [`Error::Headers`] if
    /// the headers are too long; the stream is then reset with INTERNAL_ERROR.
    pub async fn respond<B>(mut self, response: Response<B>) -> Result<(), Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        match self.begin(response)? {
            Some(rest) => rest.await,
            None => Ok(()),
        }
    }

    /// Like [`respond`](Self::respond), but immediately sends the head and the available part of the body, as far as there is room.
    /// The returned future sends the rest; dropping it cancels the stream.
    ///
    /// # Errors
    ///
    /// Those of [`respond`](Self::respond) that are detected immediately.
    pub fn start<B>(mut self, response: Response<B>) -> Result<ResponseBodyFuture, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.begin(response).map(ResponseBodyFuture)
    }

    /// Sends the head and the available part of the body, as far as there is room. Returns the rest.
    pub(super) fn begin<B>(&mut self, response: Response<B>) -> Result<Option<SendBody>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let Some(stream) = self.stream.take() else {
            unreachable!("a second response of one responder")
        };
        let (id, kind) = (self.id, self.kind);
        let (mut head, body) = response.into_parts();
        let mut body = Body::wrap(body);
        let bodiless = matches!(kind, Kind::Reply { head: true, .. })
            || response::has_no_body(&Method::GET, head.status);
        if bodiless {
            body = Body::empty();
        } else if let Some(length) = body.size_hint().exact()
            && !head.headers.contains_key(header::CONTENT_LENGTH)
        {
            head.headers
                .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        let version = stream.shared.version;
        let block = match kind {
            Kind::Reply { .. } => response::encode(version, &head),
            Kind::Push => push::encode_response(version, stream.shared.push_form, &head),
            Kind::Deferred { .. } => {
                let Some(uri) = &self.pushed else {
                    unreachable!("a deferred push without a URL")
                };
                push::encode_one_block(version, uri, &head)?
            }
        };
        if let Err(error) = block_check::check_length(version, &block) {
            stream.reset(RstStatus::INTERNAL_ERROR);
            return Err(error);
        }
        let mut first = body.take_full();
        // Under one lock, so that a small response needs the lock and a wake of the driver only once.
        let all_sent = stream.command(|state, key| {
            let entry = &mut state.entries[key];
            if let Some(failure) = &entry.failure {
                return Err(failure.clone());
            }
            entry.answered = true;
            let bad_length = entry.mismatch.is_some();
            // OkHttp and moby send 0 for everything: then the content-type decides (choice).
            if matches!(kind, Kind::Reply { tunnel: false, .. })
                && !state.peer_uses_priorities
                && let Some(urgency) = urgency::by_content_type(&head.headers)
            {
                state.machine.prioritise(id, urgency);
            }
            let mut fin = first.is_empty() && body.is_end_stream();
            let sent = match kind {
                Kind::Reply { .. } if bad_length => {
                    fin = true;
                    let (mut bad, ()) = Response::new(()).into_parts();
                    bad.status = StatusCode::BAD_REQUEST;
                    state
                        .machine
                        .reply(id, &response::encode(version, &bad), true)
                }
                Kind::Reply { .. } => state.machine.reply(id, &block, fin),
                Kind::Push => state.machine.headers(id, &block, fin),
                Kind::Deferred { parent, priority } => {
                    state.write_push_syn(key, &block, parent, priority)?;
                    if fin {
                        let id = state.entries[key].id;
                        state.machine.send_data(id, Bytes::new(), true)
                    } else {
                        true
                    }
                }
            };
            if !sent {
                return Err(Error::SendClosed { id });
            }
            if matches!(kind, Kind::Reply { .. }) {
                let bad = bad_length.then_some(StatusCode::BAD_REQUEST);
                state.answered(key, bad.unwrap_or(head.status));
            }
            if fin {
                state.sent_fin(key);
                return Ok(true);
            }
            let last = body.is_end_stream();
            if first.is_empty() {
                return Ok(false);
            }
            match state.send(key, &mut first, last) {
                Poll::Ready(sent) => sent.map(|()| last),
                Poll::Pending => Ok(false),
            }
        })?;
        Ok((!all_sent).then(|| SendBody::new(stream, first, body, RstStatus::INTERNAL_ERROR)))
    }

    /// Pushes the response to `request`, a GET whose URI has the origin of this request. Call it before [`respond`](Self::respond):
    /// a push must be announced before the client can request the resource itself. With [one block](PushForm::OneBlock) the
    /// announcement is part of the pushed response, so send that before `respond` as well.
    ///
    /// # Errors
    ///
    /// [`Error::PushRefused`] if the request may not be pushed; [`Error::TooManyStreams`] if the client's limit is reached or 0;
    /// [`Error::Closing`] if the session ends.
    pub fn push(&self, request: &Request<()>, priority: Priority) -> Result<Self, Error> {
        if !matches!(self.kind, Kind::Reply { .. }) {
            return Err(Error::PushRefused {
                reason: "a push cannot have pushes",
            });
        }
        open_push(&self.stream().shared, self.id, request, priority)
    }

    /// Sends RST_STREAM instead of a response.
    pub fn reset(mut self, status: RstStatus) {
        if let Some(stream) = self.stream.take() {
            stream.reset(status);
        }
    }

    /// Ready when the peer has reset the stream, or the session was lost: the response is no longer needed. A push in one block is
    /// unknown to the peer before its response, so the peer cannot reset it.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        self.stream().poll_failure(cx)
    }

    /// Like [`poll_reset`](Self::poll_reset), as a future.
    pub async fn wait_for_reset(&mut self) -> Error {
        poll_fn(|cx| self.poll_reset(cx)).await
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            stream.reset(RstStatus::INTERNAL_ERROR);
        }
    }
}
