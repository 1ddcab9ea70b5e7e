//! Detects a [`Connection`](crate::client::Connection) that is never run, so that tasks that wait for it fail instead of waiting
//! forever.
//!
//! The watch starts when a task first waits, and costs nothing once the connection runs.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// How long a task may wait for a session whose connection is not run.
pub(crate) const RUN_WITHIN: Duration = Duration::from_secs(10);

const IDLE: u8 = 0;
const WATCHED: u8 = 1;
const RUN: u8 = 2;
const EXPIRED: u8 = 3;

/// Whether the connection is run.
#[derive(Debug, Default)]
pub(crate) struct RunWatch(AtomicU8);

impl RunWatch {
    fn change(&self, from: u8, to: u8) -> bool {
        let changed = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok()
    }

    /// To be called when the connection is run; `false` if that is too late.
    pub(crate) fn run(&self) -> bool {
        self.change(IDLE, RUN) || self.change(WATCHED, RUN) || self.0.load(Ordering::Acquire) == RUN
    }

    /// Starts the watch; `false` if it has started, or the connection runs.
    pub(crate) fn start(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE && self.change(IDLE, WATCHED)
    }

    /// To be called when the time is over; `false` if the connection runs.
    pub(crate) fn expire(&self) -> bool {
        self.change(WATCHED, EXPIRED)
    }
}
