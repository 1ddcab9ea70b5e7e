//! A stream that the peer opened, before anyone answered it.

use std::sync::Arc;

use http::{Method, Request, Response};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_http::length::LengthCheck;
use spdy_http::request::{self, BadRequest};
use spdy_http::response;
use spdy_session::config::Role;
use tracing::Span;

use crate::body::Body;
use crate::entry::Opening;
use crate::error::Error;
use crate::receive_body::ReceiveBody;
use crate::sendable;
use crate::server::push::Pusher;
use crate::server::responder::Responder;
use crate::shared::Shared;
use crate::stream::Stream;
use crate::stream_ref::StreamRef;
use crate::trace;

/// What is known of a stream when it is taken.
pub(super) struct Taken {
    pub(super) key: usize,
    pub(super) id: StreamId,
    pub(super) opening: Box<Opening>,
    /// Its FIN came, and no DATA.
    pub(super) ended: bool,
}

/// A stream that the peer opened and nobody answered yet. Dropped so, it is refused.
#[derive(Debug)]
pub struct Incoming {
    stream: Unanswered,
    id: StreamId,
    opening: Box<Opening>,
    ended: bool,
}

/// Refuses the stream, unless it was taken out.
#[derive(Debug)]
struct Unanswered(Option<StreamRef>);

impl Unanswered {
    fn take(mut self) -> StreamRef {
        let Some(stream) = self.0.take() else {
            unreachable!("a stream is taken out once")
        };
        stream
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(stream) = &self.0 {
            stream.reset(RstStatus::REFUSED_STREAM);
        }
    }
}

impl Incoming {
    pub(super) fn new(shared: &Arc<Shared>, taken: Taken) -> Self {
        let Taken {
            key,
            id,
            opening,
            ended,
        } = taken;
        Self {
            stream: Unanswered(Some(StreamRef::of_counted(shared.clone(), key))),
            id,
            opening,
            ended,
        }
    }

    /// Its headers, as they came.
    #[must_use]
    pub fn headers(&self) -> &HeaderBlock {
        &self.opening.headers
    }

    /// Its priority.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.opening.priority
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The stream it belongs to; 0 for none.
    #[must_use]
    pub fn associated_to(&self) -> StreamId {
        self.opening.associated_to
    }

    /// Whether the peer wants no answer.
    #[must_use]
    pub fn is_unidirectional(&self) -> bool {
        self.opening.unidirectional
    }

    /// Reads it as an HTTP request.
    ///
    /// The URI is absolute, from scheme, host and path (`host:port` for CONNECT). The extensions hold
    /// a [`Pusher`], which knows the stream's number and priority as well.
    ///
    /// # Errors
    ///
    /// [`BadRequest`], when it was none: its [status](BadRequest::status) has been sent, or the stream
    /// was reset with PROTOCOL_ERROR if it is none to answer on.
    pub fn into_request(self) -> Result<(Request<Body>, Responder), BadRequest> {
        if let Some(why) = self.why_no_request() {
            self.reject(RstStatus::PROTOCOL_ERROR);
            return Err(BadRequest::Stream { why });
        }
        let (id, priority) = (self.id, self.priority());
        let stream = self.stream.take();
        let shared = &stream.shared;
        let head = request::decode(shared.version, &self.opening.headers);
        let now = || shared.runtime.now();
        let asked = head.as_ref().ok().map(|head| (&head.method, &head.uri));
        let followed = trace::opened_by_peer(&shared.span, Role::Server, id, now, asked);
        let span = followed
            .as_ref()
            .map_or_else(Span::none, |it| it.span.clone());
        stream.look_all(|state, key| {
            state.exchanges.requests += 1;
            state.entries[key].span = followed;
            state.entries[key].uri = head.as_ref().ok().map(|head| head.uri.clone());
        });
        let mut head = match head {
            Ok(head) => head,
            Err(error) => {
                tracing::debug!(%error, stream = id.value(), "bad request");
                let (mut answer, ()) = Response::new(()).into_parts();
                answer.status = error.status();
                let block = response::encode(shared.version, &answer);
                stream.command(|state, key| {
                    state.entries[key].discard = true;
                    state.drop_unread(key);
                    if state.machine.reply(id, &block, true) {
                        state.answered(key, answer.status);
                        state.sent_fin(key);
                    }
                });
                return Err(error);
            }
        };
        let body = if self.ended {
            if LengthCheck::of(&head.headers).received(0, true).is_err() {
                stream
                    .command(|state, key| state.expect_length(key, LengthCheck::of(&head.headers)));
                // Who reads it is told, as where some of it came: it is not the empty body that somebody meant.
                Body::received(ReceiveBody::new(stream.clone(), self.opening.headers))
            } else {
                Body::empty()
            }
        } else {
            // A tunnel has no length.
            let length = if head.method == Method::CONNECT {
                LengthCheck::default()
            } else {
                LengthCheck::of(&head.headers)
            };
            stream.command(|state, key| state.expect_length(key, length));
            Body::received(ReceiveBody::new(stream.clone(), self.opening.headers))
        };
        head.extensions
            .insert(Pusher::new(shared.clone(), id, priority));
        let responder = Responder::new(stream, id, &head.method, span);
        Ok((Request::from_parts(head, body), responder))
    }

    /// Why no request can be on this stream, whatever its headers say (SPDY/3.1 §3.2.1, §3.3.1).
    fn why_no_request(&self) -> Option<&'static str> {
        let opening = &self.opening;
        if opening.unidirectional {
            Some("it is unidirectional")
        } else if !opening.associated_to.is_zero() {
            Some("it belongs to another, as only a push does")
        } else if opening.headers.is_empty() {
            // More than a missing method: a frame that lost its block, or a raw protocol's.
            Some("its header block is empty")
        } else {
            None
        }
    }

    /// Answers with SYN_REPLY and takes the stream as it is. On a unidirectional stream nothing is
    /// sent.
    ///
    /// # Errors
    ///
    /// Why the stream ended before; [`Error::Headers`] if the headers cannot be written, when the stream
    /// is reset.
    pub fn accept_raw(self, headers: &HeaderBlock) -> Result<Stream, Error> {
        let unidirectional = self.is_unidirectional();
        let (stream, id) = (self.stream.take(), self.id);
        if let Err(error) = sendable::check(stream.shared.version, headers) {
            stream.reset(RstStatus::INTERNAL_ERROR);
            return Err(error);
        }
        let shared = &stream.shared;
        let now = || shared.runtime.now();
        let followed = trace::opened_by_peer(&shared.span, Role::Server, id, now, None);
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

    /// RST_STREAM.
    pub fn reject(self, status: RstStatus) {
        self.stream.take().reset(status);
    }
}
