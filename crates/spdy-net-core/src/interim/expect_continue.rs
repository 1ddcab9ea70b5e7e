//! `Expect: 100-continue` towards a server (RFC 9110 §10.1.1): the body of such a request is held back until the server requests it.
//!
//! ```text
//!  head sent ── 100 (Continue), or nothing for CONTINUE_TIMEOUT ──▶ the body is sent
//!            ── a final response ────────────────────────────────▶ the body is never sent: it fails when the response is over, which
//!                                                                   ends the HTTP/1.1 connection or resets the HTTP/2 stream
//! ```
//!
//! The first of these three events decides. If a server responds without reading the content, it would read a later body as its
//! next request. So an HTTP/1.1 connection is reused only if the server requested the body with 100 (Continue).
//!
//! A proxy that forwards its client's body therefore sends 100 (Continue) to that client only after the origin did. Over HTTP/1.1 and
//! HTTP/2; SPDY has no interim responses, and the clients that send to HTTP/3 servers already have their bodies.

use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{HeaderMap, Request, Response, header};
use http_body::Body as _;
use parking_lot::Mutex;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};

use crate::body_wrapper::{with_guard, wrap_poll};
use crate::latch::Latch;

/// Timeout for 100 (Continue). Many servers never send it, so a client must not wait for it without limit (RFC 9110 §10.1.1).
pub const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// True if a request with these headers announces that its body waits for 100 (Continue).
#[must_use]
pub fn expects_continue(headers: &HeaderMap) -> bool {
    let mut expected = headers.get_all(header::EXPECT).iter();
    expected.any(|it| it.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The event that decided whether the body is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Outcome {
    /// The server responded with 100 (Continue): the body is sent.
    Continued,
    /// Nothing arrived for [`CONTINUE_TIMEOUT`]: the body is sent.
    TimedOut,
    /// A final response arrived, or the exchange failed: the body is not sent.
    Over,
}

/// State that an exchange shares with the body that it holds back. Clones share it.
#[derive(Clone, Debug, Default)]
struct Hold {
    outcome: Arc<Mutex<Option<Outcome>>>,
    /// Set by 100 (Continue).
    go_on: Latch,
    /// Set when the exchange has ended.
    ended: Latch,
}

impl Hold {
    /// Sets the outcome to `outcome` unless it is set. Returns the outcome.
    fn decide(&self, outcome: Outcome) -> Outcome {
        let mut decided = self.outcome.lock();
        *decided.get_or_insert(outcome)
    }

    /// Waits until the body may be sent (`true`), or until the exchange has ended without it (`false`).
    async fn wait(self, timeout: BoxFuture<()>) -> bool {
        let (go_on, ended) = (self.go_on.wait(), self.ended.wait());
        let outcome = match select(ended, select(go_on, timeout)).await {
            Either::Left(_) => Outcome::Over,
            Either::Right((Either::Left(_), _)) => Outcome::Continued,
            Either::Right((Either::Right(_), _)) => Outcome::TimedOut,
        };
        match self.decide(outcome) {
            Outcome::Continued | Outcome::TimedOut => true,
            Outcome::Over => {
                self.ended.wait().await;
                false
            }
        }
    }
}

/// Reports a 100 (Continue) to the held body of an exchange.
#[derive(Debug)]
pub struct ContinueSignal(Hold);

impl ContinueSignal {
    /// Handles a 1xx response with `status`.
    pub fn handle_interim(&self, status: http::StatusCode) {
        if status == http::StatusCode::CONTINUE {
            self.0.decide(Outcome::Continued);
            self.0.go_on.set();
        }
    }
}

/// The exchange of a request whose body is held back. The body fails when this is dropped first.
#[derive(Debug)]
pub struct Expectation(Hold);

impl Expectation {
    /// Holds back the body of `request` if its headers announce that; otherwise the request is unchanged.
    pub fn of(request: Request<Body>, runtime: &SharedRuntime) -> (Request<Body>, Option<Self>) {
        let is_held = expects_continue(request.headers());
        if !is_held || request.body().is_end_stream() {
            return (request, None);
        }
        let hold = Hold::default();
        let timeout = runtime.sleep_until(runtime.now() + CONTINUE_TIMEOUT);
        let may_send = Box::pin(hold.clone().wait(timeout));
        let request = request.map(|body| hold_back(body, may_send));
        (request, Some(Self(hold)))
    }

    /// The receiver of this exchange's 1xx responses.
    pub fn signal(&self) -> ContinueSignal {
        ContinueSignal(self.0.clone())
    }

    /// Handles the head of the final response: from now on a held body is not sent. Returns whether the server requested the body
    /// before. If it did not, it may not read the body, so an HTTP/1.1 connection cannot be used again.
    #[must_use]
    pub fn handle_final_head(&self) -> bool {
        self.0.decide(Outcome::Over) == Outcome::Continued
    }

    /// Wraps `response`; a body that is still held fails when the response has ended.
    pub fn until_end_of(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| match body.is_end_stream() {
            true => body,
            false => with_guard(body, self, |_| {}),
        })
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.0.decide(Outcome::Over);
        self.0.ended.set();
    }
}

/// The exchange ended before the server requested the body.
#[derive(Debug, thiserror::Error)]
#[error("the server responded without requesting the body")]
struct BodyNotRequested;

/// `body`, sent once `may_send` returns `true`. If it returns `false`, the body fails.
fn hold_back(body: Body, may_send: BoxFuture<bool>) -> Body {
    let mut may_send = Some(may_send); // `None` once it gave `true`
    wrap_poll(body, move |body, cx| {
        if let Some(waiting) = &mut may_send {
            if !ready!(waiting.as_mut().poll(cx)) {
                // Another poll fails again.
                may_send = Some(Box::pin(std::future::ready(false)));
                return Poll::Ready(Some(Err(BodyNotRequested.into())));
            }
            may_send = None;
        }
        body.poll_frame(cx)
    })
}
