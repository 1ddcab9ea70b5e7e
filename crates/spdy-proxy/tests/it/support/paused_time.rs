//! A runtime on paused time.

use spdy::runtime::{BoxFuture, Runtime};
use spdy_clock::Instant;

/// Tokio's paused time, which jumps to the next timer when no task is ready.
pub(crate) struct PausedTime(tokio::time::Instant);

impl PausedTime {
    /// Starts at zero. The test that uses it must have paused tokio's time.
    pub(crate) fn start() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Runtime for PausedTime {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let deadline = self.0 + (deadline - Instant::ZERO);
        Box::pin(tokio::time::sleep_until(deadline))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}
