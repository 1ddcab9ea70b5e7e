//! Bodies of both sides: a received body, and the sending of a body within the limits of windows, socket and priority.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, header};
use http_body::{Body as _, Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy_net_core::latch::Latch;
use spdy_net_core::timing::progress_timeout::StreamProgressTimeout;
use spdy_net_core::upload_windows::{Upload, UploadWindows};

use crate::http2::limits::is_too_large;
use crate::shims::h2::write_scheduler::ScheduledStream;

/// A received body, which returns credit as it is read.
pub(crate) struct Http2Body {
    stream: RecvStream,
    left: Option<u64>,
    /// Set when this is dropped before its end.
    dropped: Latch,
    /// The limit of trailers.
    max_trailer_bytes: usize,
    /// In a server: grows the windows.
    upload: Option<Upload>,
}

impl Http2Body {
    pub(crate) fn new(stream: RecvStream, headers: &HeaderMap) -> Self {
        let length = headers.get(header::CONTENT_LENGTH);
        let left = length.and_then(|length| length.to_str().ok()?.parse().ok());
        Self {
            stream,
            left,
            dropped: Latch::new(),
            max_trailer_bytes: usize::MAX,
            upload: None,
        }
    }

    /// Grows the windows of the connection as the body is read.
    pub(crate) fn with_window_growth(mut self, windows: &UploadWindows) -> Self {
        self.upload = Some(windows.open());
        self
    }

    /// Fails if the trailers have more than `most` bytes.
    pub(crate) fn with_max_trailer_bytes(mut self, most: usize) -> Self {
        self.max_trailer_bytes = most;
        self
    }

    /// Sets `given_up` when this is dropped before its end.
    pub(crate) fn or(mut self, given_up: Latch) -> Self {
        self.dropped = given_up;
        self
    }
}

impl Drop for Http2Body {
    fn drop(&mut self) {
        if !self.stream.is_end_stream() {
            self.dropped.set();
        }
    }
}

impl http_body::Body for Http2Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(data) = ready!(self.stream.poll_data(cx)) {
            let data = data.map_err(Box::new)?;
            self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
            // A stream that was reset in the meantime needs no credit.
            let _ = self.stream.flow_control().release_capacity(data.len());
            if self.stream.is_end_stream() {
                self.upload = None;
            }
            if let Some(upload) = &mut self.upload {
                upload.read(data.len());
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let trailers = ready!(self.stream.poll_trailers(cx)).map_err(Box::new)?;
        Poll::Ready(trailers.map(|trailers| {
            let most = self.max_trailer_bytes;
            match is_too_large(&trailers, most) {
                true => Err(format!("h2: the trailers are too large, limit {most} bytes").into()),
                false => Ok(Frame::trailers(trailers)),
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Writes `body` to `stream` within the limits of windows, socket and `turn`, at most `chunk_bytes` (at least 1) per frame, then
/// ends the stream. If the body itself fails, the stream is reset with `on_failure`.
///
/// # Errors
///
/// Why it was not sent completely; the stream was reset.
pub(crate) async fn send_body(
    mut stream: SendStream<Bytes>,
    body: Body,
    chunk_bytes: usize,
    turn: ScheduledStream,
    mut stall: Option<StreamProgressTimeout>,
    on_failure: Reason,
) -> Result<(), BoxError> {
    let mut body = body;
    let mut chunk = Bytes::new();
    // For a peer that accepts no bytes, or has already reset the stream.
    let mut reason = Reason::CANCEL;
    let sent: Result<(), BoxError> = poll_fn(|cx| {
        loop {
            if let Poll::Ready(reason) = stream.poll_reset(cx) {
                return Poll::Ready(match reason {
                    Ok(reason) => Err(format!("the peer reset the stream: {reason}").into()),
                    Err(error) => Err(error.into()),
                });
            }
            if chunk.is_empty() {
                if body.is_end_stream() {
                    stream.send_data(Bytes::new(), true)?;
                    return Poll::Ready(Ok(()));
                }
                let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) else {
                    turn.rest();
                    return Poll::Pending;
                };
                let frame = frame.transpose().inspect_err(|_| reason = on_failure)?;
                match frame.map(Frame::into_data) {
                    Some(Ok(data)) => chunk = data,
                    Some(Err(frame)) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        stream.send_trailers(trailers)?;
                        return Poll::Ready(Ok(()));
                    }
                    None => {
                        stream.send_data(Bytes::new(), true)?;
                        return Poll::Ready(Ok(()));
                    }
                }
                continue;
            }
            if turn.poll_ready(cx).is_pending() {
                stream.reserve_capacity(0); // another stream can use it now
                stall.iter_mut().for_each(|stall| stall.moved(0)); // the client is not at fault
                return Poll::Pending;
            }
            stream.reserve_capacity(chunk.len().min(chunk_bytes));
            let room = match stream.poll_capacity(cx) {
                Poll::Ready(Some(room)) => room?.min(chunk.len()).min(chunk_bytes),
                Poll::Ready(None) => {
                    return Poll::Ready(Err("the stream can no longer send".into()));
                }
                Poll::Pending => {
                    let Some(stall) = &mut stall else {
                        return Poll::Pending;
                    };
                    let awaited = turn.block_reason(cx);
                    return stall.poll(cx, awaited).map(|error| Err(error.into()));
                }
            };
            stall.iter_mut().for_each(|stall| stall.moved(room));
            if room == 0 {
                continue; // the capacity was lost again; the next poll waits for more
            }
            let piece = chunk.split_to(room);
            let last = !chunk.has_remaining() && body.is_end_stream();
            stream.send_data(piece, last)?;
            turn.sent(room);
            if last {
                return Poll::Ready(Ok(()));
            }
        }
    })
    .await;
    if let Err(error) = &sent {
        tracing::debug!(%error, "body was not sent completely");
        stream.send_reset(reason);
    }
    sent
}
