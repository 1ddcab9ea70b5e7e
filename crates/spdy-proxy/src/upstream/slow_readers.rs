//! Responses that come over HTTP/1.1 and are not stored: each uses a connection to its origin for as long as its client reads.
//!
//! A slow reader does nothing wrong, and has no effect while connections are free for other requests. When a request waits for a
//! connection, and readers that were idle for longer than `SLOW_AFTER` use more connections than a limit, responses are aborted until the
//! limit is met, those with the lowest rate first. So clients that read as slowly as the listener allows can use some of a site's
//! connections, but not all.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy::runtime::SharedRuntime;
use spdy_client::origin::Origin;
use spdy_clock::Instant;

/// A reader that was idle for this long in total is slow. A request waits this long before a slow reader is aborted.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(1);

/// It was read too slowly while others waited for its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "the response is read too slowly while other requests wait for its connection (upstream.connections)"
)]
pub(crate) struct SlowReaderAborted;

/// The readers of responses, by origin.
#[derive(Debug)]
pub(crate) struct SlowReaders {
    most: usize,
    readers: Mutex<BTreeMap<Origin, Vec<Weak<TrackedReader>>>>,
    broken_off: AtomicU64,
}

impl SlowReaders {
    /// `most` responses of one origin are never aborted.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            readers: Mutex::default(),
            broken_off: AtomicU64::new(0),
        }
    }

    /// `body`, which is received from `origin` on a separate connection.
    pub(crate) fn read(&self, origin: Origin, body: Body, runtime: &SharedRuntime) -> Body {
        let reader = Arc::new(TrackedReader {
            since: runtime.now(),
            state: Mutex::new(State {
                body: Some(body),
                bytes: 0,
                idle: Duration::ZERO,
                idle_since: None,
            }),
        });
        let mut readers = self.lock();
        readers.retain(|_, some| {
            some.retain(|reader| reader.strong_count() > 0);
            !some.is_empty()
        });
        let of_origin = readers.entry(origin).or_default();
        of_origin.push(Arc::downgrade(&reader));
        drop(readers);
        Body::wrap(TrackedBody {
            reader,
            runtime: runtime.clone(),
        })
    }

    /// Aborts the slowest responses of `origin` until the limit is met.
    pub(crate) fn abort_slowest(&self, origin: &Origin, now: Instant) {
        let readers: Vec<_> = match self.lock().get(origin) {
            Some(readers) => readers.iter().filter_map(Weak::upgrade).collect(),
            None => return,
        };
        let mut slow: Vec<_> = readers
            .iter()
            .filter_map(|reader| Some((reader.slowness(now)?, reader)))
            .collect();
        let surplus = slow.len().saturating_sub(self.most);
        slow.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        for (_, reader) in slow.into_iter().take(surplus) {
            let body = reader.lock().body.take();
            if body.is_some() {
                self.broken_off.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(?origin, "aborted a response that is read too slowly");
            }
        }
    }

    /// The number of aborted responses since the last call.
    pub(crate) fn take_aborted(&self) -> u64 {
        self.broken_off.swap(0, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Origin, Vec<Weak<TrackedReader>>>> {
        self.readers.lock()
    }
}

/// The reader of a response.
#[derive(Debug)]
struct TrackedReader {
    since: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` when it has ended or was aborted.
    body: Option<Body>,
    /// Bytes that were read.
    bytes: u64,
    /// How long the reader had data and did not read on, before `idle_since`.
    idle: Duration,
    /// Since when the reader is idle; `None` if it is not.
    idle_since: Option<Instant>,
}

impl TrackedReader {
    /// Bytes per second of a slow reader; `None` if the reader waits for the origin, or was not idle for long enough yet.
    fn slowness(&self, now: Instant) -> Option<f64> {
        let state = self.lock();
        let idle = state.idle + now.saturating_since(state.idle_since?);
        let is_slow = state.body.is_some() && idle >= SLOW_AFTER;
        let took = now.saturating_since(self.since).as_secs_f64();
        is_slow.then(|| state.bytes as f64 / took)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

struct TrackedBody {
    reader: Arc<TrackedReader>,
    runtime: SharedRuntime,
}

impl http_body::Body for TrackedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.reader.lock();
        if let Some(since) = state.idle_since.take() {
            state.idle += self.runtime.now().saturating_since(since);
        }
        let Some(body) = &mut state.body else {
            return Poll::Ready(Some(Err(SlowReaderAborted.into())));
        };
        let frame = ready!(Pin::new(&mut *body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame {
            let len = frame.data_ref().map_or(0, Bytes::len);
            // With its last byte the body releases its connection, even if the reader does not poll again.
            let is_over = body.is_end_stream();
            state.bytes += len as u64;
            state.idle_since = (!is_over).then(|| self.runtime.now());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let state = self.reader.lock();
        state
            .body
            .as_ref()
            .is_some_and(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.reader.lock();
        let body = state.body.as_ref();
        body.map_or_else(SizeHint::default, http_body::Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use futures_util::StreamExt;
    use http_body_util::StreamBody;
    use spdy::runtime::TokioRuntime;

    use super::*;

    /// Reads a piece of `body`.
    fn piece(body: &mut Body) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        http_body::Body::poll_frame(Pin::new(body), &mut Context::from_waker(Waker::noop()))
    }

    /// Returns pieces, and is then pending forever.
    fn pieces(count: usize) -> Body {
        let pieces =
            futures_util::stream::repeat_with(|| Ok::<_, BoxError>(Frame::data("piece".into())));
        let pieces = pieces.take(count).chain(futures_util::stream::pending());
        Body::wrap(StreamBody::new(pieces))
    }

    #[test]
    fn waiting_finished_or_active_readers_are_not_slow() {
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let origin = Origin::of(&"http://origin.test/".parse().expect("a URI"))
            .expect("the URL has an origin");
        let readers = SlowReaders::new(0);
        let read = |body: Body| readers.read(origin.clone(), body, &runtime);
        let mut waits = read(pieces(1));
        let mut has_all = read(Body::from("all"));
        let mut is_slow = read(pieces(2));
        for body in [&mut waits, &mut has_all, &mut is_slow] {
            assert!(matches!(piece(body), Poll::Ready(Some(Ok(_)))));
        }
        assert!(piece(&mut waits).is_pending());

        readers.abort_slowest(&origin, runtime.now());
        assert_eq!(readers.take_aborted(), 0, "all have just read");
        let later = runtime.now() + SLOW_AFTER;
        readers.abort_slowest(&origin, later);
        readers.abort_slowest(&origin, later);
        assert_eq!(readers.take_aborted(), 1, "and once");
        assert!(piece(&mut waits).is_pending());
        assert!(matches!(piece(&mut has_all), Poll::Ready(None)));
        let Poll::Ready(Some(Err(error))) = piece(&mut is_slow) else {
            panic!("it looks like all of it");
        };
        assert!(error.is::<SlowReaderAborted>(), "{error}");
    }

    #[test]
    fn dropped_reader_is_removed() {
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let origin = |name: &str| Origin::of(&name.parse().expect("a URI")).expect("an origin");
        let readers = SlowReaders::new(0);
        for name in ["http://one.test/", "http://other.test/"] {
            drop(readers.read(origin(name), pieces(1), &runtime));
        }
        let _stays = readers.read(origin("http://third.test/"), pieces(1), &runtime);
        assert_eq!(readers.lock().len(), 1);
    }
}
