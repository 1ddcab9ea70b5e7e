//! A latch: set once, seen by all who wait. The signal to shut down, and the news that something ended.
//!
//! tokio's own signals wake their waiters in an order that chance decides; here it is the order of
//! waiting, so that virtual time repeats.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Clones are the same latch.
#[derive(Clone, Debug, Default)]
pub struct Latch(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Latch {
    /// A latch that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it for good.
    pub fn set(&self) {
        let waiting = {
            let mut state = self.lock();
            state.is_set = true;
            std::mem::take(&mut state.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.lock().is_set
    }

    /// Completes when it is set.
    #[must_use]
    pub fn wait(&self) -> Wait {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        Wait {
            latch: self.clone(),
            id,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The future of [`Latch::wait`].
#[derive(Debug)]
pub struct Wait {
    latch: Latch,
    id: u64,
}

impl Future for Wait {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.latch.lock();
        if state.is_set {
            return Poll::Ready(());
        }
        match state.waiting.get_mut(&self.id) {
            Some(waiting) => waiting.clone_from(cx.waker()), // mostly the same one, and then nothing is done
            None => drop(state.waiting.insert(self.id, cx.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.latch.lock().waiting.remove(&self.id);
    }
}
