//! The system's monotonic clock, read as the time of a run.

use std::time::Instant as SystemInstant;

use crate::instant::Instant;

/// A run in real time: its origin is the moment this was made.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    origin: SystemInstant,
}

impl MonotonicClock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            origin: SystemInstant::now(),
        }
    }

    /// The present instant of the run.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.origin.elapsed()
    }

    /// The system's own name for `instant`, for timers that want it.
    #[must_use]
    pub fn to_system(&self, instant: Instant) -> SystemInstant {
        self.origin + (instant - Instant::ZERO).min(MAX_WAIT)
    }
}

/// The farthest deadline handed to the system: ten years, so that no sum overflows.
const MAX_WAIT: std::time::Duration = std::time::Duration::from_secs(10 * 365 * 24 * 3600);
