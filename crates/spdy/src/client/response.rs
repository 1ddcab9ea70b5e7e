//! A pending response.

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

/// Resolves to the response when its head has arrived. Dropping it before that cancels the request.
///
/// The response's extensions contain its [`StreamId`](crate::StreamId).
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

/// A push claimed by the request.
#[derive(Debug)]
struct ClaimedPush {
    push: Push,
    /// Sends the request if the push fails.
    session: Session,
    request: request::Parts,
    priority: Priority,
}

#[derive(Debug)]
struct PendingResponse {
    stream: StreamRef,
    body: Option<SendBody>,
    method: Method,
    /// SYN_REPLY had a 1xx status: the final head follows in HEADERS.
    interim: bool,
}

impl ResponseFuture {
    pub(crate) fn failed(error: Error) -> Self {
        Self(State::Failed(error))
    }

    /// The future of a request that claimed `push`.
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
    /// If it is polled after it was ready.
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
                // The peer's data is not a response: the peer should stop sending.
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
    /// Sends the request as if there had been no push.
    fn send_after_all(self) -> ResponseFuture {
        let request = Request::from_parts(self.request, Body::empty());
        self.session.send(request, self.priority)
    }
}

impl PendingResponse {
    /// Sends the body and waits for the head at the same time. Does not wait for HEADERS after the head, and does not merge them
    /// into the head (see [`spdy_http::trailers`]).
    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(response::Head, HeaderBlock), Error>> {
        if let Some(body) = &mut self.body {
            match Pin::new(body).poll(cx) {
                Poll::Ready(Err(error @ Error::Body(_))) => return Poll::Ready(Err(error)),
                // Any other failure is the stream's, and the response may have arrived before it.
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
            // At most `headers_per_stream` interim responses.
            if head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS {
                self.interim = true;
                continue;
            }
            return Poll::Ready(Ok((head, block)));
        }
    }

    /// Waits for HEADERS with the final status after an interim one.
    fn poll_headers(&self, cx: &mut Context<'_>) -> Poll<Result<HeaderBlock, Error>> {
        let missing = || Error::Response(BadResponse::Missing { name: ":status" });
        Poll::Ready(match ready!(self.stream.poll_inbound(cx)) {
            Some(Ok(Inbound::Headers(block))) => Ok(block),
            Some(Ok(Inbound::Data(_))) | None => Err(missing()),
            Some(Err(error)) => Err(error),
        })
    }

    /// Builds the response, with a body that reads the stream.
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
            // The response came before the request body was complete: the rest is sent by a task.
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
                // Content-length is only metadata for HEAD.
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
