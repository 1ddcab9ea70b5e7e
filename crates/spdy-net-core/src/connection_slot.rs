//! The slot of one connection: records if the connection is idle, and if another connection needs the slot.
//!
//! ```text
//!  admitted --> idle --exchange--> busy --last exchange ended--> idle --another connection needs the slot--> evicted
//! ```
//!
//! The connection reports its state. `idle_eviction.rs` in `spdy-net` reads it when all slots are taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Response;
use http_body::Body as _;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;

use crate::body_wrapper::wrap_poll;
use crate::latch::{Latch, Wait};

/// The slot of a connection. Clones share it. The default slot is never evicted.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSlot(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    evicted: Latch,
    /// Incremented whenever a connection of the same listeners becomes idle.
    sequence: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of open exchanges.
    open: usize,
    /// The sequence number of the end of the last exchange: of two connections, the one with the lower number has been idle for longer.
    idle_since: u64,
}

impl ConnectionSlot {
    /// A slot that shares the sequence `turns` with others.
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

    /// Begins an exchange, which ends when the returned value is dropped.
    pub fn exchange(&self) -> SlotExchange {
        self.lock().open += 1;
        SlotExchange(self.clone())
    }

    /// The sequence number since which the connection is idle; `None` if it is busy or was evicted.
    pub fn idle_since(&self) -> Option<u64> {
        let state = self.lock();
        (state.open == 0 && !self.0.evicted.is_set()).then_some(state.idle_since)
    }

    /// Requests an orderly end of the connection; `false` if it is busy now, and may stay.
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

/// Guard of an open exchange.
#[derive(Debug)]
pub struct SlotExchange(ConnectionSlot);

impl SlotExchange {
    /// Keeps the exchange open until the body of `response` ends. A body in memory is passed on at once, and no connection ends
    /// before it is sent, so it needs no guard.
    pub fn with(self, response: Response<Body>) -> Response<Body> {
        if response.body().is_in_memory() {
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
