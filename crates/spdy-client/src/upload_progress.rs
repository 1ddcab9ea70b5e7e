//! Tracks the progress of a request's body, so that a timeout counts only while the origin does not read.
//!
//! ```text
//!   NotPolled --poll--> AwaitingBody --piece taken--> AwaitingServer --poll--> AwaitingBody --> ...
//!   any stage --last piece taken, or the body ended, failed or was dropped--> Finished
//!
//!   stage                 waiting for                  timeout
//!   NotPolled, Finished   the response                 `Config::head_timeout`
//!   AwaitingBody          the producer of the body     `Config::head_timeout`, with another error
//!   AwaitingServer        the server, to make room     `ClientOptions::write_timeout`, which the connection applies
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;

/// Largest piece that is passed to the connection, bytes. Without this limit a body in memory would be one piece, and show no progress.
const PIECE_BYTES: usize = 16 * 1024;

/// What the exchange waits for, by the body's progress.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UploadStage {
    /// The connection has not polled the body yet.
    NotPolled,
    /// The connection polled the body, and no piece is ready.
    AwaitingBody,
    /// The connection took a piece, and has not polled for the next one.
    AwaitingServer,
    /// The last piece was taken, or the body ended, failed or was dropped.
    Finished,
}

/// The progress of one request's body. Clones share it.
#[derive(Clone)]
pub(crate) struct UploadProgress(Arc<Mutex<State>>);

struct State {
    stage: UploadStage,
    /// When the stage began; in `AwaitingServer`, when the last piece was taken.
    since: Instant,
}

impl UploadProgress {
    /// Progress of a request that is sent at `start`.
    pub(crate) fn since(start: Instant) -> Self {
        Self(Arc::new(Mutex::new(State {
            stage: UploadStage::NotPolled,
            since: start,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Records that the body is in `stage` at `now`. A repeated stage keeps its start, except `AwaitingServer`: each piece that was taken
    /// is progress.
    fn set_stage(&self, stage: UploadStage, now: Instant) {
        let mut state = self.lock();
        if state.stage != stage || stage == UploadStage::AwaitingServer {
            *state = State { stage, since: now };
        }
    }

    /// When to check the wait next. The result is `now` if the stage has already lasted for `after`.
    pub(crate) fn due(&self, now: Instant, after: Duration) -> Instant {
        let state = self.lock();
        match state.stage {
            // The connection's own timeout covers this stage. A later stage starts at `now` or later, so its wait cannot be over before
            // this.
            UploadStage::AwaitingServer => now + after,
            UploadStage::NotPolled | UploadStage::AwaitingBody | UploadStage::Finished => {
                now.max(state.since + after)
            }
        }
    }

    /// True if the connection could send more of the body than its producer has supplied.
    pub(crate) fn is_awaiting_body(&self) -> bool {
        self.lock().stage == UploadStage::AwaitingBody
    }

    /// Wraps `body` so that it records its progress here.
    pub(crate) fn of(&self, body: Body, runtime: SharedRuntime) -> Body {
        Body::wrap(Upload {
            body,
            rest: Bytes::new(),
            progress: self.clone(),
            runtime,
        })
    }
}

struct Upload {
    body: Body,
    /// The part of the last piece that the connection has not taken yet.
    rest: Bytes,
    progress: UploadProgress,
    runtime: SharedRuntime,
}

impl Upload {
    fn record(&self, stage: UploadStage) {
        self.progress.set_stage(stage, self.runtime.now());
    }
}

impl http_body::Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.rest.is_empty() {
            self.record(UploadStage::AwaitingBody);
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                ended => {
                    self.record(UploadStage::Finished);
                    let to_frame = |frame: Result<Bytes, _>| {
                        frame.map_or_else(|trailers| trailers, Frame::data)
                    };
                    return Poll::Ready(ended.map(|frame| frame.map(to_frame)));
                }
            }
        }
        let len = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(len);
        self.record(match http_body::Body::is_end_stream(&*self) {
            true => UploadStage::Finished,
            false => UploadStage::AwaitingServer,
        });
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut whole = SizeHint::new();
        if let Some(upper) = hint.upper() {
            whole.set_upper(upper + rest);
        }
        whole.set_lower(hint.lower() + rest);
        whole
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.record(UploadStage::Finished);
    }
}
