//! `Expect: 100-continue` towards a server (RFC 9110 §10.1.1): the body of such a request is held back until the server wants it.
//!
//! ```text
//!  head sent ── 100 (Continue), or nothing for CONTINUE_TIMEOUT ──▶ the body is sent
//!            ── a final response ────────────────────────────────▶ the body fails once that has ended, which ends the HTTP/1.1
//!                                                                   connection or resets the HTTP/2 stream
//! ```
//!
//! A proxy that passes the body of its own client on therefore asks that client to go on no sooner than the origin does. Over HTTP/1.1 and
//! HTTP/2; SPDY has no interim responses, and HTTP/3 servers are asked by clients that have their bodies at hand.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, Request, Response, header};
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};

use crate::latch::Latch;

/// How long a body waits for 100 (Continue). Many servers never send it, and a client is not to wait for them (RFC 9110 §10.1.1).
pub const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether a request with these headers announces that its body waits for 100 (Continue).
#[must_use]
pub fn expects_continue(headers: &HeaderMap) -> bool {
    let mut expected = headers.get_all(header::EXPECT).iter();
    expected.any(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The exchange of a request whose body is held back. The body fails when this is dropped first.
#[derive(Debug, Default)]
pub(crate) struct Expectation {
    go_on: Latch,
    over: Latch,
}

impl Expectation {
    /// Holds back the body of `request` if it announces that; else it is as it was.
    pub(crate) fn of(
        request: Request<Body>,
        runtime: &SharedRuntime,
    ) -> (Request<Body>, Option<Self>) {
        let is_held = expects_continue(request.headers());
        if !is_held || http_body::Body::is_end_stream(request.body()) {
            return (request, None);
        }
        let expectation = Self::default();
        let (go_on, over) = (expectation.go_on.wait(), expectation.over.wait());
        let timeout = runtime.sleep_until(runtime.now() + CONTINUE_TIMEOUT);
        let wanted = Box::pin(async move {
            matches!(select(select(go_on, timeout), over).await, Either::Left(_))
        });
        let request = request.map(|body| {
            Body::wrap(HeldBody {
                body,
                wanted: Some(wanted),
            })
        });
        (request, Some(expectation))
    }

    /// Takes in a 1xx response with `status`.
    pub(crate) fn interim(&self, status: http::StatusCode) {
        if status == http::StatusCode::CONTINUE {
            self.go_on.set();
        }
    }

    /// The latch that a 100 (Continue) is to set.
    pub(crate) fn go_on(&self) -> Latch {
        self.go_on.clone()
    }

    /// `response`, after whose end a body that nobody wanted fails.
    pub(crate) fn answered(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| match http_body::Body::is_end_stream(&body) {
            true => body,
            false => Body::wrap(AnswerBody {
                body,
                expectation: Some(self),
            }),
        })
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.over.set();
    }
}

/// The exchange ended, and its body had not been asked for.
#[derive(Debug, thiserror::Error)]
#[error("the server responded without asking for the body")]
struct Unwanted;

struct HeldBody {
    body: Body,
    /// Whether the server wants it; `None` once it does.
    wanted: Option<BoxFuture<bool>>,
}

impl http_body::Body for HeldBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(wanted) = &mut self.wanted {
            if !ready!(wanted.as_mut().poll(cx)) {
                // Asked once more, it says the same.
                self.wanted = Some(Box::pin(std::future::ready(false)));
                return Poll::Ready(Some(Err(Unwanted.into())));
            }
            self.wanted = None;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct AnswerBody {
    body: Body,
    /// `None` at the end.
    expectation: Option<Expectation>,
}

impl http_body::Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
            self.expectation = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
