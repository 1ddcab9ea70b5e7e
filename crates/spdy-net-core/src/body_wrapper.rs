//! Bodies around another body: a closure that reads its frames, and a guard that is dropped at its end.
//!
//! A wrapper with its own length or end (a coding, a range) implements `http_body::Body` itself. One that only observes frames uses
//! `inspect_frame` of `http-body-util`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use spdy::body::{Body, BoxError};

/// The result of polling a body for its next frame.
pub type PolledFrame = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// A body whose frames come from `poll`, which reads them from `body`.
///
/// Length and end are those of `body`. So `poll` may delay frames, observe them, fail, or replace `body`, but must not add or remove
/// bytes. When the new body is dropped, `body` is dropped first, and then the values that `poll` captured.
#[must_use]
pub fn wrap_poll<P>(body: Body, poll: P) -> Body
where
    P: FnMut(Pin<&mut Body>, &mut Context<'_>) -> PolledFrame + Send + 'static,
{
    Body::wrap(PolledBody { body, poll })
}

/// `body`, which drops `guard` when its last byte is read, when it fails, or when it is dropped. On failure it calls `on_error` first.
#[must_use]
pub fn with_guard<G>(body: Body, guard: G, on_error: fn(&mut G)) -> Body
where
    G: Send + 'static,
{
    let mut guard = Some(guard); // `None` at the end
    wrap_poll(body, move |mut body, cx| {
        let frame = ready!(body.as_mut().poll_frame(cx));
        if let (Some(Err(_)), Some(guard)) = (&frame, &mut guard) {
            on_error(guard);
        }
        if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
            guard = None;
        }
        Poll::Ready(frame)
    })
}

struct PolledBody<P> {
    body: Body,
    poll: P,
}

/// `poll` is never pinned.
impl<P> Unpin for PolledBody<P> {}

impl<P> http_body::Body for PolledBody<P>
where
    P: FnMut(Pin<&mut Body>, &mut Context<'_>) -> PolledFrame,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        let this = self.get_mut();
        (this.poll)(Pin::new(&mut this.body), cx)
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
    use std::sync::Arc;
    use std::task::Waker;

    use futures_util::stream;
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

    #[test]
    fn guard_is_dropped_at_end_error_or_drop_of_body() {
        for (pieces, polls, expected) in [
            (&[Ok("a"), Ok("b")][..], 2, &[][..]),
            (&[Ok("a"), Ok("b")], 3, &["let go"]),
            (&[Ok("a"), Err("broken")], 1, &[]),
            (&[Ok("a"), Err("broken")], 2, &["broken", "let go"]),
        ] {
            let events = Arc::<Mutex<Vec<_>>>::default();
            let pieces: Vec<_> = pieces.iter().map(|piece| piece.map(Bytes::from)).collect();
            let pieces = Body::from_stream(stream::iter(pieces));
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
