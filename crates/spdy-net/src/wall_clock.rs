//! The wall clock, for `Date` headers and certificates.
//!
//! No decision depends on it. In virtual time a `Date` of the machine would make two runs with the same seed differ (and its length
//! in HPACK varies by a byte or two), so the time is injected.

use std::time::{Duration, SystemTime};

use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;

/// The source of wall-clock time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WallClock {
    /// The system's clock.
    #[default]
    System,
    /// The run began at this wall-clock time; the run's own clock counts from there.
    FromEpoch(SystemTime),
    /// There is no wall-clock time; no `Date` is sent.
    Unknown,
}

impl WallClock {
    /// The current wall-clock time of the run that `runtime` drives.
    #[must_use]
    pub fn now(self, runtime: &SharedRuntime) -> Option<SystemTime> {
        match self {
            Self::System => Some(SystemTime::now()),
            Self::FromEpoch(origin) => Some(origin + since_origin(runtime)),
            Self::Unknown => None,
        }
    }
}

fn since_origin(runtime: &SharedRuntime) -> Duration {
    runtime.now() - Instant::ZERO
}
