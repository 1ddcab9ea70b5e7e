//! State that an executor shares with its handles: the clock, the timers, spawned tasks, and the queue of ready tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::BoxFuture;
use spdy_clock::Instant;

use crate::runtime::timers::Timers;

/// State that handles share with the executor.
pub(crate) struct Core {
    state: Mutex<State>,
    pub(super) ready: Arc<ReadyQueue>,
}

pub(crate) struct State {
    pub(crate) now: Instant,
    pub(crate) timers: Timers,
    /// Tasks that the executor has not adopted yet, in the order of their numbers.
    pub(super) spawned: Vec<BoxFuture<()>>,
    /// Number of the next task.
    next_id: usize,
}

impl Core {
    /// The state at the origin of a run.
    pub(super) fn new() -> Self {
        let state = State {
            now: Instant::ZERO,
            timers: Timers::default(),
            spawned: Vec::new(),
            next_id: 0,
        };
        Self {
            state: Mutex::new(state),
            ready: Arc::default(),
        }
    }

    /// Locks the state. It stays usable after a panic, because every change of it is complete.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Puts a new task at the end of the queue, behind the tasks that are ready now and before those that become ready later.
    pub(super) fn spawn(&self, task: BoxFuture<()>) {
        let mut state = self.lock();
        self.ready.push(state.next_id);
        state.next_id += 1;
        state.spawned.push(task);
    }
}

/// Numbers of the ready tasks, first in first out.
#[derive(Default)]
pub(super) struct ReadyQueue(Mutex<VecDeque<usize>>);

impl ReadyQueue {
    pub(super) fn push(&self, id: usize) {
        self.0.lock().push_back(id);
    }

    pub(super) fn pop(&self) -> Option<usize> {
        self.0.lock().pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}
