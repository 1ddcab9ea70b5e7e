//! A clock that a test turns on, from alarm to alarm; tasks are tokio's.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use spdy::Instant;
use spdy::runtime::{BoxFuture, Runtime};
use spdy_net::latch::Latch;

/// The hour of its origin.
pub(crate) const ORIGIN: Duration = Duration::from_secs(1_800_000_000);
/// What a task that was woken may take until it waits for the clock again.
const TURNS: usize = 100;

#[derive(Clone, Default)]
pub(crate) struct Clock(Arc<Mutex<Hands>>);

#[derive(Default)]
struct Hands {
    now: Instant,
    alarms: Vec<(Instant, Latch)>,
}

impl Clock {
    pub(crate) fn hour(&self) -> SystemTime {
        UNIX_EPOCH + ORIGIN + (self.now() - Instant::ZERO)
    }

    /// Lets `span` pass.
    pub(crate) async fn turn(&self, span: Duration) {
        let until = self.now() + span;
        loop {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
            let mut hands = self.0.lock().unwrap();
            let next = hands.alarms.iter().map(|(at, _)| *at).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                hands.now = until;
                return;
            };
            hands.now = next;
            let (due, later) = hands.alarms.drain(..).partition(|(at, _)| *at <= next);
            hands.alarms = later;
            let due: Vec<(Instant, Latch)> = due;
            due.iter().for_each(|(_, alarm)| alarm.set());
        }
    }
}

impl Runtime for Clock {
    fn now(&self) -> Instant {
        self.0.lock().unwrap().now
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let mut hands = self.0.lock().unwrap();
        let alarm = Latch::new();
        if deadline <= hands.now {
            alarm.set();
        } else {
            hands.alarms.push((deadline, alarm.clone()));
        }
        Box::pin(alarm.wait())
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}
