//! One body that arrives once and has many readers: the first request, the requests that came meanwhile, and the cache.
//!
//! ```text
//! origin --write--> | piece | piece | piece |  <- end
//!                      ^ reader 1      ^ reader 2
//!
//! retained  each piece stays; the writer waits for no reader, while there is memory for it
//! streamed  a piece is dropped when all readers have it; the writer waits for the slowest, and ends at once with the last reader
//! ```
//!
//! A retained recording becomes a streamed one if it exceeds its limit or finds no more memory (body/body_memory.rs). Its readers still get all
//! of it, no reader can join, and the cache stores nothing. Once the cache has the whole body, the remaining readers read it from there and
//! the pieces are dropped.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::{Body, BoxError};
use spdy_cache::body::Body as CacheBody;

use crate::body::body_memory::MemoryReservation;

/// Bytes that the writer of a streamed recording may be ahead of its slowest reader. Each recording may use this much memory without a
/// reservation.
pub(crate) const STREAM_WINDOW_BYTES: usize = 64 * 1024;

/// Memory of a piece in addition to its bytes.
const PIECE_OVERHEAD: usize = 64;

/// The writer's end. If it is dropped before the end, the bodies of its readers end with an error.
#[derive(Debug)]
pub struct SharedBodyWriter {
    shared: Arc<Mutex<SharedBodyState>>,
}

/// A body as far as it has arrived.
#[derive(Clone, Debug)]
pub struct SharedBody {
    shared: Arc<Mutex<SharedBodyState>>,
}

/// A streamed body has no readers left.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no client reads the body")]
pub struct NoReaders;

/// Why a body is incomplete.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the response of the origin is incomplete: {0}")]
pub struct IncompleteBody(pub String);

#[derive(Debug)]
struct SharedBodyState {
    pieces: VecDeque<Bytes>,
    /// Pieces that were dropped from the front.
    dropped: usize,
    /// Bytes in `pieces`.
    held_bytes: usize,
    /// The limit for `held_bytes`; `None` if the body is not retained.
    limit: Option<usize>,
    /// Memory for the pieces that arrived while the body was retained.
    reservation: Option<MemoryReservation>,
    /// All pieces have arrived and stay, for current and later readers.
    is_complete: bool,
    /// The body in the cache, in place of the pieces.
    stored: Option<CacheBody>,
    /// All bytes, if they were announced.
    announced: Option<u64>,
    end: Option<Result<(), IncompleteBody>>,
    /// Trailers that no reader has yet. The first reader at the end takes them.
    trailers: Option<HeaderMap>,
    next_reader: usize,
    /// By reader number: the index of the next piece, and the waker.
    readers: BTreeMap<usize, (usize, Option<Waker>)>,
    writer: Option<Waker>,
    /// Woken when the last reader leaves.
    watcher: Option<Waker>,
}

impl SharedBodyState {
    /// Bytes of memory that the pieces use.
    fn weight(&self) -> usize {
        self.held_bytes + PIECE_OVERHEAD * self.pieces.len()
    }

    /// Stops retaining the body if it is too long or there is no memory for it.
    fn enforce_limits(&mut self) {
        let Some(limit) = self.limit else {
            return;
        };
        let more = self.weight().saturating_sub(STREAM_WINDOW_BYTES);
        let claim = self.reservation.as_mut();
        if self.held_bytes > limit || claim.is_some_and(|claim| !claim.grow_to(more)) {
            self.limit = None;
        }
    }

    /// Drops pieces that all readers have read, unless the body is retained.
    fn drop_read_pieces(&mut self) {
        if self.limit.is_some() {
            return;
        }
        let first_unread = self.readers.values().map(|(at, _)| *at).min();
        let until = first_unread.unwrap_or(self.dropped + self.pieces.len());
        while self.dropped < until {
            let Some(piece) = self.pieces.pop_front() else {
                break;
            };
            self.dropped += 1;
            self.held_bytes -= piece.len();
        }
        let weight = self.weight();
        if let Some(claim) = &mut self.reservation {
            claim.shrink_to(weight.saturating_sub(STREAM_WINDOW_BYTES));
        }
        if weight < STREAM_WINDOW_BYTES
            && let Some(writer) = self.writer.take()
        {
            writer.wake();
        }
    }

    fn wake(&mut self) {
        for (_, waker) in self.readers.values_mut() {
            if let Some(waker) = waker.take() {
                waker.wake();
            }
        }
    }
}

fn lock(shared: &Mutex<SharedBodyState>) -> MutexGuard<'_, SharedBodyState> {
    shared.lock()
}

/// An empty recording that is retained up to `limit` bytes while `claim` is granted. `announced` is the length of the body, if known.
#[must_use]
pub fn retained(
    limit: usize,
    claim: MemoryReservation,
    announced: Option<u64>,
) -> (SharedBodyWriter, SharedBody) {
    recording(Some(limit), Some(claim), announced)
}

/// An empty recording that is not retained: the writer waits for the readers. `announced` is the length of the body, if known.
#[must_use]
pub fn streamed(announced: Option<u64>) -> (SharedBodyWriter, SharedBody) {
    recording(None, None, announced)
}

fn recording(
    limit: Option<usize>,
    claim: Option<MemoryReservation>,
    announced: Option<u64>,
) -> (SharedBodyWriter, SharedBody) {
    let shared = SharedBodyState {
        pieces: VecDeque::new(),
        dropped: 0,
        held_bytes: 0,
        limit,
        reservation: claim,
        is_complete: false,
        stored: None,
        announced,
        end: None,
        trailers: None,
        next_reader: 0,
        readers: BTreeMap::new(),
        writer: None,
        watcher: None,
    };
    let shared = Arc::new(Mutex::new(shared));
    let writer = SharedBodyWriter {
        shared: shared.clone(),
    };
    (writer, SharedBody { shared })
}

impl SharedBodyWriter {
    /// Adds the next piece. If the body is not retained, waits for its readers.
    ///
    /// # Errors
    ///
    /// [`NoReaders`]: the body is not retained, and the last reader left.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), NoReaders> {
        {
            let mut shared = lock(&self.shared);
            shared.held_bytes += piece.len();
            if !piece.is_empty() {
                shared.pieces.push_back(piece);
            }
            shared.enforce_limits();
            shared.drop_read_pieces();
            shared.wake();
        }
        std::future::poll_fn(|cx| {
            let mut shared = lock(&self.shared);
            if shared.limit.is_some() {
                Poll::Ready(Ok(()))
            } else if shared.readers.is_empty() {
                Poll::Ready(Err(NoReaders))
            } else if shared.weight() < STREAM_WINDOW_BYTES {
                Poll::Ready(Ok(()))
            } else {
                shared.writer = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    /// Stops retaining the body, however short it is. Returns whether it was retained until now.
    pub fn stop_retaining(&mut self) -> bool {
        let mut shared = lock(&self.shared);
        let was_retained = shared.limit.take().is_some();
        shared.drop_read_pieces();
        was_retained
    }

    /// Ready if the body is not recorded and the last reader left. Otherwise the caller is woken when that happens.
    pub fn poll_no_readers(&mut self, cx: &mut Context<'_>) -> Poll<NoReaders> {
        let mut shared = lock(&self.shared);
        match (shared.limit, shared.readers.is_empty()) {
            (None, true) => return Poll::Ready(NoReaders),
            (None, false) => shared.watcher = Some(cx.waker().clone()),
            // Only the writer can stop retaining it.
            (Some(_), _) => {}
        }
        Poll::Pending
    }

    /// Sets the trailers that follow the body, for a body with one reader.
    pub fn set_trailers(&mut self, trailers: HeaderMap) {
        lock(&self.shared).trailers = Some(trailers);
    }

    /// The body is complete. Returns the pieces if they were retained: they stay until this is dropped, or the cache has them.
    #[must_use]
    pub fn finish(&mut self) -> Option<Vec<Bytes>> {
        let mut shared = lock(&self.shared);
        shared.end = Some(Ok(()));
        shared.wake();
        let is_retained = shared.limit.is_some();
        is_retained.then(|| shared.pieces.iter().cloned().collect())
    }

    /// The cache has the whole body as `body`: present and later readers read from there.
    pub fn replace_with_stored(self, body: CacheBody) {
        let mut shared = lock(&self.shared);
        shared.pieces = VecDeque::new();
        shared.held_bytes = 0;
        shared.reservation = None;
        shared.stored = Some(body);
    }

    /// The body is complete, and the cache does not store it. It stays, and its claim with it, until the last reader drops the recording.
    pub fn finish_unstored(self) {
        lock(&self.shared).is_complete = true;
    }

    /// Ends the body with an error: the rest will not arrive.
    pub fn fail(self, reason: String) {
        let mut shared = lock(&self.shared);
        shared.end = Some(Err(IncompleteBody(reason)));
        shared.limit = None;
        shared.wake();
    }
}

impl Drop for SharedBodyWriter {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        if shared.end.is_none() {
            shared.end = Some(Err(IncompleteBody("given up".to_owned())));
            shared.wake();
        }
        if shared.is_complete {
            return;
        }
        shared.limit = None;
        if shared.stored.is_none() {
            shared.drop_read_pieces();
        }
    }
}

impl SharedBody {
    /// The length of the complete body, if it was announced.
    #[must_use]
    pub fn expected_len(&self) -> Option<u64> {
        lock(&self.shared).announced
    }

    /// Bytes that have arrived so far; 0 if its beginning was dropped.
    #[must_use]
    pub fn received_len(&self) -> u64 {
        let shared = lock(&self.shared);
        match &shared.stored {
            Some(body) => body.len(),
            None if shared.dropped == 0 => shared.held_bytes as u64,
            None => 0,
        }
    }

    /// A reader of the body from its beginning; `None` if that was dropped.
    #[must_use]
    pub fn read(&self) -> Option<Body> {
        let mut shared = lock(&self.shared);
        if shared.dropped > 0 || matches!(shared.end, Some(Err(_))) {
            return None;
        }
        let number = shared.next_reader;
        shared.next_reader += 1;
        shared.readers.insert(number, (0, None));
        drop(shared);
        Some(Body::wrap(SharedBodyReader {
            shared: self.shared.clone(),
            number,
            read: 0,
            has_yielded: false,
        }))
    }
}

/// A reader of a shared body.
#[derive(Debug)]
struct SharedBodyReader {
    shared: Arc<Mutex<SharedBodyState>>,
    number: usize,
    /// Bytes so far.
    read: u64,
    /// The reader has yielded once before it returns the error, so that the sender can send earlier pieces first. A connection that closes
    /// with nothing sent gives the client no information.
    has_yielded: bool,
}

impl http_body::Body for SharedBodyReader {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let number = self.number;
        let mut guard = lock(&self.shared);
        let shared = &mut *guard;
        let Some((at, waker)) = shared.readers.get_mut(&number) else {
            return Poll::Ready(None);
        };
        if let Some(body) = &shared.stored {
            let piece = body.slice(self.read..body.len()).next();
            drop(guard);
            let Some(piece) = piece else {
                return Poll::Ready(None);
            };
            self.read += piece.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        // Pieces before `dropped` were read by every reader, this one among them.
        if let Some(piece) = shared.pieces.get(*at - shared.dropped).cloned() {
            *at += 1;
            shared.drop_read_pieces();
            drop(guard);
            self.read += piece.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &shared.end {
            None => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Ok(())) => {
                let trailers = shared.trailers.take();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Some(Err(_)) if !self.has_yielded => {
                drop(guard);
                self.has_yielded = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Err(broken)) => {
                let broken = broken.clone();
                shared.readers.remove(&number);
                Poll::Ready(Some(Err(broken.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let shared = lock(&self.shared);
        if let Some(body) = &shared.stored {
            return self.read == body.len();
        }
        let at = shared.readers.get(&self.number).map(|(at, _)| *at);
        let has_all = at.is_none_or(|at| at == shared.dropped + shared.pieces.len());
        has_all && matches!(shared.end, Some(Ok(()))) && shared.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let shared = lock(&self.shared);
        match shared.announced {
            Some(all) => SizeHint::with_exact(all.saturating_sub(self.read)),
            None => SizeHint::default(),
        }
    }
}

impl Drop for SharedBodyReader {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.readers.remove(&self.number);
        shared.drop_read_pieces();
        if shared.readers.is_empty() {
            let waiting = [shared.writer.take(), shared.watcher.take()];
            drop(shared);
            waiting.into_iter().flatten().for_each(Waker::wake);
        }
    }
}
