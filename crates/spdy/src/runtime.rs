//! The runtime that this crate needs: a clock, timers and tasks.
//!
//! In a program that is [`TokioRuntime`]; in virtual time (`spdy-sim`) it is an event loop whose clock jumps. Code above this trait
//! does not depend on which one it is.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "tokio-runtime")]
use std::sync::OnceLock;
use std::task::{Context, Poll, Waker};

use spdy_clock::Instant;
#[cfg(feature = "tokio-runtime")]
use spdy_clock::MonotonicClock;

/// A future that can be moved to another thread.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Drops the read and write buffers that earlier sessions left on this thread.
///
/// A session reads as much at once as its buffer has room for. Each run in virtual time calls this first, so that its packets do not
/// depend on earlier runs.
#[doc(hidden)] // for spdy-sim
pub fn drop_spare_buffers() {
    crate::session::buffers::drop_spares();
}

/// A clock, timers and tasks.
pub trait Runtime: Send + Sync + 'static {
    /// The current instant of the run.
    fn now(&self) -> Instant;
    /// Completes at `deadline`, at once if that has passed.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()>;
    /// Runs `task` concurrently with the caller.
    fn spawn(&self, task: BoxFuture<()>);

    /// Polls `task` here until it is pending, and spawns the rest of it. For tasks that usually finish at once, where moving them
    /// to another thread costs more than the task. A panic of the task does not reach the caller.
    fn begin(&self, mut task: BoxFuture<()>) {
        // The task is polled again as soon as it is spawned, and registers its waker then.
        let mut cx = Context::from_waker(Waker::noop());
        let polled = AssertUnwindSafe(|| task.as_mut().poll(&mut cx));
        match catch_unwind(polled) {
            Ok(Poll::Ready(())) => {}
            Ok(Poll::Pending) => self.spawn(task),
            Err(panic) => self.spawn(Box::pin(async { resume_unwind(panic) })),
        }
    }
}

/// A shared handle of a runtime.
#[derive(Clone)]
pub struct SharedRuntime(Arc<dyn Runtime>);

impl SharedRuntime {
    /// Wraps `runtime`.
    pub fn new(runtime: impl Runtime) -> Self {
        Self(Arc::new(runtime))
    }

    /// Tokio's runtime, one for the whole program: all sessions that use it have the same time origin.
    #[cfg(feature = "tokio-runtime")]
    #[must_use]
    pub fn tokio() -> Self {
        static RUNTIME: OnceLock<SharedRuntime> = OnceLock::new();
        RUNTIME
            .get_or_init(|| Self::new(TokioRuntime::start()))
            .clone()
    }
}

impl fmt::Debug for SharedRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedRuntime")
    }
}

impl std::ops::Deref for SharedRuntime {
    type Target = dyn Runtime;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// Real time, on tokio. Create it and use it inside a tokio runtime.
#[cfg(feature = "tokio-runtime")]
#[derive(Clone, Copy, Debug)]
pub struct TokioRuntime {
    clock: MonotonicClock,
}

#[cfg(feature = "tokio-runtime")]
impl TokioRuntime {
    /// A runtime whose time origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            clock: MonotonicClock::start(),
        }
    }
}

#[cfg(feature = "tokio-runtime")]
impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep_until(
            self.clock.to_system(deadline).into(),
        ))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        tokio::spawn(task);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use parking_lot::Mutex;
    use tokio::sync::oneshot;

    use super::*;

    /// Runs nothing, and stores spawned tasks.
    #[derive(Default)]
    struct QueueRuntime(Mutex<Vec<BoxFuture<()>>>);

    impl Runtime for QueueRuntime {
        fn now(&self) -> Instant {
            Instant::ZERO
        }

        fn sleep_until(&self, _: Instant) -> BoxFuture<()> {
            Box::pin(std::future::pending())
        }

        fn spawn(&self, task: BoxFuture<()>) {
            self.0.lock().push(task);
        }
    }

    /// One step, a wait for `sender`, and one more step.
    fn counting(done: &Arc<AtomicUsize>, go: oneshot::Receiver<()>) -> BoxFuture<()> {
        let done = done.clone();
        Box::pin(async move {
            done.fetch_add(1, Ordering::Relaxed);
            let _ = go.await;
            done.fetch_add(1, Ordering::Relaxed);
        })
    }

    #[test]
    fn begin_runs_a_task_inline_until_it_waits() {
        let runtime = QueueRuntime::default();
        let done = Arc::default();
        let (sender, ready_receiver) = oneshot::channel();
        sender.send(()).expect("the receiver exists");
        runtime.begin(counting(&done, ready_receiver));
        assert_eq!(done.load(Ordering::Relaxed), 2);
        assert!(runtime.0.lock().is_empty(), "the queue is empty");
        let (sender, receiver) = oneshot::channel();
        runtime.begin(counting(&done, receiver));
        assert_eq!(
            done.load(Ordering::Relaxed),
            3,
            "the task runs until it waits"
        );
        let mut task = runtime.0.lock().pop().expect("the task is spawned");
        let (waker, woken) = counting_waker();
        let mut cx = Context::from_waker(&waker);
        assert!(task.as_mut().poll(&mut cx).is_pending());
        sender.send(()).expect("the receiver was not dropped");
        assert_eq!(
            woken.load(Ordering::Relaxed),
            1,
            "the current waker is woken"
        );
        assert!(task.as_mut().poll(&mut cx).is_ready());
        assert_eq!(done.load(Ordering::Relaxed), 4);
    }

    #[test]
    fn a_panic_in_begin_stays_in_the_spawned_task() {
        let runtime = QueueRuntime::default();
        runtime.begin(Box::pin(async { panic!("a panic in the task") }));
        let mut task = runtime.0.lock().pop().expect("the task is spawned");
        let mut cx = Context::from_waker(Waker::noop());
        let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut cx)));
        assert!(polled.is_err());
    }

    /// A waker, and the number of its calls.
    fn counting_waker() -> (Waker, Arc<AtomicUsize>) {
        struct Counting(Arc<AtomicUsize>);
        impl std::task::Wake for Counting {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let count = Arc::default();
        (Waker::from(Arc::new(Counting(Arc::clone(&count)))), count)
    }
}
