//! Counters of the tier: hits, misses, purges, writes.

use std::sync::atomic::AtomicU64;

/// Objects by what became of them.
#[derive(Debug, Default)]
pub struct Counters {
    /// Found, and whole.
    pub hits: AtomicU64,
    /// Not there.
    pub misses: AtomicU64,
    /// There, and purged since.
    pub purged: AtomicU64,
    /// There, and not what was written.
    pub broken: AtomicU64,
    /// Wanted, and no answer came, or none in time, or too many waited for one.
    pub unanswered: AtomicU64,
    /// Written.
    pub written: AtomicU64,
    /// Not written: the queue was full, that part of the cluster does not answer or refused it, or it was purged before.
    pub unwritten: AtomicU64,
}
