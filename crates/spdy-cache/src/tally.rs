//! Bytes that are counted for as long as anybody holds them, wherever they have gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes are held. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicU64>);

/// Some of them. Dropped, they are held no longer.
#[derive(Debug)]
pub(crate) struct Counted {
    by: Tally,
    bytes: u64,
}

impl Tally {
    /// So many more.
    pub(crate) fn count(&self, bytes: u64) -> Counted {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Counted {
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

impl Drop for Counted {
    fn drop(&mut self) {
        self.by.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
