//! The body of another host's response with its limits: a number of bytes, a deadline, and a permit of its host.
//!
//! Exceeding a limit is an error, so that no reader takes a truncated body for a complete one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use crate::telemetry::counters::{CounterFamily, Counters};

/// A limit that a body met.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum BodyLimit {
    /// It is longer.
    #[error("the response has more than {most} bytes (limits.max_mib)")]
    Size {
        /// Bytes that may come.
        most: u64,
    },
    /// It took longer.
    #[error("the fetch timed out (limits.fetch_timeout_s)")]
    Time,
}

/// `body`, limited to `most` bytes and to `deadline`; `seat` is released when it ends.
pub(crate) fn limit_body(
    body: Body,
    most: u64,
    deadline: BoxFuture<()>,
    seat: OwnedSemaphorePermit,
    counters: Counters,
) -> Body {
    Body::wrap(LimitedBody {
        body,
        max_bytes: most,
        received: 0,
        deadline,
        permit: Some(seat),
        counters,
    })
}

struct LimitedBody {
    body: Body,
    max_bytes: u64,
    received: u64,
    deadline: BoxFuture<()>,
    /// `None` once it ended.
    permit: Option<OwnedSemaphorePermit>,
    counters: Counters,
}

impl LimitedBody {
    fn exceed(&mut self, limit: BodyLimit) -> BoxError {
        let label = match limit {
            BodyLimit::Size { .. } => "limits.max_mib",
            BodyLimit::Time => "limits.fetch_timeout_s",
        };
        self.counters.count(CounterFamily::Limits, label);
        (self.permit, self.body) = (None, Body::empty());
        limit.into()
    }
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.permit.is_none() {
            return Poll::Ready(None);
        }
        // First: what always has a piece ready would never be late.
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(self.exceed(BodyLimit::Time))));
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let len = frame.data_ref().map_or(0, Bytes::len);
            self.received = self.received.saturating_add(len as u64);
            if self.received > self.max_bytes {
                let most = self.max_bytes;
                return Poll::Ready(Some(Err(self.exceed(BodyLimit::Size { most }))));
            }
        }
        if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
            self.permit = None;
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
