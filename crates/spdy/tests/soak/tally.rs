//! Counts of how requests ended.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of the results of requests.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) started: AtomicU64,
    pub(crate) completed: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) broken: AtomicU64,
    pub(crate) cut: AtomicU64,
    pub(crate) closing: AtomicU64,
    pub(crate) sessions: AtomicU64,
    /// Bytes that were looked at and right.
    pub(crate) correct_bytes: AtomicU64,
    /// Results without an explanation.
    pub(crate) faults: Mutex<Vec<String>>,
}

impl Tally {
    pub(crate) fn fault(&self, what: String) {
        self.faults
            .lock()
            .expect("no code panics while holding this lock")
            .push(what);
    }

    pub(crate) fn count(counter: &AtomicU64) -> u64 {
        counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "{} requests on {} sessions: {} complete, {} cancelled by the client, {} broken off, {} cut, {} not started; {} bytes correct",
            of(&self.started),
            of(&self.sessions),
            of(&self.completed),
            of(&self.cancelled),
            of(&self.broken),
            of(&self.cut),
            of(&self.closing),
            of(&self.correct_bytes),
        )
    }
}
