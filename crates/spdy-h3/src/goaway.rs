//! What the server says of the requests that it will not look at: those on streams from an id on, which may fall
//! (RFC 9114 §5.2).

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use spdy_net_core::latch::Latch;

/// Where the server stops. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Goaway(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Streams from this one on are not processed; `u64::MAX`, which no stream has, while nothing was said.
    first_rejected: u64,
    /// Set when that changes, and then another takes its place.
    change: Latch,
}

impl Goaway {
    /// Nothing was said.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            first_rejected: u64::MAX,
            change: Latch::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// GOAWAY came with `id`.
    pub(crate) fn handle(&self, id: u64) {
        let changed = {
            let mut state = self.lock();
            state.first_rejected = id;
            std::mem::take(&mut state.change)
        };
        changed.set();
    }

    /// Whether it came at all: nothing new may be asked then.
    pub(crate) fn is_received(&self) -> bool {
        self.rejects(u64::MAX - 1)
    }

    /// Whether the request on stream `id` is none that the server looks at.
    pub(crate) fn rejects(&self, id: u64) -> bool {
        self.lock().first_rejected <= id
    }

    /// Completes when the request on stream `id` is known to be none that the server looks at; without a stream it is
    /// at the first GOAWAY.
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
        let mut told = |id: Option<u64>| {
            id.into_iter().for_each(|id| goaway.handle(id));
            let known = waiting.each_mut().map(|it| it.now_or_never().is_some());
            (goaway.is_received(), goaway.rejects(4), known)
        };
        assert_eq!(told(None), (false, false, [false; 3]));
        let all_so_far = Some((1 << 62) - 4);
        assert_eq!(told(all_so_far), (true, false, [true, false, false]));
        assert_eq!(told(Some(8)), (true, false, [false, true, false]));
        assert_eq!(told(Some(4)), (true, true, [false, false, true]));
    }
}
