//! The clock of a load in real time.
//!
//! Tokio's timers fire up to a millisecond late, and a page waits for many of them in sequence: its scripts and its style sheets. The
//! last two milliseconds of a sleep therefore use the kernel's own timer.

use std::io;
use std::time::{Duration, Instant as SystemInstant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use spdy::runtime::{BoxFuture, Runtime};
use spdy_clock::{Instant, MonotonicClock};
use tokio::io::unix::AsyncFd;

/// Rest of a sleep for the kernel's timer: twice the maximum lateness of tokio's.
const FINE: Duration = Duration::from_millis(2);

/// Real time on tokio, exact to some tens of microseconds. Use it inside a tokio runtime.
#[derive(Clone, Copy, Debug)]
pub struct LiveRuntime {
    clock: MonotonicClock,
}

impl LiveRuntime {
    /// A runtime whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            clock: MonotonicClock::start(),
        }
    }
}

impl Runtime for LiveRuntime {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let deadline = self.clock.to_system(deadline);
        Box::pin(async move {
            if let Some(nearly) = deadline.checked_sub(FINE) {
                tokio::time::sleep_until(nearly.into()).await;
            }
            let left = deadline.saturating_duration_since(SystemInstant::now());
            // If no descriptor is available, tokio's timers remain.
            if !left.is_zero() && wait_exactly(left).await.is_err() {
                tokio::time::sleep_until(deadline.into()).await;
            }
        })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}

async fn wait_exactly(time: Duration) -> io::Result<()> {
    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec::try_from(time).map_err(io::Error::other)?,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once)?;
    #[expect(
        deprecated,
        reason = "it relies on an unchanged descriptor, which an OwnedFd guarantees; its replacement is unsafe"
    )]
    let timer = AsyncFd::new(timer)?;
    timer.readable().await?.retain_ready();
    Ok(())
}

/// Runs `task` on this thread, in a tokio runtime that ends with it; sockets that are still open end too.
pub(crate) fn block_on<T>(task: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_ends_at_its_deadline_or_later_and_a_past_one_at_once() {
        let ended = block_on(async {
            let runtime = LiveRuntime::start();
            runtime.sleep_until(Instant::ZERO).await;
            let deadlines = [100, 1_500, 2_000, 5_300].map(Instant::from_micros);
            for deadline in deadlines {
                runtime.sleep_until(deadline).await;
                let now = runtime.now();
                assert!(now >= deadline, "{now} before {deadline}");
            }
            Ok(())
        });
        ended.expect("tokio starts");
    }
}
