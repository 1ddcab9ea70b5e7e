//! Notices a [`Connection`](crate::client::Connection) that is never run, so that what waits for it fails instead of
//! waiting for ever.
//!
//! The watch starts when something first waits, and costs nothing once the connection runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::error::Error;
use crate::shared::Shared;

/// How long a task may wait for a session whose connection is not run.
const RUN_WITHIN: Duration = Duration::from_secs(10);

const IDLE: u8 = 0;
const WATCHED: u8 = 1;
const RUN: u8 = 2;
const EXPIRED: u8 = 3;

/// Whether the connection is run.
#[derive(Debug, Default)]
pub(crate) struct RunWatch(AtomicU8);

impl RunWatch {
    fn change(&self, from: u8, to: u8) -> bool {
        let changed = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        changed.is_ok()
    }

    /// The connection is run from now on; `false` if that is too late.
    pub(crate) fn run(&self) -> bool {
        self.change(IDLE, RUN) || self.change(WATCHED, RUN) || self.0.load(Ordering::Acquire) == RUN
    }
}

impl Shared {
    /// Something waits for the connection. If that is not run in time, the session ends.
    pub(crate) fn watch_run(self: &Arc<Self>) {
        if self.run_watch.0.load(Ordering::Relaxed) != IDLE || !self.run_watch.change(IDLE, WATCHED)
        {
            return;
        }
        let (shared, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let deadline = runtime.sleep_until(runtime.now() + RUN_WITHIN);
        runtime.spawn(Box::pin(async move {
            deadline.await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if shared.run_watch.change(WATCHED, EXPIRED) {
                let error = Error::ConnectionNotRun { waited: RUN_WITHIN };
                let mut woken = Vec::new();
                shared.look(|state| state.end(Err(error), &mut woken));
                woken.into_iter().for_each(std::task::Waker::wake);
            }
        }));
    }
}
