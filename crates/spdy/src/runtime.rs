//! What async code here needs besides bytes: the hour, a way to wait, a way to run beside.
//!
//! In a program that is [`TokioRuntime`]; in the lab an event loop whose clock jumps. Nothing above
//! this trait knows which.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
#[cfg(feature = "tokio-runtime")]
use std::sync::OnceLock;

use spdy_clock::Instant;
#[cfg(feature = "tokio-runtime")]
use spdy_clock::WallClock;

/// A future that can be moved to another thread.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A clock, timers and tasks.
pub trait Runtime: Send + Sync + 'static {
    /// The present instant of the run.
    fn now(&self) -> Instant;
    /// Completes at `deadline`, at once if that has passed.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()>;
    /// Runs `task` beside the caller.
    fn spawn(&self, task: BoxFuture<()>);
}

/// A runtime as it is handed around.
#[derive(Clone)]
pub struct SharedRuntime(Arc<dyn Runtime>);

impl SharedRuntime {
    /// Wraps `runtime`.
    pub fn new(runtime: impl Runtime) -> Self {
        Self(Arc::new(runtime))
    }

    /// Tokio's, one for the whole program: all sessions that use it count time from the same origin.
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

/// Real time, on tokio. Make it, and use it, inside a tokio runtime.
#[cfg(feature = "tokio-runtime")]
#[derive(Clone, Copy, Debug)]
pub struct TokioRuntime {
    clock: WallClock,
}

#[cfg(feature = "tokio-runtime")]
impl TokioRuntime {
    /// A runtime whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self {
            clock: WallClock::start(),
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
