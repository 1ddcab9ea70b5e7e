//! What the tier on a disk did so far.

use std::sync::atomic::AtomicU64;

/// What happened so far.
#[derive(Debug, Default)]
pub struct DiskCounters {
    /// Objects found and whole.
    pub hits: AtomicU64,
    /// Objects written.
    pub written: AtomicU64,
    /// Objects that were not written: the queue or the disk was full, or it failed.
    pub write_skipped: AtomicU64,
    /// Files removed because they were not what was written.
    pub corrupt: AtomicU64,
    /// Files removed for want of room.
    pub evicted: AtomicU64,
}
