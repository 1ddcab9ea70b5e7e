//! Answers a request, and pushes the answers to later ones.

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

/// The rest of an answer on its way; done when its last byte was handed to the session.
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

/// Answers one request, or one push. Dropped unused it resets the stream with INTERNAL_ERROR.
#[derive(Debug)]
pub struct Responder {
    /// There until the answer began.
    stream: Option<StreamRef>,
    id: StreamId,
    kind: Kind,
    /// What a push answers; of a request the stream knows it.
    pushed: Option<Uri>,
    /// Within which a request is answered.
    pub(super) span: Span,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Answered by SYN_REPLY.
    Reply { head: bool, tunnel: bool },
    /// Answered by HEADERS: SYN_STREAM was ours.
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

    /// Answers a push of ours.
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

    /// The stream; 0 for a push in one block, which has none until it is answered.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Sends `response`; done when its last byte was handed to the session.
    ///
    /// Hop-by-hop headers are left out and a content-length is added if the body's length is known. No body is
    /// sent to HEAD, or with 204 and 304. A request whose DATA differs in length from its content-length is
    /// answered with 400 instead.
    ///
    /// While all requests of the client have the highest priority, answers are ordered by content-type: pages,
    /// style sheets, scripts, and pictures last; except tunnels, event streams and answers without a type. From
    /// the first request with another priority on, the client's priorities apply, for answers in progress too.
    ///
    /// # Errors
    ///
    /// Why the stream ended before: reset by the peer, session lost; [`Error::Body`] if the body
    /// failed, or [`Error::Headers`] if the headers are too long, when the stream was reset with
    /// INTERNAL_ERROR.
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

    /// As [`respond`](Self::respond), at once: the head, and of the body what is at hand and finds room. The
    /// rest is sent by the future, which, dropped, cancels the stream.
    ///
    /// # Errors
    ///
    /// As [`respond`](Self::respond), for what is seen at once.
    pub fn start<B>(mut self, response: Response<B>) -> Result<ResponseBodyFuture, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.begin(response).map(ResponseBodyFuture)
    }

    /// Sends the head, and of the body what is at hand and finds room; gives the rest.
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
        // Under one lock, so that a small answer is one trip, and one wake of the driver.
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

    /// Pushes the response to `request`, a GET whose URI has the origin of this request. Call it before
    /// [`respond`](Self::respond): a push must be announced before the client can request it. With [one
    /// block](PushForm::OneBlock) it is announced with its response, so that must be sent before as well.
    ///
    /// # Errors
    ///
    /// [`Error::PushRefused`] if the request may not be pushed; [`Error::TooManyStreams`] if the client accepts no
    /// more pushes, or none; [`Error::Closing`] if the session ends.
    pub fn push(&self, request: &Request<()>, priority: Priority) -> Result<Self, Error> {
        if !matches!(self.kind, Kind::Reply { .. }) {
            return Err(Error::PushRefused {
                reason: "a push cannot have pushes",
            });
        }
        open_push(&self.stream().shared, self.id, request, priority)
    }

    /// RST_STREAM instead of an answer.
    pub fn reset(mut self, status: RstStatus) {
        if let Some(stream) = self.stream.take() {
            stream.reset(status);
        }
    }

    /// Ready when the peer reset the stream, or the session was lost: no one needs the answer. The peer does not
    /// know a push in one block before its answer, and so cannot reset it.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        self.stream().poll_failure(cx)
    }

    /// As [`poll_reset`](Self::poll_reset), to await.
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
