//! Counters of the tier: hits, misses, purges, writes.

use std::sync::atomic::AtomicU64;

/// Counts of objects.
#[derive(Debug, Default)]
pub struct Counters {
    /// Found and valid.
    pub hits: AtomicU64,
    /// Not found.
    pub misses: AtomicU64,
    /// Found, but purged since.
    pub purged: AtomicU64,
    /// Found, but damaged.
    pub broken: AtomicU64,
    /// Requested, but not answered in time, or too many requests were waiting.
    pub unanswered: AtomicU64,
    /// Written.
    pub written: AtomicU64,
    /// Not written: the queue was full, the part of the cluster does not answer or rejected it, or it was purged before.
    pub unwritten: AtomicU64,
}
