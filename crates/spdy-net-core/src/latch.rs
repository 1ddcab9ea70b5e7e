//! A latch: set once, observed by all waiting tasks. Used to request a shutdown, and to report that something ended.
//!
//! tokio's own signals wake their tasks in random order; here it is the order of waiting, so that virtual time is repeatable.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use futures_util::future::{Either, select};
use parking_lot::{Mutex, MutexGuard};

/// A latch. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Latch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Set under the lock; read without it, because every connection reads it often.
    is_set: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

impl Latch {
    /// A latch that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it permanently.
    pub fn set(&self) {
        let waiting = {
            let mut state = self.lock();
            self.0.is_set.store(true, Ordering::Release);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_values().for_each(Waker::wake);
    }

    /// True if it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
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
            waker: None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

/// The future of [`Latch::wait`].
#[derive(Debug)]
pub struct Wait {
    latch: Latch,
    id: u64,
    /// The registered waker.
    waker: Option<Waker>,
}

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let stands = this.waker.as_ref();
        if !stands.is_some_and(|waker| waker.will_wake(cx.waker())) {
            let mut state = this.latch.lock();
            state.waiting.insert(this.id, cx.waker().clone());
            this.waker = Some(cx.waker().clone());
        }
        match this.latch.is_set() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.latch.lock().waiting.remove(&self.id);
    }
}

/// Runs `work` to its end, or drops it when `given_up` is ready.
pub async fn until<T>(
    given_up: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(given_up), pin!(work)).await {
        Either::Left(_) => None,
        Either::Right((done, _)) => Some(done),
    }
}
