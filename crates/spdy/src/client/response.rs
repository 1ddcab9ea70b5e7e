//! A response on its way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use http::{Method, Request, Response, StatusCode, request};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_http::content_length::LengthCheck;
use spdy_http::response::{self, BadResponse};

use crate::body::Body;
use crate::client::push::Push;
use crate::client::session::Session;
use crate::error::Error;
use crate::receive_body::ReceiveBody;
use crate::send_body::SendBody;
use crate::session::entry::Inbound;
use crate::session::stream_ref::StreamRef;

/// Gives the response once its head has come. Dropped before, it cancels the request.
///
/// The response's extensions hold its [`StreamId`](crate::StreamId).
#[derive(Debug)]
#[must_use = "dropping it cancels the request"]
pub struct ResponseFuture(State);

#[derive(Debug)]
enum State {
    Failed(Error),
    Waiting(Box<PendingResponse>),
    Claimed(Box<ClaimedPush>),
    Done,
}

/// A push that answers the request.
#[derive(Debug)]
struct ClaimedPush {
    push: Push,
    /// Should the push come to nothing, the request is sent after all.
    session: Session,
    request: request::Parts,
    priority: Priority,
}

#[derive(Debug)]
struct PendingResponse {
    stream: StreamRef,
    body: Option<SendBody>,
    method: Method,
    /// A 1xx came as SYN_REPLY: HEADERS bring the real head.
    interim: bool,
}

impl ResponseFuture {
    pub(crate) fn failed(error: Error) -> Self {
        Self(State::Failed(error))
    }

    /// Of a request that claimed `push`.
    pub(super) fn claimed(
        push: Push,
        session: Session,
        request: request::Parts,
        priority: Priority,
    ) -> Self {
        Self(State::Claimed(Box::new(ClaimedPush {
            push,
            session,
            request,
            priority,
        })))
    }

    pub(crate) fn new(stream: StreamRef, body: Option<SendBody>, method: Method) -> Self {
        Self(State::Waiting(Box::new(PendingResponse {
            stream,
            body,
            method,
            interim: false,
        })))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Error>;

    /// # Panics
    ///
    /// When polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Claimed(claimed) = &mut self.0 {
            match ready!(claimed.push.poll_response(cx)) {
                // Its head may have arrived after it was claimed.
                Ok(response) if claimed.push.is_for(&claimed.request.headers, &response) => {
                    self.0 = State::Done;
                    return Poll::Ready(Ok(response));
                }
                other => {
                    let reason = other.map_or_else(
                        |error| error.to_string(),
                        |_| "it matches another request".to_owned(),
                    );
                    tracing::debug!(reason, uri = %claimed.request.uri, "a claimed push was not usable");
                    let sent = match std::mem::replace(&mut self.0, State::Done) {
                        State::Claimed(claimed) => claimed.send_after_all(),
                        _ => unreachable!("the state changed after the match"),
                    };
                    *self = sent;
                }
            }
        }
        let result = match &mut self.0 {
            State::Waiting(waiting) => match waiting.poll_head(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(head) => head,
            },
            State::Failed(error) => Err(error.clone()),
            State::Claimed(_) => unreachable!("a claimed push was handled before"),
            State::Done => panic!("response future polled after it was ready"),
        };
        let waiting = std::mem::replace(&mut self.0, State::Done);
        Poll::Ready(match (result, waiting) {
            (Ok((head, block)), State::Waiting(waiting)) => waiting.into_response(head, block),
            (Err(error), State::Waiting(waiting)) => {
                // The peer's data is not a response: it should stop sending.
                waiting.stream.reset(RstStatus::PROTOCOL_ERROR);
                Err(error)
            }
            (result, _) => result.map(|_| unreachable!("a response head without a stream")),
        })
    }
}

impl Drop for ResponseFuture {
    fn drop(&mut self) {
        if let State::Waiting(waiting) = &self.0 {
            waiting.stream.reset(RstStatus::CANCEL);
        }
    }
}

impl ClaimedPush {
    /// The request as if there had been no push.
    fn send_after_all(self) -> ResponseFuture {
        let request = Request::from_parts(self.request, Body::empty());
        self.session.send(request, self.priority)
    }
}

impl PendingResponse {
    /// Sends the body and waits for the head, whichever can proceed. HEADERS after the head are not waited
    /// for, and not joined to it if they are there (see [`spdy_http::trailers`]).
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(response::Head, HeaderBlock), Error>> {
        if let Some(body) = &mut self.body {
            match Pin::new(body).poll(cx) {
                Poll::Ready(Err(error @ Error::Body(_))) => return Poll::Ready(Err(error)),
                // Another failure is the stream's, and the response may have come before it.
                Poll::Ready(_) => self.body = None,
                Poll::Pending => {}
            }
        }
        let version = self.stream.shared.version;
        loop {
            let block = if self.interim {
                ready!(self.poll_headers(cx))?
            } else {
                ready!(self.stream.poll_reply(cx))?
            };
            let head = response::decode(version, &block)?;
            // As many as `headers_per_stream` lets through.
            if head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS {
                self.interim = true;
                continue;
            }
            return Poll::Ready(Ok((head, block)));
        }
    }

    /// The HEADERS that carry the real status after an interim one.
    fn poll_headers(&self, cx: &mut Context<'_>) -> Poll<Result<HeaderBlock, Error>> {
        let missing = || Error::Response(BadResponse::Missing { name: ":status" });
        Poll::Ready(match ready!(self.stream.poll_inbound(cx)) {
            Some(Ok(Inbound::Headers(block))) => Ok(block),
            Some(Ok(Inbound::Data(_))) | None => Err(missing()),
            Some(Err(error)) => Err(error),
        })
    }

    /// The response, its body joined to the stream.
    fn into_response(
        self,
        mut head: response::Head,
        block: HeaderBlock,
    ) -> Result<Response<Body>, Error> {
        let Self {
            stream,
            body,
            method,
            ..
        } = self;
        if let Some(body) = body {
            // The answer came before the question was finished: the rest goes on by itself.
            let runtime = stream.shared.runtime.clone();
            runtime.spawn(Box::pin(async move {
                if let Err(error) = body.await {
                    tracing::debug!(%error, "request body was not sent completely");
                }
            }));
        }
        let tunnel = method == Method::CONNECT;
        let no_body = !tunnel && response::has_no_body(&method, head.status);
        let mut woken = Vec::new();
        let (read_out, id) = stream.command(|state, key| {
            state.answered(key, head.status);
            let entry = &mut state.entries[key];
            if no_body {
                // Content-length is metadata there.
                entry.no_body = true;
                if entry.received_bytes > 0 {
                    state.refuse_data(key, &mut woken);
                }
            } else if !tunnel {
                let mut length = LengthCheck::of(&head.headers);
                let received = usize::try_from(entry.received_bytes).unwrap_or(usize::MAX);
                entry.mismatch = length.count(received, entry.fin_received).err();
                entry.length = length;
            }
            let entry = &state.entries[key];
            (entry.is_drained() && entry.mismatch.is_none(), entry.id)
        });
        woken.into_iter().for_each(Waker::wake);
        head.extensions.insert(id);
        let body = if read_out {
            Body::empty()
        } else {
            Body::received(ReceiveBody::new(stream, block))
        };
        Ok(Response::from_parts(head, body))
    }
}
