//! The body of a request: its beginning is buffered before an origin is contacted, and it records whether its client failed to send it.
//!
//! Otherwise a client that sends slowly could use one of the few connections to the origin without limit, and many such clients could use
//! all of them. And an aborted upload is not the origin's fault.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as _, Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::BoxFuture;
use spdy_net::body_wrapper::{with_guard, wrap_poll};

use crate::body::call_messages::MessageScan;

/// Bytes of a body, or all of it, that must be there before an origin is contacted.
pub(crate) const BUFFERED_BYTES: usize = 16 * 1024;

/// `body`, once its beginning has come.
///
/// # Errors
///
/// The client aborted the body.
pub(crate) async fn buffer_start(mut body: Body) -> Result<Body, BoxError> {
    let (mut pieces, mut len) = (VecDeque::new(), 0);
    while len < BUFFERED_BYTES {
        match std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => {
                    len += data.len();
                    pieces.push_back(data);
                }
                Err(frame) => {
                    return Ok(Body::wrap(BufferedBody {
                        pieces,
                        trailers: frame.into_trailers().ok(),
                        rest: Body::empty(),
                    }));
                }
            },
            Some(Err(error)) => return Err(error),
            None => return Ok(Body::full(pieces.make_contiguous().concat())),
        }
    }
    Ok(Body::wrap(BufferedBody {
        pieces,
        trailers: None,
        rest: body,
    }))
}

/// Returns `body` of a gRPC call once its first message or its [beginning](BUFFERED_BYTES) has arrived, or `until` has ended. If the end of
/// the body has arrived too, all of it is returned, so that the call's request is complete.
///
/// # Errors
///
/// The client aborted the body.
pub(crate) async fn buffer_message(
    mut body: Body,
    mut until: BoxFuture<()>,
) -> Result<Body, BoxError> {
    let (mut pieces, mut len) = (VecDeque::new(), 0);
    let (mut scan, mut has_message) = (MessageScan::default(), false);
    while len < BUFFERED_BYTES {
        let frame = std::future::poll_fn(|cx| {
            if let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(cx) {
                return Poll::Ready(Some(frame));
            }
            match has_message {
                true => Poll::Ready(None),
                false => until.as_mut().poll(cx).map(|()| None),
            }
        });
        let frame = match frame.await {
            None => break,
            Some(None) => return Ok(Body::full(pieces.make_contiguous().concat())),
            Some(Some(frame)) => frame?,
        };
        match frame.into_data() {
            Ok(data) => {
                len += data.len();
                has_message |= scan.read(&data);
                pieces.push_back(data);
            }
            Err(frame) => {
                return Ok(Body::wrap(BufferedBody {
                    pieces,
                    trailers: frame.into_trailers().ok(),
                    rest: Body::empty(),
                }));
            }
        }
    }
    Ok(Body::wrap(BufferedBody {
        pieces,
        trailers: None,
        rest: body,
    }))
}

/// `body` of a client that sends it only after 100 (Continue) from the origin: nothing is buffered.
pub(crate) fn defer_until_continue(body: Body) -> Body {
    Body::wrap(BufferedBody {
        pieces: VecDeque::new(),
        trailers: None,
        rest: body,
    })
}

/// `body`, with trailers as `restrict` leaves them; without trailers if it is `None`.
pub(crate) fn with_trailers<F>(body: Body, mut restrict: Option<F>) -> Body
where
    F: FnMut(&mut HeaderMap) + Send + 'static,
{
    if body.is_in_memory() {
        return body; // bytes alone
    }
    wrap_poll(body, move |mut body, cx| {
        let frame = ready!(body.as_mut().poll_frame(cx));
        let Some(Ok(frame)) = frame else {
            return Poll::Ready(frame);
        };
        Poll::Ready(match (frame.into_trailers(), &mut restrict) {
            (Err(data), _) => Some(Ok(data)),
            (Ok(mut trailers), Some(restrict)) => {
                restrict(&mut trailers);
                Some(Ok(Frame::trailers(trailers)))
            }
            (Ok(_), None) => None,
        })
    })
}

/// A body whose first pieces have arrived.
struct BufferedBody {
    pieces: VecDeque<Bytes>,
    /// Trailers after the pieces; there is no rest then.
    trailers: Option<HeaderMap>,
    rest: Body,
}

impl http_body::Body for BufferedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.trailers.take() {
            Some(trailers) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.trailers.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let buffered: usize = self.pieces.iter().map(Bytes::len).sum();
        match self.rest.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(rest + buffered as u64),
            None => SizeHint::default(),
        }
    }
}

/// Whether a body ended before its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientAborted(Arc<AtomicBool>);

impl ClientAborted {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// `body`, and a flag that is set if the client aborts it.
pub(crate) fn detect_client_abort(body: Body) -> (Body, ClientAborted) {
    let aborted = ClientAborted::default();
    let guarded = match body.try_clone() {
        // The whole body has arrived: it cannot be aborted any more, and can be sent again.
        Some(body) => body,
        None => with_guard(body, aborted.clone(), |aborted| {
            aborted.0.store(true, Ordering::Relaxed);
        }),
    };
    (guarded, aborted)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    /// The origin gets it without a permit for calls that still send.
    #[test]
    fn a_call_of_one_message_is_complete_and_one_that_continues_is_not() {
        let message = [&[0, 0, 0, 0, 3][..], b"one"].concat();
        for (frames, ends, is_complete) in [
            (vec![&message[..]], true, true),
            (vec![&message[..2], &message[2..]], true, true),
            (vec![], true, true),
            (vec![&message[..]], false, false),
            (vec![&message[..7]], false, false),
        ] {
            let (count, expected) = (frames.len(), frames.concat());
            let frames: Vec<_> = frames.into_iter().map(Bytes::copy_from_slice).collect();
            let frames = frames
                .into_iter()
                .map(|data| Ok::<_, BoxError>(Frame::data(data)));
            let rest = futures_util::stream::poll_fn(move |_| match ends {
                true => Poll::Ready(None),
                false => Poll::Pending,
            });
            let frames = futures_util::StreamExt::chain(futures_util::stream::iter(frames), rest);
            let body = Body::wrap(http_body_util::StreamBody::new(frames));
            let until = Box::pin(std::future::ready(()));
            let body = buffer_message(body, until).now_or_never();
            let body = body.expect("it waits for no more").expect("no error");
            let whole = body.try_clone();
            assert_eq!(whole.is_some(), is_complete, "{count} {ends}");
            if let Some(whole) = whole {
                let bytes = whole.collect().now_or_never().expect("all is here");
                assert_eq!(bytes.expect("no error").to_bytes(), expected);
            }
        }
        // Until then, it waits for the first message.
        let body = Body::wrap(http_body_util::StreamBody::new(
            futures_util::stream::pending::<Result<Frame<Bytes>, BoxError>>(),
        ));
        let waiting = buffer_message(body, Box::pin(std::future::pending()));
        assert!(waiting.now_or_never().is_none());
    }

    #[test]
    fn trailers_follow_any_body() {
        for pieces in [1, 2, 40] {
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", http::HeaderValue::from_static("1"));
            let mut frames: VecDeque<_> = (0..pieces)
                .map(|_| Frame::data(Bytes::from_static(&[b'x'; 1024])))
                .collect();
            frames.push_back(Frame::trailers(trailers));
            let frames = frames.into_iter().map(Ok::<_, BoxError>);
            let frames = futures_util::stream::iter(frames);
            let body = Body::wrap(http_body_util::StreamBody::new(frames));
            let passed = buffer_start(body)
                .now_or_never()
                .expect("the body has arrived");
            let passed = passed.expect("the body has no error");
            assert!(!passed.is_end_stream(), "{pieces}");
            let restrict = |trailers: &mut HeaderMap| {
                trailers.insert("x-seen", http::HeaderValue::from_static("1"));
            };
            let passed = with_trailers(passed, Some(restrict))
                .collect()
                .now_or_never();
            let passed = passed
                .expect("the body has arrived")
                .expect("the body has no error");
            let trailers = passed.trailers().expect("the trailers are passed");
            assert!(trailers.contains_key("x-sum") && trailers.contains_key("x-seen"));
            assert_eq!(passed.to_bytes().len(), pieces * 1024);
        }
    }
}
