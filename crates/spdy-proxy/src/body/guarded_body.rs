//! A body that holds a value until it ends: a permit, or the span of its request.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};

/// `body`, which drops `guard` when its last byte is read, when it fails, or when it is dropped. On failure it calls `on_error` first.
pub(crate) fn with_guard<H>(body: Body, guard: H, on_error: fn(&mut H)) -> Body
where
    H: Send + Unpin + 'static,
{
    Body::wrap(GuardedBody {
        body,
        guard: Some(guard),
        on_error,
    })
}

struct GuardedBody<H> {
    body: Body,
    /// `None` at the end.
    guard: Option<H>,
    on_error: fn(&mut H),
}

impl<H: Unpin> http_body::Body for GuardedBody<H> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        if let (Some(Err(_)), Some(guard)) = (&frame, &mut this.guard) {
            (this.on_error)(guard);
        }
        if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
            this.guard = None;
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::task::Waker;

    use parking_lot::Mutex;

    use super::*;

    /// Records what happens to it.
    struct RecordingGuard(Arc<Mutex<Vec<&'static str>>>);

    impl RecordingGuard {
        fn record(&self, event: &'static str) {
            self.0.lock().push(event);
        }
    }

    impl Drop for RecordingGuard {
        fn drop(&mut self) {
            self.record("let go");
        }
    }

    /// Pieces, and perhaps a break.
    struct Pieces(VecDeque<Result<&'static str, &'static str>>);

    impl http_body::Body for Pieces {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            let next = self.0.pop_front();
            Poll::Ready(next.map(|piece| match piece {
                Ok(text) => Ok(Frame::data(text.into())),
                Err(error) => Err(error.into()),
            }))
        }
    }

    #[test]
    fn guard_is_dropped_at_end_error_or_drop_of_body() {
        for (pieces, polls, expected) in [
            (&[Ok("a"), Ok("b")][..], 2, &[][..]),
            (&[Ok("a"), Ok("b")], 3, &["let go"]),
            (&[Ok("a"), Err("broken")], 1, &[]),
            (&[Ok("a"), Err("broken")], 2, &["broken", "let go"]),
        ] {
            let events = Arc::<Mutex<Vec<_>>>::default();
            let pieces = Body::wrap(Pieces(pieces.iter().copied().collect()));
            let mut body = with_guard(pieces, RecordingGuard(events.clone()), |guard| {
                guard.record("broken");
            });
            for _ in 0..polls {
                let mut context = Context::from_waker(Waker::noop());
                let _ = http_body::Body::poll_frame(Pin::new(&mut body), &mut context);
            }
            assert_eq!(*events.lock(), expected, "{polls}");
            drop(body);
            let events = events.lock();
            assert_eq!(
                events.last(),
                Some(&"let go"),
                "with the body at the latest"
            );
        }
    }

    #[test]
    fn guard_is_dropped_with_the_last_byte_at_end_of_stream() {
        let events = Arc::<Mutex<Vec<_>>>::default();
        let mut body = with_guard(Body::from("all"), RecordingGuard(events.clone()), |_| {});
        let mut context = Context::from_waker(Waker::noop());
        let _ = http_body::Body::poll_frame(Pin::new(&mut body), &mut context);
        assert_eq!(*events.lock(), ["let go"]);
    }
}
