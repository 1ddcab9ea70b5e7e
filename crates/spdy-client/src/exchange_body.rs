//! Bodies of an exchange: a response body that frees the connection at its end, and a request body that can be sent again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use parking_lot::Mutex;
use spdy::body::{Body, BoxError};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;
use spdy_net::body_wrapper::wrap_poll;

use crate::client::Lease;
use crate::error::{Error, TimeoutPhase};
use crate::origin::Origin;

/// The copy of a request's body for a retry.
pub(crate) enum BodyReplay {
    /// The body is in memory.
    Copy(Body),
    /// The body can be read only once. The sender returns it here if it drops it unread.
    ReturnSlot(Arc<Mutex<Option<Body>>>),
}

impl BodyReplay {
    /// Splits `body` into the part to send and the copy for a retry.
    pub(crate) fn of(body: Body) -> (Body, Self) {
        match body.try_clone() {
            Some(copy) => (body, Self::Copy(copy)),
            None => {
                let return_slot = Arc::default();
                let returning_body = ReturningBody {
                    body: Some(body),
                    is_read: false,
                    return_slot: Arc::clone(&return_slot),
                };
                (Body::wrap(returning_body), Self::ReturnSlot(return_slot))
            }
        }
    }

    /// The body, if all of it is still available.
    pub(crate) fn take(self) -> Option<Body> {
        match self {
            Self::Copy(body) => Some(body),
            Self::ReturnSlot(return_slot) => return_slot.lock().take(),
        }
    }
}

/// A body that returns itself if it is dropped before the first read.
struct ReturningBody {
    /// `Some` until it is dropped.
    body: Option<Body>,
    is_read: bool,
    return_slot: Arc<Mutex<Option<Body>>>,
}

impl http_body::Body for ReturningBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.is_read = true;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Body::size_hint).unwrap_or_default()
    }
}

impl Drop for ReturningBody {
    fn drop(&mut self) {
        if !self.is_read {
            *self.return_slot.lock() = self.body.take();
        }
    }
}

/// Timeout for the next piece.
pub(crate) struct BodyTimeout {
    runtime: SharedRuntime,
    after: Duration,
    origin: Origin,
    /// When the last piece arrived, or the wait began.
    since: Option<Instant>,
    timer: Option<BoxFuture<()>>,
}

impl BodyTimeout {
    pub(crate) fn new(runtime: SharedRuntime, after: Duration, origin: Origin) -> Self {
        Self {
            runtime,
            after,
            origin,
            since: None,
            timer: None,
        }
    }

    /// To be called when data arrived.
    fn restart(&mut self) {
        self.since = None;
    }

    /// Ready when no data arrived in time. One timer serves many pieces: it is reset only when it expires.
    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<Error> {
        let since = *self.since.get_or_insert_with(|| self.runtime.now());
        loop {
            let deadline = since + self.after;
            let timer = self
                .timer
                .get_or_insert_with(|| self.runtime.sleep_until(deadline));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.timer = None;
            if self.runtime.now() >= deadline {
                let (origin, after) = (self.origin.clone(), self.after);
                return Poll::Ready(Error::TimedOut {
                    phase: TimeoutPhase::Body,
                    origin,
                    after,
                });
            }
        }
    }
}

/// Resources that the body of a response holds until its end.
struct BodyGuard {
    /// `None` after the body has ended, and if the connection is not shared.
    lease: Option<Lease>,
    timeout: Option<BodyTimeout>,
}

impl BodyGuard {
    fn end(&mut self) {
        self.lease = None;
        self.timeout = None;
    }
}

/// A response's body: it frees its connection at its end, and fails when no data arrives in time. `lease` is `None` for a
/// connection that serves no other request.
pub(crate) fn leased_body(body: Body, lease: Option<Lease>, timeout: Option<BodyTimeout>) -> Body {
    let mut guard = BodyGuard { lease, timeout };
    wrap_poll(body, move |mut body, cx| {
        match body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if body.is_end_stream() {
                    guard.end();
                } else if let Some(timeout) = &mut guard.timeout {
                    timeout.restart();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(ended) => {
                guard.end();
                Poll::Ready(ended)
            }
            Poll::Pending => {
                let Some(timeout) = &mut guard.timeout else {
                    return Poll::Pending;
                };
                let Poll::Ready(error) = timeout.poll_expired(cx) else {
                    return Poll::Pending;
                };
                body.set(Body::empty()); // dropped unread: the exchange is cancelled
                guard.end();
                Poll::Ready(Some(Err(error.into())))
            }
        }
    })
}
