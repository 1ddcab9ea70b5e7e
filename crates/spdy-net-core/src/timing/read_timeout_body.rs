//! The body of a request that fails when its client sends too little for too long.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};

use crate::timing::progress_timeout::ProgressTimeout;

/// A request's body that fails when no data, or too little, comes for too long. Time in which no task reads it does not
/// count.
pub(crate) struct ReadTimeoutBody {
    body: Body,
    stall: ProgressTimeout,
}

impl ReadTimeoutBody {
    pub(crate) fn new(body: Body, stall: ProgressTimeout) -> Self {
        Self { body, stall }
    }
}

impl http_body::Body for ReadTimeoutBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        this.stall.set_paused(this.body.backpressure_time());
        if let Poll::Ready(frame) = &polled {
            let data = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref());
            this.stall.moved(data.map_or(0, Bytes::len));
            return polled;
        }
        let Poll::Ready(error) = this.stall.poll(cx) else {
            return Poll::Pending;
        };
        this.body = Body::empty(); // what it came on is let go
        Poll::Ready(Some(Err(error.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
