//! State that an executor shares with its handles: the clock, the timers, and spawned tasks.

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::BoxFuture;
use spdy_clock::Instant;

use crate::runtime::timers::Timers;

/// State that handles share with the executor.
pub(crate) struct Core {
    pub(super) state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) timers: Timers,
    pub(crate) spawned: Vec<BoxFuture<()>>,
}

impl Core {
    /// Locks the state. It stays usable after a panic, because every change of it is complete.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}
