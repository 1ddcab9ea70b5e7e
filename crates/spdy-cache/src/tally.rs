//! Counts bytes for as long as they have a holder, in any place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
