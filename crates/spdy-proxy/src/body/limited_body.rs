//! The body of another host's response with its limits: a number of bytes, a deadline, and a permit of its host.
//!
//! Exceeding a limit is an error, so that no reader takes a truncated body for a complete one.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body as _;
use spdy::body::{Body, BoxError};
use spdy::runtime::BoxFuture;
use spdy_net::body_wrapper::{PolledFrame, wrap_poll};
use tokio::sync::OwnedSemaphorePermit;

use crate::telemetry::counters::{CounterFamily, Counters};

/// A limit that a body exceeded.
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
    let mut limits = Limits {
        max_bytes: most,
        received: 0,
        deadline,
        permit: Some(seat),
        counters,
    };
    wrap_poll(body, move |body, cx| limits.poll(body, cx))
}

struct Limits {
    max_bytes: u64,
    received: u64,
    deadline: BoxFuture<()>,
    /// `None` once the body ended.
    permit: Option<OwnedSemaphorePermit>,
    counters: Counters,
}

impl Limits {
    fn poll(&mut self, mut body: Pin<&mut Body>, cx: &mut Context<'_>) -> PolledFrame {
        if self.permit.is_none() {
            return Poll::Ready(None);
        }
        // The deadline is checked first: otherwise a body that always has a piece ready would never be late.
        if self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(self.exceed(body, BodyLimit::Time))));
        }
        let frame = ready!(body.as_mut().poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let len = frame.data_ref().map_or(0, Bytes::len);
            self.received = self.received.saturating_add(len as u64);
            if self.received > self.max_bytes {
                let most = self.max_bytes;
                return Poll::Ready(Some(Err(self.exceed(body, BodyLimit::Size { most }))));
            }
        }
        if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
            self.permit = None;
        }
        Poll::Ready(frame)
    }

    fn exceed(&mut self, mut body: Pin<&mut Body>, limit: BodyLimit) -> BoxError {
        let label = match limit {
            BodyLimit::Size { .. } => "limits.max_mib",
            BodyLimit::Time => "limits.fetch_timeout_s",
        };
        self.counters.count(CounterFamily::Limits, label);
        self.permit = None;
        body.set(Body::empty());
        limit.into()
    }
}
