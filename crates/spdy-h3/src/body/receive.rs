//! Receives messages on a request stream: heads, then a body in pieces, then trailers (RFC 9114 §4.1).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::BoxError;
use spdy_net_core::head::request_head::MalformedHead;
use spdy_net_core::latch::Latch;
use spdy_session::observe::Direction;

use crate::closer::Closer;
use crate::code::Code;
use crate::fault::Fault;
use crate::fields;
use crate::frame::{FrameEvent, FrameReader};
use crate::qpack::Field;
use crate::role::Role;
use crate::stream_observer::StreamObserver;

impl From<MalformedHead> for Fault {
    fn from(malformed: MalformedHead) -> Self {
        Self::Stream(Code::MESSAGE_ERROR, malformed.to_string())
    }
}

/// Reads the first field section of a message, or a further head of a response. `role` is this side.
pub(crate) async fn head(
    frames: &mut FrameReader,
    role: Role,
    watch: Option<&StreamObserver>,
) -> Result<Vec<Field>, Fault> {
    match frames.next().await? {
        Some(FrameEvent::Headers(block)) => {
            let fields = poll_fn(|cx| frames.poll_fields(cx, &block)).await?;
            if let Some(watch) = watch {
                watch.headers(Direction::Received, &fields);
            }
            Ok(fields)
        }
        Some(_) => {
            let reason = "DATA before HEADERS".to_owned();
            Err(Fault::Connection(Code::FRAME_UNEXPECTED, reason))
        }
        None => {
            let reason = "the stream ended before HEADERS".to_owned();
            // The error code for a request differs from that for a response (RFC 9114 §8.1).
            let code = match role {
                Role::Client => Code::MESSAGE_ERROR,
                Role::Server => Code::REQUEST_INCOMPLETE,
            };
            Err(Fault::Stream(code, reason))
        }
    }
}

/// A received body. QUIC returns credit as it is read. Dropping it before its end sends STOP_SENDING. `held` is dropped with the
/// body.
pub(crate) struct Http3Body<T> {
    frames: FrameReader,
    closer: Closer,
    /// Trailers that wait for the dynamic table of QPACK.
    trailers: Option<Bytes>,
    /// Remaining bytes, if the head states the length.
    left: Option<u64>,
    phase: Phase,
    held: Option<T>,
    /// Set when the body is dropped before its end.
    dropped: Latch,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Body,
    Trailers,
    Over,
}

impl<T> Http3Body<T> {
    /// Reads the rest of `frames`; `left` is the length of the body according to the head.
    pub(crate) fn new(
        frames: FrameReader,
        closer: impl Into<Closer>,
        left: Option<u64>,
        held: T,
    ) -> Self {
        Self {
            frames,
            closer: closer.into(),
            trailers: None,
            left,
            phase: Phase::Body,
            held: Some(held),
            dropped: Latch::new(),
        }
    }

    /// Sets `given_up` when the body fails, or is dropped before its end.
    pub(crate) fn or(mut self, given_up: Latch) -> Self {
        self.dropped = given_up;
        self
    }

    /// Checks at once if the stream ended with the head: then the body is empty, and nothing needs to wait for it.
    pub(crate) fn check_empty(mut self) -> Self {
        if self.left.unwrap_or(0) == 0 && self.frames.is_at_end() {
            self.phase = Phase::Over;
            self.held = None;
        }
        self
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Fault>> {
        if self.phase == Phase::Over {
            return Poll::Ready(Ok(None));
        }
        if self.trailers.is_some() {
            return self.poll_trailers(cx);
        }
        let wrong_length = || {
            let reason = "body length differs from content-length".to_owned();
            Fault::Stream(Code::MESSAGE_ERROR, reason)
        };
        let unexpected = |what: &str| {
            let reason = format!("{what} after trailers");
            Fault::Connection(Code::FRAME_UNEXPECTED, reason)
        };
        match (ready!(self.frames.poll_next(cx))?, self.phase) {
            (Some(FrameEvent::Data(data)), Phase::Body) => {
                if let Some(left) = &mut self.left {
                    *left = left
                        .checked_sub(data.len() as u64)
                        .ok_or_else(wrong_length)?;
                }
                Poll::Ready(Ok(Some(Frame::data(data))))
            }
            (Some(FrameEvent::Headers(block)), Phase::Body) => {
                if self.left.is_some_and(|left| left > 0) {
                    return Poll::Ready(Err(wrong_length()));
                }
                self.phase = Phase::Trailers;
                self.trailers = Some(block);
                self.poll_trailers(cx)
            }
            (Some(FrameEvent::Data(_)), _) => Poll::Ready(Err(unexpected("DATA"))),
            (Some(_), _) => Poll::Ready(Err(unexpected("HEADERS"))),
            (None, phase) => {
                self.phase = Phase::Over;
                self.held = None;
                if phase == Phase::Body && self.left.is_some_and(|left| left > 0) {
                    return Poll::Ready(Err(wrong_length()));
                }
                Poll::Ready(Ok(None))
            }
        }
    }
}

impl<T> Http3Body<T> {
    fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, Fault>> {
        let block = self.trailers.clone().unwrap_or_default();
        let fields = ready!(self.frames.poll_fields(cx, &block))?;
        self.trailers = None;
        let trailers = fields::decode_trailers(fields)?;
        Poll::Ready(Ok(Some(Frame::trailers(trailers))))
    }
}

impl<T> Drop for Http3Body<T> {
    fn drop(&mut self) {
        if self.phase != Phase::Over {
            self.dropped.set();
        }
    }
}

impl<T: Send + Unpin> http_body::Body for Http3Body<T> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        match ready!(this.poll(cx)) {
            Ok(frame) => Poll::Ready(frame.map(Ok)),
            Err(fault) => {
                this.phase = Phase::Over;
                this.held = None;
                this.dropped.set();
                this.frames.stop_with(fault.code());
                this.closer.close_for(&fault);
                let fault = this.closer.explain(&fault).clone();
                Poll::Ready(Some(Err(Box::new(fault))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.phase == Phase::Over
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;
    use crate::compression::HeaderCompression;
    use crate::frame::{StreamKind, frame, kind};
    use crate::loopback;

    #[tokio::test]
    async fn an_upload_that_was_reset_behind_its_head_is_broken_and_not_empty() {
        let (client, server) = loopback::pair().await;
        let (mut up, _down) = client.connection.open_bi().await.unwrap();
        up.write_all(&frame(kind::HEADERS, b"\0\0")).await.unwrap();
        let (_, recv) = server.accept_bi().await.unwrap();
        let place = StreamKind::Request {
            role: Role::Server,
            max_head_bytes: 10,
        };
        let compression = HeaderCompression::new(&server, Arc::default());
        let mut frames = FrameReader::new(recv, place, None, Code::NO_ERROR)
            .with_sections(compression.reader(0, 10));
        assert_eq!(head(&mut frames, Role::Server, None).await.unwrap(), []);
        up.reset(Code::REQUEST_CANCELLED.wire()).unwrap();
        // The reset is sent before the bytes of another stream.
        let (mut next, _down) = client.connection.open_bi().await.unwrap();
        next.write_all(b"x").await.unwrap();
        server.accept_bi().await.unwrap();
        let body = Http3Body::new(frames, server, None, ()).check_empty();
        assert!(!http_body::Body::is_end_stream(&body));
        let read = body.collect().await;
        assert!(
            read.unwrap_err()
                .to_string()
                .contains("H3_REQUEST_CANCELLED")
        );
    }
}
