//! The clock, the timers and the tasks of a run, for async code.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use spdy::runtime::{BoxFuture, Runtime};
use spdy_clock::Instant;

use crate::runtime::executor_state::Core;
use crate::runtime::timers::{Action, TimerKey, TimerTarget};

/// A handle to an [`Executor`](crate::runtime::Executor); clones belong to the same run.
#[derive(Clone)]
pub struct SimRuntime {
    core: Arc<Core>,
}

impl SimRuntime {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Calls `target` with `token` at `at`; if that has passed, as soon as the clock advances.
    pub(crate) fn fire_at(
        &self,
        at: Instant,
        target: Arc<dyn TimerTarget>,
        token: u64,
    ) -> TimerKey {
        self.core
            .lock()
            .timers
            .insert(at, Action::Fire(target, token))
    }

    /// Cancels the timer of `key`.
    pub(crate) fn cancel(&self, key: TimerKey) {
        let action = self.core.lock().timers.remove(key);
        drop(action); // not under the lock: it may be the last handle of its target
    }
}

impl fmt::Debug for SimRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimRuntime at {}", self.now())
    }
}

impl Runtime for SimRuntime {
    fn now(&self) -> Instant {
        self.core.lock().now
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        Box::pin(Sleep {
            core: self.core.clone(),
            deadline,
            timer: None,
        })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        self.core.spawn(task);
    }
}

/// Resolution of a program's timers, nanoseconds. A program needs some time for what it does when a timer expires, such as writing a
/// request, and then handles together what has expired meanwhile.
const TIMER_RESOLUTION_NS: u64 = 250_000;

/// The time at which a timer for `deadline` fires.
fn fires_at(deadline: Instant) -> Instant {
    let steps = deadline.as_nanos().div_ceil(TIMER_RESOLUTION_NS);
    Instant::from_nanos(steps.saturating_mul(TIMER_RESOLUTION_NS))
}

/// Waits for `deadline`, and up to a quarter of a millisecond longer; dropping it cancels its timer.
struct Sleep {
    core: Arc<Core>,
    deadline: Instant,
    timer: Option<TimerKey>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.core.lock();
        if state.now >= this.deadline {
            return Poll::Ready(());
        }
        let wake = Action::Wake(cx.waker().clone());
        match this.timer.and_then(|key| state.timers.get_mut(key)) {
            Some(action) => *action = wake,
            None => this.timer = Some(state.timers.insert(fires_at(this.deadline), wake)),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.timer.take() {
            let action = self.core.lock().timers.remove(key);
            drop(action);
        }
    }
}
