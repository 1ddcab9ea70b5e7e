//! The slot of one connection: whether the connection is idle, and whether another connection needs the slot.
//!
//! ```text
//!  let in --> idle --exchange--> busy --last exchange ended--> idle --others wait, and it is its turn--> gives way
//! ```
//!
//! The connection reports what it does. `idle_eviction.rs` in `spdy-net` reads that when all slots are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Response;
use http_body::Body as _;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;

use crate::body_wrapper::wrap_poll;
use crate::latch::{Latch, Wait};

/// Clones share one slot. The default slot is never evicted.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSlot(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    evicted: Latch,
    /// Counts on whenever a connection of the same door has nothing to do any more.
    sequence: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    /// Exchanges that are open.
    open: usize,
    /// When the last one ended, in turns: of two connections the lower has waited longer.
    idle_since: u64,
}

impl ConnectionSlot {
    /// A place among those that share `turns`.
    pub fn new(turns: Arc<AtomicU64>) -> Self {
        let idle_since = turns.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(State {
            open: 0,
            idle_since,
        });
        Self(Arc::new(Shared {
            state,
            evicted: Latch::new(),
            sequence: turns,
        }))
    }

    /// An exchange began; it ends when what is returned is dropped.
    pub fn exchange(&self) -> SlotExchange {
        self.lock().open += 1;
        SlotExchange(self.clone())
    }

    /// Turn since which the connection is idle; `None` if it is busy or was evicted.
    pub fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        (state.open == 0 && !self.0.evicted.is_set()).then_some(state.idle_since)
    }

    /// Requests an orderly end of the connection; `false` if it is busy by now, and may stay.
    pub fn try_evict(&self) -> bool {
        let state = self.lock();
        let idle = state.open == 0;
        if idle {
            self.0.evicted.set();
        }
        idle
    }

    /// Completes when the connection was evicted: another connection needs its slot.
    pub fn evicted(&self) -> Wait {
        self.0.evicted.wait()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }
}

/// An exchange that is open.
#[derive(Debug)]
pub struct SlotExchange(ConnectionSlot);

impl SlotExchange {
    /// Keeps it open as long as `response` has a body to come. One that is in memory is handed over at once,
    /// and no connection ends before it is sent: it costs nothing here.
    pub fn with(self, response: Response<Body>) -> Response<Body> {
        if response.body().try_clone().is_some() {
            return response;
        }
        response.map(|body| {
            wrap_poll(body, move |body, cx| {
                let _exchange = &self; // open until the body is dropped
                body.poll_frame(cx)
            })
        })
    }
}

impl Drop for SlotExchange {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.open -= 1;
        if state.open == 0 {
            state.idle_since = self.0.0.sequence.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_with_a_new_request_is_not_evicted() {
        let seat = ConnectionSlot::default();
        let exchange = seat.exchange();
        assert!(!seat.try_evict());
        assert!(!seat.0.evicted.is_set());
        drop(exchange);
        assert!(seat.try_evict());
        assert!(seat.0.evicted.is_set());
    }
}
