//! A stored body: its own copy of the bytes, in chunks that readers share without copying.
//!
//! ```text
//!  pieces on arrival ──copy──▶ │ 64 KiB │ 64 KiB │ … │ rest │
//! ```
//!
//! Bytes read from a socket are a slice of a larger buffer, which the slice keeps in memory: a store that counts only the slice
//! would use many times its limit. So the bytes are copied once, into chunks of their exact size.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::{Bytes, BytesMut};

/// Length of every chunk except the last.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// A complete body. Cheap to clone; clones share the bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Body {
    chunks: Arc<Chunks>,
    len: u64,
}

/// The bytes that clones share, and the tally in which they are counted.
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

    /// Its length, bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All chunks, in order.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        self.chunks.all.iter()
    }

    /// The bytes of `range`, in order, without copies.
    ///
    /// # Panics
    ///
    /// If `range` ends after the end of the body.
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

    /// Identifies the body without keeping its bytes in memory: for derived data that is stored elsewhere.
    #[must_use]
    pub fn id(&self) -> BodyId {
        BodyId(Arc::downgrade(&self.chunks))
    }

    /// Memory that it uses, including tables, bytes.
    #[must_use]
    pub fn weight(&self) -> u64 {
        const CHUNK_OVERHEAD: u64 = 64;
        self.len + CHUNK_OVERHEAD * (1 + self.chunks.all.len() as u64)
    }

    /// True if it has other holders: a reader, or a write to disk.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.chunks) > 1
    }

    /// Counts its weight in `tally` until the last holder drops it. It is counted only once, in the first tally.
    pub fn count_in(&self, tally: &ByteTally) {
        let counted = &self.chunks.tally_guard;
        counted.get_or_init(|| tally.count(self.weight()));
    }

    /// True if it is counted in a tally.
    pub(crate) fn is_counted(&self) -> bool {
        self.chunks.tally_guard.get().is_some()
    }
}

/// Identifies a body: clones of one body have the same, equal bodies do not.
#[derive(Clone, Debug)]
pub struct BodyId(Weak<Chunks>);

impl BodyId {
    /// True if it identifies `body`.
    #[must_use]
    pub fn matches(&self, body: &Body) -> bool {
        // While this exists, no other allocation can have the same address.
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&body.chunks))
    }

    /// True if `other` identifies the same body.
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

/// A body that is still arriving.
#[derive(Debug)]
pub struct BodyBuilder {
    chunks: Vec<Bytes>,
    last: BytesMut,
    len: u64,
    limit: u64,
}

/// A body exceeded the limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("body has more than {limit} bytes")]
pub struct TooLong {
    /// The limit, bytes.
    pub limit: u64,
}

impl BodyBuilder {
    /// Starts a body of at most `limit` bytes.
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
    /// [`TooLong`] if the body exceeds the limit; the builder must not be used after that.
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

    /// True if there are no bytes yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The complete body, after its last byte was added.
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

/// The bytes without spare capacity.
fn shrink_to_fit(bytes: &mut BytesMut) -> Bytes {
    let exact = Bytes::copy_from_slice(bytes);
    bytes.clear();
    exact
}

/// Counts bytes of bodies that are in memory. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct ByteTally(Arc<AtomicU64>);

/// A part of the count, which is subtracted when this is dropped.
#[derive(Debug)]
pub(crate) struct TallyGuard {
    by: ByteTally,
    bytes: u64,
}

impl ByteTally {
    /// Adds `bytes` to the count.
    pub(crate) fn count(&self, bytes: u64) -> TallyGuard {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        TallyGuard {
            by: self.clone(),
            bytes,
        }
    }

    /// The current count.
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
