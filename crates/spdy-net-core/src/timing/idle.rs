//! Tracks how long an HTTP/2 or HTTP/3 connection has been idle. (hyper and SPDY's session do that themselves.)

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;

/// Minimum interval of checks while an exchange is open, in case `patience` is zero.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Tracks the open exchanges of a connection. Clones share it.
#[derive(Clone, Debug)]
pub struct IdleTracker {
    state: Arc<Mutex<State>>,
    runtime: SharedRuntime,
    timeout: Duration,
}

#[derive(Debug)]
struct State {
    open: usize,
    since: Instant,
}

impl IdleTracker {
    /// Tracks a connection that has no exchange yet. It is idle for too long after `patience`.
    pub fn start(runtime: SharedRuntime, patience: Duration) -> Self {
        let state = State {
            open: 0,
            since: runtime.now(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            runtime,
            timeout: patience,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Begins an exchange, which ends when the returned value is dropped.
    pub fn exchange(&self) -> IdleGuard {
        self.lock().open += 1;
        IdleGuard(self.clone())
    }

    /// Completes when no exchange was open for the idle timeout.
    pub async fn expired(&self) {
        self.wait_idle_since(Instant::ZERO, self.timeout).await;
    }

    /// Completes when no exchange was open for `patience`, at the earliest `patience` after `start`.
    pub async fn wait_idle_since(&self, start: Instant, patience: Duration) {
        loop {
            let (open, since) = {
                let state = self.lock();
                (state.open, state.since)
            };
            let now = self.runtime.now();
            let deadline = if open > 0 {
                now + patience.max(MIN_POLL_INTERVAL)
            } else {
                since.max(start) + patience
            };
            if deadline <= now {
                return;
            }
            self.runtime.sleep_until(deadline).await;
        }
    }
}

/// Guard of an open exchange.
#[derive(Debug)]
pub struct IdleGuard(IdleTracker);

impl Drop for IdleGuard {
    fn drop(&mut self) {
        let now = self.0.runtime.now();
        let mut state = self.0.lock();
        state.open -= 1;
        state.since = now;
    }
}
