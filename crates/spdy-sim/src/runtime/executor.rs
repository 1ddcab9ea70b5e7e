//! A single-threaded executor with a clock that jumps.
//!
//! ```text
//!        ┌──────── ready queue, first in first out ◄── wakers, spawned tasks
//!        ▼                                                  ▲
//!   poll one task                                           │
//!        │                                                  │
//!   queue empty, or 61 tasks: poll the root if woken        │
//!        │                                                  │
//!   root not woken: set the clock to the next timer, run the actions of all timers of that instant
//! ```
//!
//! Tasks run in the same order as on tokio's current-thread runtime, which runs the same code in real time. The order decides what is
//! written together: a request that is queued before its new connection is polled shares a TLS record with the connection's preface.
//!
//! Time stands still while a task is ready, and then jumps to the next timer. A run that cannot end, because no task is ready and no
//! timer is left, is an error ([`StallError::Deadlock`]), and so is a run past its limits. A run never hangs.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use spdy::runtime::{BoxFuture, drop_spare_buffers};
use spdy_clock::Instant;

use crate::runtime::SimRuntime;
use crate::runtime::executor_state::{Core, ReadyQueue};
use crate::runtime::timers::Action;

/// Limits of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExecutorLimits {
    /// Virtual time; one hour by default, far longer than a useful page load.
    pub virtual_time: Duration,
    /// Polls of tasks and timers together; 200 million by default, some minutes on one core.
    pub events: u64,
}

impl Default for ExecutorLimits {
    fn default() -> Self {
        Self {
            virtual_time: Duration::from_secs(3600),
            events: 200_000_000,
        }
    }
}

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StallError {
    /// No task is ready, no timer is left, and the root is not done.
    #[error(
        "deadlock at {now}: {tasks} tasks wait, none is ready, no timer is set after {events} events"
    )]
    Deadlock {
        /// Time of the last event.
        now: Instant,
        /// Live tasks, without the root.
        tasks: usize,
        /// Events so far.
        events: u64,
    },
    /// The next timer is past [`ExecutorLimits::virtual_time`].
    #[error(
        "time limit reached at {now}: {tasks} tasks wait, the next timer is at {next}, limit {limit:?}"
    )]
    TimeLimit {
        /// Time of the last event.
        now: Instant,
        /// Time of the next timer.
        next: Instant,
        /// The limit.
        limit: Duration,
        /// Live tasks, without the root.
        tasks: usize,
    },
    /// More events than [`ExecutorLimits::events`].
    #[error("event limit exceeded at {now}: {events} events, {tasks} tasks still busy")]
    EventLimit {
        /// Time of the last event.
        now: Instant,
        /// Events so far.
        events: u64,
        /// Live tasks, without the root.
        tasks: usize,
    },
}

/// Tasks that are polled before the root is polled again, if it was woken: as in tokio, whose `event_interval` is 61.
const TASKS_PER_ROUND: usize = 61;

/// The executor. It owns the tasks, and the clock with its timers.
///
/// Run it on a plain thread, never inside a tokio runtime: tokio charges every operation on its channels to the outer task's
/// co-operative budget, which only tokio's own scheduler refills. After 128 operations every channel returns `Pending` and wakes
/// itself, and virtual time stands still for ever.
///
/// Dropping it drops every task and timer, including those of a run that has not ended.
pub struct Executor {
    core: Arc<Core>,
    /// By number; numbers are never reused, so an old waker wakes no other task.
    tasks: Vec<Option<Task>>,
    alive: usize,
    events: u64,
    limits: ExecutorLimits,
}

struct Task {
    future: BoxFuture<()>,
    wake: Arc<TaskWake>,
    waker: Waker,
}

/// Wakes one task: puts its number into the queue unless it is already there. It has only the queue, so timers with wakers do not
/// keep the executor alive.
struct TaskWake {
    id: usize,
    queued: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl Wake for TaskWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.push(self.id);
        }
    }
}

/// Whether the root was woken. It is not in the queue: it is polled at the start of a round, which ends when the queue is empty or after
/// [`TASKS_PER_ROUND`] tasks.
struct RootWake(AtomicBool);

impl Wake for RootWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Default for Executor {
    fn default() -> Self {
        Self::new(ExecutorLimits::default())
    }
}

impl Executor {
    /// Creates an executor at the origin of its run, without tasks.
    #[must_use]
    pub fn new(limits: ExecutorLimits) -> Self {
        Self {
            core: Arc::new(Core::new()),
            tasks: Vec::new(),
            alive: 0,
            events: 0,
            limits,
        }
    }

    /// A handle for the code in the run.
    #[must_use]
    pub fn runtime(&self) -> SimRuntime {
        SimRuntime::new(self.core.clone())
    }

    /// Number of polls and timers so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Runs `root`, and the tasks that it spawns, until `root` is done. Other live tasks are then dropped.
    ///
    /// # Errors
    ///
    /// [`StallError`] if the run cannot end or exceeds its limits.
    ///
    /// # Panics
    ///
    /// If a task panics: the panic propagates.
    pub fn run<F: Future>(mut self, root: F) -> Result<F::Output, StallError> {
        drop_spare_buffers(); // their sizes limit how much a session reads at once
        let mut root = pin!(root);
        let root_wake = Arc::new(RootWake(AtomicBool::new(true)));
        let root_waker = Waker::from(root_wake.clone());
        loop {
            if root_wake.0.swap(false, Ordering::Relaxed) {
                self.count_event()?;
                let polled = root.as_mut().poll(&mut Context::from_waker(&root_waker));
                if let Poll::Ready(output) = polled {
                    return Ok(output);
                }
            }
            for _ in 0..TASKS_PER_ROUND {
                let Some(id) = self.core.ready.pop() else {
                    break;
                };
                if id >= self.tasks.len() {
                    self.adopt_spawned();
                }
                self.count_event()?;
                self.poll_task(id);
            }
            if !root_wake.0.load(Ordering::Relaxed) && self.core.ready.is_empty() {
                self.jump()?;
            }
        }
    }

    fn count_event(&mut self) -> Result<(), StallError> {
        if self.events >= self.limits.events {
            self.adopt_spawned();
            let now = self.core.lock().now;
            return Err(StallError::EventLimit {
                now,
                events: self.events,
                tasks: self.alive,
            });
        }
        self.events += 1;
        Ok(())
    }

    /// Takes over all tasks that were spawned since the last call. The number of each is in the ready queue.
    fn adopt_spawned(&mut self) {
        let spawned = std::mem::take(&mut self.core.lock().spawned);
        for future in spawned {
            let wake = Arc::new(TaskWake {
                id: self.tasks.len(),
                queued: AtomicBool::new(true),
                ready: self.core.ready.clone(),
            });
            let waker = Waker::from(wake.clone());
            self.tasks.push(Some(Task {
                future,
                wake,
                waker,
            }));
            self.alive += 1;
        }
    }

    fn poll_task(&mut self, id: usize) {
        let Some(task) = &mut self.tasks[id] else {
            return; // the task is done; a clone of its waker still exists
        };
        task.wake.queued.store(false, Ordering::Relaxed);
        if task
            .future
            .as_mut()
            .poll(&mut Context::from_waker(&task.waker))
            .is_ready()
        {
            self.tasks[id] = None;
            self.alive -= 1;
        }
    }

    /// Moves the clock to the next timer, and runs the actions of all timers that are then due: as in a system, where a program that
    /// wakes up handles all its timers that have expired.
    fn jump(&mut self) -> Result<(), StallError> {
        let (limit, tasks, events) = (self.limits.virtual_time, self.alive, self.events);
        let mut state = self.core.lock();
        let now = state.now;
        let Some(next) = state.timers.next_at() else {
            return Err(StallError::Deadlock { now, tasks, events });
        };
        if next > Instant::ZERO + limit {
            return Err(StallError::TimeLimit {
                now,
                next,
                limit,
                tasks,
            });
        }
        state.now = now.max(next);
        let now = state.now;
        while let Some(action) = state.timers.pop_due(now) {
            drop(state); // the action may set more timers
            match action {
                Action::Wake(waker) => waker.wake(),
                Action::Fire(target, token) => target.fire(now, token),
            }
            self.count_event()?;
            state = self.core.lock();
        }
        Ok(())
    }
}

/// Breaks the reference cycle: tasks and timers have the core, and the core has them.
impl Drop for Executor {
    fn drop(&mut self) {
        self.tasks.clear();
        loop {
            let mut state = self.core.lock();
            let (spawned, timers) = (std::mem::take(&mut state.spawned), state.timers.clear());
            drop(state); // dropping futures may touch the core again
            if spawned.is_empty() && timers.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use parking_lot::Mutex;
    use spdy::runtime::Runtime;

    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Appends its token at each timer, and wakes the root at token 1.
    struct Arrivals {
        seen: Mutex<Vec<u64>>,
        waker: Mutex<Option<Waker>>,
    }

    impl crate::runtime::timers::TimerTarget for Arrivals {
        fn fire(self: Arc<Self>, _now: Instant, token: u64) {
            self.seen.lock().push(token);
            if token == 1
                && let Some(waker) = self.waker.lock().take()
            {
                waker.wake();
            }
        }
    }

    #[test]
    fn timers_of_one_instant_fire_before_a_task_runs() {
        let executor = Executor::default();
        let runtime = executor.runtime();
        let arrivals = Arc::new(Arrivals {
            seen: Mutex::default(),
            waker: Mutex::default(),
        });
        for (at, token) in [(ms(5), 1), (ms(5), 2), (ms(6), 4)] {
            runtime.fire_at(at, arrivals.clone(), token);
        }
        let after_waking = executor.run(async {
            let mut timer = Box::pin(runtime.sleep_until(ms(5)));
            let polled = std::future::poll_fn(|cx| Poll::Ready(timer.as_mut().poll(cx)));
            assert!(polled.await.is_pending(), "its timer is set");
            // Behind the timer of the task, at the same instant.
            runtime.fire_at(ms(5), arrivals.clone(), 3);
            std::future::poll_fn(|cx| {
                if arrivals.seen.lock().is_empty() {
                    *arrivals.waker.lock() = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(arrivals.seen.lock().clone())
            })
            .await
        });
        assert_eq!(after_waking, Ok(vec![1, 2, 3]));
    }

    #[test]
    fn sleeping_costs_no_time_but_virtual_time() {
        let executor = Executor::default();
        let runtime = executor.runtime();
        let woke = executor.run(async {
            runtime.sleep_until(ms(3_000_000)).await;
            runtime.now()
        });
        assert_eq!(woke, Ok(ms(3_000_000)));
    }

    #[test]
    fn tasks_run_in_the_order_of_their_wake_ups() {
        let executor = Executor::default();
        let runtime = executor.runtime();
        let log = Arc::new(Mutex::new(Vec::new()));
        for (name, at) in [("c", 30), ("a", 10), ("b1", 20), ("b2", 20)] {
            let (log, inner) = (log.clone(), runtime.clone());
            runtime.spawn(Box::pin(async move {
                inner.sleep_until(ms(at)).await;
                log.lock().push((name, inner.now()));
            }));
        }
        executor.run(runtime.sleep_until(ms(40))).unwrap();
        let expected = [("a", ms(10)), ("b1", ms(20)), ("b2", ms(20)), ("c", ms(30))];
        assert_eq!(*log.lock(), expected);
    }

    /// As on tokio's current-thread runtime. Regression: a spawned task ran after the tasks that its spawner woke later.
    #[test]
    fn spawned_tasks_and_woken_tasks_run_in_one_order_and_the_root_last() {
        let executor = Executor::default();
        let runtime = executor.runtime();
        let log = Arc::new(Mutex::new(Vec::new()));
        let note = |name| {
            let log = log.clone();
            move || log.lock().push(name)
        };
        let (wake_waiter, woken) = tokio::sync::oneshot::channel::<()>();
        let (wake_root, root_woken) = tokio::sync::oneshot::channel::<()>();
        let waiter = note("waiter");
        runtime.spawn(Box::pin(async move {
            let _ = woken.await;
            waiter();
        }));
        let (inner, first, second) = (runtime.clone(), note("first"), note("second"));
        runtime.spawn(Box::pin(async move {
            let _ = wake_root.send(());
            inner.spawn(Box::pin(async move { first() }));
            let _ = wake_waiter.send(());
            inner.spawn(Box::pin(async move { second() }));
        }));
        let root = note("root");
        let ended = executor.run(async {
            let _ = root_woken.await;
            root();
        });
        assert_eq!(ended, Ok(()));
        assert_eq!(*log.lock(), ["first", "waiter", "second", "root"]);
    }

    #[test]
    fn a_root_that_nothing_can_wake_is_a_deadlock_and_no_hang() {
        let executor = Executor::default();
        let runtime = executor.runtime();
        runtime.spawn(Box::pin(pending()));
        let stalled = executor.run(pending::<()>()).unwrap_err();
        assert_eq!(
            stalled,
            StallError::Deadlock {
                now: Instant::ZERO,
                tasks: 1,
                events: 2
            }
        );
    }

    #[test]
    fn one_timer_past_the_limit_ends_the_run() {
        let limits = ExecutorLimits {
            virtual_time: Duration::from_secs(1),
            ..ExecutorLimits::default()
        };
        let executor = Executor::new(limits);
        let sleep = executor.runtime().sleep_until(ms(1_000));
        assert_eq!(executor.run(sleep), Ok(()));
        let executor = Executor::new(limits);
        let sleep = executor.runtime().sleep_until(ms(1_001));
        assert!(matches!(
            executor.run(sleep),
            Err(StallError::TimeLimit { .. })
        ));
    }

    #[test]
    fn a_task_that_wakes_itself_forever_reaches_the_event_limit() {
        let executor = Executor::new(ExecutorLimits {
            events: 1_000,
            ..ExecutorLimits::default()
        });
        let busy = std::future::poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        let stalled = executor.run(busy).unwrap_err();
        assert_eq!(
            stalled,
            StallError::EventLimit {
                now: Instant::ZERO,
                events: 1_000,
                tasks: 0
            }
        );
    }

    #[test]
    fn a_cancelled_sleep_leaves_no_timer_behind() {
        let executor = Executor::default();
        let runtime = executor.runtime();
        let core = executor.core.clone();
        let slept = executor.run(async {
            let long = runtime.sleep_until(ms(9_000));
            let short = runtime.sleep_until(ms(5));
            futures_util::future::select(long, short).await;
            core.lock().timers.next_at()
        });
        assert_eq!(slept, Ok(None));
    }

    #[test]
    fn dropping_the_executor_drops_remaining_tasks_and_timers() {
        let guard = Arc::new(());
        let executor = Executor::default();
        let runtime = executor.runtime();
        let (held, inner) = (guard.clone(), runtime.clone());
        runtime.spawn(Box::pin(async move {
            inner.sleep_until(ms(50)).await;
            drop(held);
        }));
        executor.run(runtime.sleep_until(ms(10))).unwrap();
        assert_eq!(Arc::strong_count(&guard), 1);
    }
}
