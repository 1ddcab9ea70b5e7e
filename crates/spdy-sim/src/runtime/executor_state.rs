//! What an executor shares with its handles: the clock, the timers, and tasks that were spawned.

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::BoxFuture;
use spdy_clock::Instant;

use crate::runtime::timers::Timers;

/// What handles share with the executor.
pub(crate) struct Core {
    pub(super) state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) timers: Timers,
    pub(crate) spawned: Vec<BoxFuture<()>>,
}

impl Core {
    /// The state; a panic elsewhere leaves it usable, since every step on it is whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
