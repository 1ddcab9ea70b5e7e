//! One body that arrives once and is read by many: by whoever asked first, by those who asked meanwhile, and by the cache.
//!
//! ```text
//! origin --write--> | piece | piece | piece |  <- end
//!                      ^ reader 1      ^ reader 2
//!
//! kept    every piece stays; the writer goes on whoever reads, up to `limit` bytes of memory
//! passed  what all have read goes; the writer waits for the slowest, and fails when nobody is left
//! ```
//!
//! A kept recording that gets longer than its limit is passed on from there: whoever reads it gets all of it, nobody joins any
//! more, and the cache takes nothing.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};

/// Bytes that the writer of a passed recording may be ahead of its slowest reader.
const WINDOW: usize = 64 * 1024;

/// The writer's end. Dropped before its end, its readers' bodies break off.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Mutex<Shared>>,
}

/// A body as far as it is there.
#[derive(Clone, Debug)]
pub struct Recording {
    shared: Arc<Mutex<Shared>>,
}

/// Nobody reads what is not kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("nobody reads it any more")]
pub struct Unread;

/// How a body did not come to its end.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the origin's answer broke off: {0}")]
pub struct Broken(pub String);

#[derive(Debug)]
struct Shared {
    pieces: VecDeque<Bytes>,
    /// Pieces that were dropped from the front.
    dropped: usize,
    /// Bytes in `pieces`.
    held: usize,
    /// `None` where nothing is kept.
    limit: Option<usize>,
    /// All bytes, if they were announced.
    announced: Option<u64>,
    end: Option<Result<(), Broken>>,
    next_reader: usize,
    /// By number: the piece each wants next, and who is to be woken.
    readers: BTreeMap<usize, (usize, Option<Waker>)>,
    writer: Option<Waker>,
}

impl Shared {
    /// Drops what all have read, unless it is kept.
    fn trim(&mut self) {
        if self.limit.is_some() {
            return;
        }
        let wanted = self.readers.values().map(|(at, _)| *at).min();
        let until = wanted.unwrap_or(self.dropped + self.pieces.len());
        while self.dropped < until {
            let Some(piece) = self.pieces.pop_front() else {
                break;
            };
            self.dropped += 1;
            self.held -= piece.len();
        }
        if self.held < WINDOW
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

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A recording that has nothing yet. It is kept up to `limit` bytes; with `None` nothing is, and whoever writes waits for who
/// reads. `announced` are the bytes that will come, if that is known.
#[must_use]
pub fn recording(limit: Option<usize>, announced: Option<u64>) -> (Writer, Recording) {
    let shared = Shared {
        pieces: VecDeque::new(),
        dropped: 0,
        held: 0,
        limit,
        announced,
        end: None,
        next_reader: 0,
        readers: BTreeMap::new(),
        writer: None,
    };
    let shared = Arc::new(Mutex::new(shared));
    let writer = Writer {
        shared: shared.clone(),
    };
    (writer, Recording { shared })
}

/// A recording that has all of its `pieces`; only its end is left to tell.
fn filled(pieces: VecDeque<Bytes>) -> (Writer, Recording) {
    let len: usize = pieces.iter().map(Bytes::len).sum();
    let (writer, recording) = recording(Some(len), Some(len as u64));
    {
        let mut shared = lock(&writer.shared);
        shared.held = len;
        shared.pieces = pieces;
    }
    (writer, recording)
}

/// A body of `pieces`, whose length is known.
#[must_use]
pub fn of_pieces(pieces: impl IntoIterator<Item = Bytes>) -> Body {
    let mut pieces = pieces.into_iter();
    let first = pieces.next().unwrap_or_default();
    let Some(second) = pieces.next() else {
        return Body::full(first);
    };
    let (writer, recording) = filled([first, second].into_iter().chain(pieces).collect());
    let body = recording.read().unwrap_or_default();
    let _ = writer.finish();
    body
}

impl Writer {
    /// Takes the next piece; waits while readers of what is not kept are behind.
    ///
    /// # Errors
    ///
    /// [`Unread`]: it is not kept, and the last reader left.
    pub async fn write(&mut self, piece: Bytes) -> Result<(), Unread> {
        {
            let mut shared = lock(&self.shared);
            shared.held += piece.len();
            if !piece.is_empty() {
                shared.pieces.push_back(piece);
            }
            if shared.limit.is_some_and(|limit| shared.held > limit) {
                shared.limit = None;
            }
            shared.trim();
            shared.wake();
        }
        std::future::poll_fn(|cx| {
            let mut shared = lock(&self.shared);
            if shared.limit.is_some() {
                Poll::Ready(Ok(()))
            } else if shared.readers.is_empty() {
                Poll::Ready(Err(Unread))
            } else if shared.held < WINDOW {
                Poll::Ready(Ok(()))
            } else {
                shared.writer = Some(cx.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    /// It is not kept any longer, however short it is.
    ///
    /// # Errors
    ///
    /// [`Unread`]: nobody reads it.
    pub fn pass_on(&mut self) -> Result<(), Unread> {
        let mut shared = lock(&self.shared);
        shared.limit = None;
        shared.trim();
        match shared.readers.is_empty() {
            true => Err(Unread),
            false => Ok(()),
        }
    }

    /// All of it came. Gives the pieces, if they were kept.
    #[must_use]
    pub fn finish(self) -> Option<Vec<Bytes>> {
        let mut shared = lock(&self.shared);
        shared.end = Some(Ok(()));
        shared.wake();
        let is_kept = shared.limit.is_some();
        is_kept.then(|| shared.pieces.iter().cloned().collect())
    }

    /// The rest will not come.
    pub fn fail(self, why: String) {
        let mut shared = lock(&self.shared);
        shared.end = Some(Err(Broken(why)));
        shared.limit = None;
        shared.wake();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        if shared.end.is_none() {
            shared.end = Some(Err(Broken("given up".to_owned())));
            shared.limit = None;
            shared.wake();
        }
    }
}

impl Recording {
    /// A body of all of it, from the beginning; `None` if that is gone.
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
        Some(Body::wrap(Reader {
            shared: self.shared.clone(),
            number,
            read: 0,
        }))
    }
}

/// One who reads.
#[derive(Debug)]
struct Reader {
    shared: Arc<Mutex<Shared>>,
    number: usize,
    /// Bytes so far.
    read: u64,
}

impl http_body::Body for Reader {
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
        // Pieces before `dropped` were read by every reader, this one among them.
        if let Some(piece) = shared.pieces.get(*at - shared.dropped).cloned() {
            *at += 1;
            shared.trim();
            drop(guard);
            self.read += piece.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match &shared.end {
            None => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(Ok(())) => Poll::Ready(None),
            Some(Err(broken)) => {
                let broken = broken.clone();
                shared.readers.remove(&number);
                Poll::Ready(Some(Err(broken.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let shared = lock(&self.shared);
        let at = shared.readers.get(&self.number).map(|(at, _)| *at);
        let has_all = at.is_none_or(|at| at == shared.dropped + shared.pieces.len());
        has_all && matches!(shared.end, Some(Ok(())))
    }

    fn size_hint(&self) -> SizeHint {
        let shared = lock(&self.shared);
        match shared.announced {
            Some(all) => SizeHint::with_exact(all.saturating_sub(self.read)),
            None => SizeHint::default(),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.readers.remove(&self.number);
        shared.trim();
        if shared.readers.is_empty()
            && let Some(writer) = shared.writer.take()
        {
            writer.wake();
        }
    }
}
