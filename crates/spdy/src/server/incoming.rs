//! Reads a stream that a client opened as an HTTP request.

use http::request::Parts;
use http::{Method, Request, Response};
use spdy_frame::status::RstStatus;
use spdy_http::content_length::LengthCheck;
use spdy_http::request::{self, BadRequest};
use spdy_http::response;
use spdy_session::config::Role;
use tracing::Span;

use crate::body::Body;
use crate::receive_body::ReceiveBody;
use crate::server::push::Pusher;
use crate::server::responder::Responder;
use crate::session::incoming::Incoming;
use crate::trace;

impl Incoming {
    /// Reads the stream as an HTTP request.
    ///
    /// The URI is absolute, from scheme, host and path (`host:port` for CONNECT). The extensions contain a [`Pusher`], which also has
    /// the stream's ID and priority. There is no Host header, because the URI has the host, and no hop-by-hop header.
    ///
    /// # Errors
    ///
    /// [`BadRequest`] if it is not a valid request: its [status](BadRequest::status) was sent, or the stream was
    /// reset with PROTOCOL_ERROR if it cannot be answered.
    pub fn into_request(self) -> Result<(Request<Body>, Responder), BadRequest> {
        if let Some(reason) = self.rejection_reason() {
            self.reject(RstStatus::PROTOCOL_ERROR);
            return Err(BadRequest::Stream { reason });
        }
        let (id, priority) = (self.id(), self.priority());
        let stream = self.stream.take();
        let shared = &stream.shared;
        let head = request::decode(shared.version, &self.opening.headers);
        let now = || shared.runtime.now();
        let method_and_uri = head.as_ref().ok().map(|head| (&head.method, &head.uri));
        let followed = trace::peer_stream(&shared.span, Role::Server, id, now, method_and_uri);
        let span = followed
            .as_ref()
            .map_or_else(Span::none, |it| it.span.clone());
        let has_no_body = |head: &Parts| LengthCheck::of(&head.headers).count(0, true).is_ok();
        let is_bodiless = self.ended && head.as_ref().is_ok_and(has_no_body);
        // The reader of the body needs the block to check the trailers.
        let block = (!is_bodiless).then(|| self.opening.headers.clone());
        stream.look_all(|state, key| {
            state.exchanges.requests += 1;
            let entry = &mut state.entries[key];
            entry.span = followed;
            entry.request = Some(self.opening);
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
        let body = match block {
            None => Body::empty(),
            Some(block) => {
                // A tunnel has no length. If the request has ended without its body, the reader of the body gets the length error:
                // the client did not intend an empty one.
                let length = match head.method {
                    Method::CONNECT if !self.ended => LengthCheck::default(),
                    _ => LengthCheck::of(&head.headers),
                };
                stream.command(|state, key| state.expect_length(key, length));
                Body::received(ReceiveBody::new(stream.clone(), block))
            }
        };
        head.extensions
            .insert(Pusher::new(shared.clone(), id, priority));
        let responder = Responder::new(stream, id, &head.method, span);
        Ok((Request::from_parts(head, body), responder))
    }

    /// Why this stream cannot carry a request, regardless of its headers (SPDY/3.1 §3.2.1, §3.3.1); `None` if it can.
    fn rejection_reason(&self) -> Option<&'static str> {
        let opening = &self.opening;
        if opening.unidirectional {
            Some("it is unidirectional")
        } else if !opening.associated_to.is_zero() {
            Some("it is associated with another stream, which only a push is")
        } else if opening.headers.is_empty() {
            // Not just a missing method: the frame lost its block, or belongs to a raw protocol.
            Some("its header block is empty")
        } else {
            None
        }
    }
}
