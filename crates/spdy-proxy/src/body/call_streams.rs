//! The two bodies of a gRPC call, which fail when nothing passes in either direction for too long.
//!
//! Progress is a message, or at least `PROGRESS_BYTES` of one. Occasional single bytes do not count: otherwise a client could keep a call
//! open with almost no work.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http_body::Body as _;
use parking_lot::Mutex;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;
use spdy_net::body_wrapper::{PolledFrame, wrap_poll};

use crate::body::call_messages::MessageScan;

/// Bytes that count like a message.
const PROGRESS_BYTES: usize = 4096;

/// Nothing passed in either direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the call was silent in both directions for {0:?} (upstream.grpc_idle_timeout_s)")]
pub(crate) struct CallIdle(Duration);

/// When something passed last in one of the two bodies of a call. Clones share it.
#[derive(Clone)]
pub(crate) struct CallStreams {
    runtime: SharedRuntime,
    last: Arc<Mutex<Instant>>,
}

/// The progress in one direction.
#[derive(Default)]
struct Progress {
    scan: MessageScan,
    /// Bytes since the last that counted.
    bytes: usize,
}

impl Progress {
    /// Whether `frame`, the next one, counts.
    fn read(&mut self, frame: &PolledFrame) -> bool {
        let Poll::Ready(Some(Ok(frame))) = frame else {
            return frame.is_ready();
        };
        let Some(data) = frame.data_ref() else {
            return true;
        };
        self.bytes += data.len();
        let counts = self.scan.read(data) || self.bytes >= PROGRESS_BYTES;
        if counts {
            self.bytes = 0;
        }
        counts
    }
}

impl CallStreams {
    /// A call that begins now.
    pub(crate) fn new(runtime: &SharedRuntime) -> Self {
        Self {
            runtime: runtime.clone(),
            last: Arc::new(Mutex::new(runtime.now())),
        }
    }

    /// The body of the request.
    pub(crate) fn request(&self, body: Body) -> Body {
        let streams = self.clone();
        let mut progress = Progress::default();
        wrap_poll(body, move |body, cx| {
            let polled = body.poll_frame(cx);
            if progress.read(&polled) {
                streams.record();
            }
            polled
        })
    }

    /// The body of the response. It fails when nothing has passed for `timeout`.
    pub(crate) fn response(&self, body: Body, timeout: Duration) -> Body {
        let streams = self.clone();
        let mut timer: Option<BoxFuture<()>> = None;
        let mut progress = Progress::default();
        streams.record();
        wrap_poll(body, move |mut body, cx| {
            let polled = body.as_mut().poll_frame(cx);
            if progress.read(&polled) {
                streams.record();
            }
            if polled.is_ready() {
                return polled;
            }
            loop {
                let deadline = *streams.last.lock() + timeout;
                let sleep = timer.get_or_insert_with(|| streams.runtime.sleep_until(deadline));
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                timer = None;
                if streams.runtime.now() >= deadline {
                    body.set(Body::empty()); // cancels the call at the origin
                    return Poll::Ready(Some(Err(CallIdle(timeout).into())));
                }
            }
        })
    }

    /// Waits until nothing has passed for `timeout`.
    pub(crate) async fn idle(&self, timeout: Duration) {
        loop {
            let deadline = *self.last.lock() + timeout;
            if self.runtime.now() >= deadline {
                return;
            }
            self.runtime.sleep_until(deadline).await;
        }
    }

    fn record(&self) {
        *self.last.lock() = self.runtime.now();
    }
}
