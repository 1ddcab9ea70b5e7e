//! Time that stands.

use spdy::runtime::{BoxFuture, Runtime};
use spdy_clock::Instant;

/// Tokio's time, which jumps to the next timer when nothing else is to be done.
pub(crate) struct Stopped(tokio::time::Instant);

impl Stopped {
    /// Starts at zero. The test that uses it must have paused tokio's time.
    pub(crate) fn start() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Runtime for Stopped {
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
