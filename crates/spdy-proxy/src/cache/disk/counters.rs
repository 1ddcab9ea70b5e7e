//! Counters of the disk tier.

use std::sync::atomic::AtomicU64;

/// What happened so far.
#[derive(Debug, Default)]
pub struct DiskCounters {
    /// Valid objects found.
    pub hits: AtomicU64,
    /// Objects written.
    pub written: AtomicU64,
    /// Objects that were not written: the queue or the disk was full, or it failed.
    pub write_skipped: AtomicU64,
    /// Files removed because they were damaged.
    pub corrupt: AtomicU64,
    /// Files removed to make room.
    pub evicted: AtomicU64,
}
