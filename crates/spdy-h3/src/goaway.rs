//! The server's GOAWAY: requests on streams from an ID on are rejected. A later GOAWAY may lower the ID (RFC 9114 §5.2).

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use spdy_net_core::latch::Latch;

/// The state of the server's GOAWAY. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Goaway(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Streams from this one on are not processed; `u64::MAX`, which no stream has, before the first GOAWAY.
    first_rejected: u64,
    /// Set when the value changes, and then replaced by another latch.
    change: Latch,
}

impl Goaway {
    /// No GOAWAY was received.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            first_rejected: u64::MAX,
            change: Latch::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Handles a received GOAWAY with `id`.
    pub(crate) fn handle(&self, id: u64) {
        let changed = {
            let mut state = self.lock();
            state.first_rejected = id;
            std::mem::take(&mut state.change)
        };
        changed.set();
    }

    /// True if a GOAWAY was received: no new request may be sent then.
    pub(crate) fn is_received(&self) -> bool {
        self.rejects(u64::MAX - 1)
    }

    /// True if the server rejects the request on stream `id`.
    pub(crate) fn rejects(&self, id: u64) -> bool {
        self.lock().first_rejected <= id
    }

    /// Completes when the server rejects the request on stream `id`. A request without a stream is rejected by the first
    /// GOAWAY.
    pub(crate) async fn rejected(self, id: Option<u64>) {
        loop {
            let change = {
                let state = self.lock();
                if state.first_rejected <= id.unwrap_or(u64::MAX - 1) {
                    return;
                }
                state.change.wait()
            };
            change.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_waiting_request_is_woken_when_goaway_covers_its_stream() {
        let goaway = Goaway::new();
        let mut waiting =
            [None, Some(8), Some(4)].map(|id| goaway.clone().rejected(id).boxed().fuse());
        let mut state_after = |id: Option<u64>| {
            id.into_iter().for_each(|id| goaway.handle(id));
            let rejected = waiting.each_mut().map(|it| it.now_or_never().is_some());
            (goaway.is_received(), goaway.rejects(4), rejected)
        };
        assert_eq!(state_after(None), (false, false, [false; 3]));
        let all_so_far = Some((1 << 62) - 4);
        assert_eq!(state_after(all_so_far), (true, false, [true, false, false]));
        assert_eq!(state_after(Some(8)), (true, false, [false, true, false]));
        assert_eq!(state_after(Some(4)), (true, true, [false, false, true]));
    }
}
