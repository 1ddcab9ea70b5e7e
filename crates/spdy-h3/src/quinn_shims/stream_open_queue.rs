//! Chooses the request that opens the next stream when the server's limit of streams is reached: the most urgent, then the oldest.
//!
//! QUIC grants streams one by one (MAX_STREAMS). quinn gives each to the first task that requested one, so only the head of our own
//! queue requests one.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use spdy_frame::priority::Priority;

/// The requests of a connection that wait for a stream. Clones share one queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamOpenQueue(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    next: u64,
    waiting: BTreeMap<OpenKey, Option<Waker>>,
}

/// Priority level, 0 the most urgent, and sequence number.
type OpenKey = (u8, u64);

type OpenResult = Result<(quinn::SendStream, quinn::RecvStream), quinn::ConnectionError>;

impl StreamOpenQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Adds a request to the queue.
    pub(crate) fn enqueue(&self, connection: &quinn::Connection, priority: Priority) -> StreamOpen {
        let mut state = self.lock();
        let place = (priority.level(), state.next);
        state.next += 1;
        state.waiting.insert(place, None);
        StreamOpen {
            openings: self.clone(),
            place,
            connection: connection.clone(),
            pending: None,
        }
    }
}

/// A queued request. Dropping it removes it from the queue.
pub(crate) struct StreamOpen {
    openings: StreamOpenQueue,
    place: OpenKey,
    connection: quinn::Connection,
    /// The pending request for a stream from QUIC; only the head of the queue has one.
    pending: Option<BoxFuture<'static, OpenResult>>,
}

impl Future for StreamOpen {
    type Output = OpenResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<OpenResult> {
        let this = &mut *self;
        {
            let mut state = this.openings.lock();
            let is_head = state.waiting.keys().next() == Some(&this.place);
            if let Some(waker) = state.waiting.get_mut(&this.place) {
                *waker = Some(cx.waker().clone());
            }
            if !is_head {
                this.pending = None; // a more urgent request came in the meantime
                return Poll::Pending;
            }
        }
        let asking = this.pending.get_or_insert_with(|| {
            let connection = this.connection.clone();
            Box::pin(async move { connection.open_bi().await })
        });
        pin!(asking).poll(cx)
    }
}

impl Drop for StreamOpen {
    fn drop(&mut self) {
        let mut state = self.openings.lock();
        state.waiting.remove(&self.place);
        let head = state.waiting.values_mut().next();
        let waker = head.and_then(Option::take);
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
