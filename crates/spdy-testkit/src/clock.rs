//! A clock that advances only when a test moves it; tasks run on tokio.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use spdy::Instant;
use spdy::runtime::{BoxFuture, Runtime};

/// The hour of its origin, since 1970.
pub const ORIGIN: Duration = Duration::from_secs(1_800_000_000);
/// What a task that was woken may take until it waits for the clock again.
const TASK_TURNS: usize = 100;

/// Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<Mutex<ClockState>>);

#[derive(Debug, Default)]
struct ClockState {
    now: Instant,
    /// Sleeps so far: those for one instant wake in their order.
    next_timer: u64,
    timers: BTreeMap<(Instant, u64), Waker>,
}

impl Clock {
    /// The hour that it shows.
    #[must_use]
    pub fn wall_now(&self) -> SystemTime {
        UNIX_EPOCH + ORIGIN + (self.now() - Instant::ZERO)
    }

    /// Advances the clock at once: all timers within `span` fire.
    pub fn push(&self, span: Duration) {
        let now = self.now() + span;
        self.fire_timers(now);
    }

    /// Lets `span` pass from alarm to alarm, with turns for all tasks between them.
    pub async fn advance(&self, span: Duration) {
        let until = self.now() + span;
        loop {
            for _ in 0..TASK_TURNS {
                tokio::task::yield_now().await;
            }
            let next = self.state().timers.keys().next().map(|(at, _)| *at);
            match next.filter(|next| *next <= until) {
                Some(next) => self.fire_timers(next),
                None => return self.fire_timers(until),
            }
        }
    }

    /// Sets the time to `now`, and wakes the expired timers.
    fn fire_timers(&self, now: Instant) {
        let due = {
            let mut state = self.state();
            state.now = now;
            let later = state.timers.split_off(&(now, u64::MAX));
            std::mem::replace(&mut state.timers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.0.lock()
    }
}

impl Runtime for Clock {
    fn now(&self) -> Instant {
        self.state().now
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let mut hands = self.state();
        hands.next_timer += 1;
        let alarm = (deadline, hands.next_timer);
        drop(hands);
        let clock = self.clone();
        Box::pin(Sleep { clock, alarm })
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}

struct Sleep {
    clock: Clock,
    alarm: (Instant, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut hands = self.clock.state();
        if self.alarm.0 <= hands.now {
            return Poll::Ready(());
        }
        hands.timers.insert(self.alarm, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.state().timers.remove(&self.alarm);
    }
}
