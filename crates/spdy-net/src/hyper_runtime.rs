//! hyper's clock over ours: it asks for `std::time::Instant`, we have the instant of a run.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as SystemInstant};

use hyper::rt::{Sleep, Timer};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;

/// Timers of a run. hyper only compares and adds instants, so any fixed origin will do.
#[derive(Clone, Debug)]
pub(crate) struct RunTimer {
    runtime: SharedRuntime,
    origin: SystemInstant,
}

impl RunTimer {
    pub(crate) fn new(runtime: SharedRuntime) -> Self {
        Self {
            runtime,
            origin: SystemInstant::now(),
        }
    }

    fn until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(RunSleep(Mutex::new(self.runtime.sleep_until(deadline))))
    }
}

impl Timer for RunTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.until(self.runtime.now() + duration)
    }

    fn sleep_until(&self, deadline: SystemInstant) -> Pin<Box<dyn Sleep>> {
        self.until(Instant::ZERO + deadline.saturating_duration_since(self.origin))
    }

    fn now(&self) -> SystemInstant {
        self.origin + (self.runtime.now() - Instant::ZERO)
    }
}

/// hyper wants its sleeps `Sync`; a mutex that is only reached by `&mut` makes one so at no cost.
struct RunSleep(Mutex<BoxFuture<()>>);

impl Future for RunSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self
            .0
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        sleep.as_mut().poll(cx)
    }
}

impl Sleep for RunSleep {}
