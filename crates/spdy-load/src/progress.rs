//! Progress of a run, for display.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Phase of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Sessions are opened.
    Connecting,
    /// Load that is not counted.
    WarmUp,
    /// Load that is counted.
    Measuring,
}

/// Progress of a run, for display.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    connected: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Progress {
    /// The current phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Connecting,
            1 => Phase::WarmUp,
            _ => Phase::Measuring,
        }
    }

    /// Open sessions.
    #[must_use]
    pub fn sessions(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }

    /// Responses so far, including the warm-up.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Failures so far, including the warm-up.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, answered: u64, failed: u64) {
        self.answered.fetch_add(answered, Ordering::Relaxed);
        self.failed.fetch_add(failed, Ordering::Relaxed);
    }

    pub(crate) fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }
}
