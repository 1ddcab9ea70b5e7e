//! Tracks the progress of a request's body, so that a timeout counts only while the origin does not read.
//!
//! ```text
//!   unasked --the connection asks--> asked <---asks again---.
//!                                      `--a piece comes--> taken --the last one, or no more is wanted--> over
//!
//!   unasked, over: the server's answer is waited for    `Config::head_timeout`
//!   asked:         whoever makes the body is            the same, and another error
//!   taken:         the server is, to make room          `ClientOptions::write_timeout`, which the connection keeps
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

/// The most that is handed over at once, bytes: a body in memory is no single piece of any size.
const PIECE_BYTES: usize = 16 * 1024;

/// Who is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UploadStage {
    NotPolled,
    AwaitingBody,
    AwaitingServer,
    Finished,
}

/// How far a request's body came.
#[derive(Clone)]
pub(crate) struct UploadProgress(Arc<Mutex<State>>);

struct State {
    stage: UploadStage,
    /// Where the stage began; of `Taken`, where the last piece was.
    since: Instant,
}

impl UploadProgress {
    pub(crate) fn since(start: Instant) -> Self {
        Self(Arc::new(Mutex::new(State {
            stage: UploadStage::NotPolled,
            since: start,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    fn set_stage(&self, stage: UploadStage, now: Instant) {
        let mut state = self.lock();
        if state.stage != stage || stage == UploadStage::AwaitingServer {
            *state = State { stage, since: now };
        }
    }

    /// When it is time to look, at `now` or later: at `now`, the wait has lasted for `after`.
    pub(crate) fn due(&self, now: Instant, after: Duration) -> Instant {
        let state = self.lock();
        match state.stage {
            // Whatever follows this begins later.
            UploadStage::AwaitingServer => now + after,
            UploadStage::NotPolled | UploadStage::AwaitingBody | UploadStage::Finished => {
                now.max(state.since + after)
            }
        }
    }

    /// Whether there is room for more of the body than there is body.
    pub(crate) fn is_awaiting_body(&self) -> bool {
        self.lock().stage == UploadStage::AwaitingBody
    }

    /// `body`, which tells of itself here.
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
    /// Of its last piece, what was not taken.
    rest: Bytes,
    progress: UploadProgress,
    runtime: SharedRuntime,
}

impl Upload {
    fn note(&self, stage: UploadStage) {
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
            self.note(UploadStage::AwaitingBody);
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = data,
                ended => {
                    self.note(UploadStage::Finished);
                    let trailers =
                        |frame: Result<Bytes, _>| frame.map_or_else(|it| it, Frame::data);
                    return Poll::Ready(ended.map(|frame| frame.map(trailers)));
                }
            }
        }
        let len = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(len);
        self.note(match http_body::Body::is_end_stream(&*self) {
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
        self.note(UploadStage::Finished);
    }
}
