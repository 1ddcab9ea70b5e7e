//! A body as a store keeps it: bytes of its own, in chunks, that are lent without copies.
//!
//! ```text
//!  pieces as they come ──copy──▶ │ 64 KiB │ 64 KiB │ … │ rest │
//! ```
//!
//! What came from a socket is a slice of a larger buffer that it would keep alive: a store that reckoned the slice alone
//! would hold many times its limit. So bytes are copied once, into chunks of their exact size.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::{Bytes, BytesMut};

/// Length of every chunk but the last.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// A whole body. Cheap to clone; clones share the bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Body {
    chunks: Arc<Chunks>,
    len: u64,
}

/// The bytes that clones share, and the tally that counts them.
#[derive(Debug, Default)]
struct Chunks {
    all: Box<[Bytes]>,
    tally_guard: OnceLock<TallyGuard>,
}

impl PartialEq for Chunks {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for Chunks {}

impl Body {
    /// A copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut gathering = BodyBuilder::new(bytes.len() as u64);
        gathering
            .push(bytes)
            .expect("the builder's limit is the length of the bytes");
        gathering.finish()
    }

    /// Bytes in it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it, in order.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        self.chunks.all.iter()
    }

    /// The bytes of `range`, in order, without copies.
    ///
    /// # Panics
    ///
    /// If `range` ends past the body: ranges are made for its length.
    pub fn slice(&self, range: Range<u64>) -> impl Iterator<Item = Bytes> {
        assert!(range.end <= self.len, "{range:?} of {} bytes", self.len);
        let size = CHUNK_BYTES as u64;
        let first =
            usize::try_from(range.start / size).expect("the range is within a body in memory");
        let chunks = self.chunks.all.iter().skip(first).enumerate();
        chunks.map_while(move |(at, chunk)| {
            let chunk_start = (first + at) as u64 * size;
            let from = range.start.saturating_sub(chunk_start);
            let to = range.end.checked_sub(chunk_start)?.min(chunk.len() as u64);
            // Both are at most a chunk's length.
            (from < to).then(|| chunk.slice(from as usize..to as usize))
        })
    }

    /// Identifies the body without holding its bytes: for derived data that is stored elsewhere.
    #[must_use]
    pub fn id(&self) -> BodyId {
        BodyId(Arc::downgrade(&self.chunks))
    }

    /// Bytes that it holds, with what holds them.
    #[must_use]
    pub fn weight(&self) -> u64 {
        const CHUNK_OVERHEAD: u64 = 64;
        self.len + CHUNK_OVERHEAD * (1 + self.chunks.all.len() as u64)
    }

    /// True if others hold it too: a reader, or a write to disk.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.chunks) > 1
    }

    /// Counts its weight in `tally` until the last holder drops it. It is counted once, by the first tally.
    pub fn count_in(&self, tally: &ByteTally) {
        let counted = &self.chunks.tally_guard;
        counted.get_or_init(|| tally.count(self.weight()));
    }

    /// Whether a tally counts it.
    pub(crate) fn is_counted(&self) -> bool {
        self.chunks.tally_guard.get().is_some()
    }
}

/// Identifies a body: clones of one body have the same, equal bodies do not.
#[derive(Clone, Debug)]
pub struct BodyId(Weak<Chunks>);

impl BodyId {
    /// Whether it is `body`'s.
    #[must_use]
    pub fn matches(&self, body: &Body) -> bool {
        // While this lives, nothing else can stand at that address.
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&body.chunks))
    }

    /// Whether `other` is of the same body.
    #[must_use]
    pub fn is_same_body(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// True if the body has no holder any more.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// A body while it comes.
#[derive(Debug)]
pub struct BodyBuilder {
    chunks: Vec<Bytes>,
    last: BytesMut,
    len: u64,
    limit: u64,
}

/// A body had more bytes than may be stored.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("body has more than {limit} bytes")]
pub struct TooLong {
    /// Bytes that were allowed.
    pub limit: u64,
}

impl BodyBuilder {
    /// Of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            chunks: Vec::new(),
            last: BytesMut::new(),
            len: 0,
            limit,
        }
    }

    /// Adds a copy of `bytes`.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if they pass the limit; what was gathered is then of no more use.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TooLong> {
        self.len += bytes.len() as u64;
        if self.len > self.limit {
            return Err(TooLong { limit: self.limit });
        }
        while !bytes.is_empty() {
            let room = CHUNK_BYTES - self.last.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.last.extend_from_slice(now);
            bytes = later;
            if self.last.len() == CHUNK_BYTES {
                self.chunks.push(shrink_to_fit(&mut self.last));
            }
        }
        Ok(())
    }

    /// Bytes so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether none came yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The body, when its last byte has come.
    #[must_use]
    pub fn finish(mut self) -> Body {
        if !self.last.is_empty() {
            self.chunks.push(shrink_to_fit(&mut self.last));
        }
        let chunks = Chunks {
            all: self.chunks.into(),
            tally_guard: OnceLock::new(),
        };
        Body {
            chunks: Arc::new(chunks),
            len: self.len,
        }
    }
}

/// The bytes with no room behind them.
fn shrink_to_fit(bytes: &mut BytesMut) -> Bytes {
    let exact = Bytes::copy_from_slice(bytes);
    bytes.clear();
    exact
}

/// How many bytes are held. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct ByteTally(Arc<AtomicU64>);

/// Some of them. Dropped, they are held no longer.
#[derive(Debug)]
pub(crate) struct TallyGuard {
    by: ByteTally,
    bytes: u64,
}

impl ByteTally {
    /// So many more.
    pub(crate) fn count(&self, bytes: u64) -> TallyGuard {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        TallyGuard {
            by: self.clone(),
            bytes,
        }
    }

    /// All that is held now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for TallyGuard {
    fn drop(&mut self) {
        self.by.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
