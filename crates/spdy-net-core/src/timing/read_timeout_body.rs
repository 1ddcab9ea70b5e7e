//! The body of a request that fails when its client sends too little for too long.

use std::task::Poll;

use bytes::Bytes;
use http_body::Body as _;
use spdy::body::Body;

use crate::body_read_timeout::BodyReadTimeout;
use crate::body_wrapper::wrap_poll;
use crate::timing::progress_timeout::ProgressTimeout;

/// A request's body that fails when no data, or too little, arrives for too long. Time in which no task reads it does not count.
/// The timeout may be lifted by `timeout`.
pub(crate) fn with_read_timeout(
    body: Body,
    mut stall: ProgressTimeout,
    timeout: BodyReadTimeout,
) -> Body {
    wrap_poll(body, move |mut body, cx| {
        let polled = body.as_mut().poll_frame(cx);
        if timeout.is_lifted() {
            return polled;
        }
        stall.set_paused(body.backpressure_time());
        if let Poll::Ready(frame) = &polled {
            let data = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref());
            stall.moved(data.map_or(0, Bytes::len));
            return polled;
        }
        let Poll::Ready(error) = stall.poll(cx) else {
            return Poll::Pending;
        };
        body.set(Body::empty()); // releases the stream
        Poll::Ready(Some(Err(error.into())))
    })
}
