//! Time and tasks: the runtime, and the wall clock.

use std::time::SystemTime;

use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_net::wall_clock::WallClock;

/// The runtime that drives the proxy, and its calendar.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) runtime: SharedRuntime,
    calendar: WallClock,
}

impl Clock {
    pub(crate) fn new(runtime: SharedRuntime, calendar: WallClock) -> Self {
        Self { runtime, calendar }
    }

    /// Time since the start of the run.
    pub(crate) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Wall-clock time. Without a calendar: 1970 plus the elapsed run time.
    pub(crate) fn wall_now(&self) -> SystemTime {
        let since_start = || SystemTime::UNIX_EPOCH + (self.runtime.now() - Instant::ZERO);
        self.calendar.now(&self.runtime).unwrap_or_else(since_start)
    }
}
