//! The bounded queue of spans that wait to be exported.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use spdy_proxy::telemetry::spans::{Span, SpanSink};
use spdy_proxy::telemetry::trace_context::{SpanId, TraceId};
use tokio::sync::Notify;

/// Maximum number of spans in one message, the same as in OpenTelemetry's own exporters.
pub(super) const BATCH: usize = 512;

/// Numbers of spans by outcome.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// The collector accepted them.
    pub(crate) sent: AtomicU64,
    /// They were dropped because the queue was full.
    pub(crate) dropped: AtomicU64,
    /// The collector rejected them.
    pub(crate) refused: AtomicU64,
    /// The collector was unreachable for too long.
    pub(crate) unsent: AtomicU64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64, spans: usize) {
        counter.fetch_add(spans as u64, Ordering::Relaxed);
    }
}

/// The queue.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<VecDeque<Span>>,
    bound: usize,
    /// Something waits, or enough for a batch.
    wake: Notify,
    /// Generates the IDs of traces and spans.
    rng: Mutex<ChaCha8Rng>,
    pub(crate) counts: Counts,
}

impl Queue {
    /// A queue of at most `bound` spans; IDs are generated from `seed`.
    pub(super) fn new(bound: usize, seed: [u8; 32]) -> Self {
        Self {
            waiting: Mutex::default(),
            bound,
            wake: Notify::new(),
            rng: Mutex::new(ChaCha8Rng::from_seed(seed)),
            counts: Counts::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Span>> {
        self.waiting.lock()
    }

    fn rng(&self) -> MutexGuard<'_, ChaCha8Rng> {
        self.rng.lock()
    }

    /// Number of spans that are sent without waiting for more.
    fn batch(&self) -> usize {
        BATCH.min(self.bound)
    }

    /// Spans that wait.
    pub(super) fn len(&self) -> usize {
        self.waiting().len()
    }

    /// Completes when something waits. One task at a time may wait for this or [`wait_for_batch`](Self::wait_for_batch).
    pub(super) async fn wait_for_any(&self) {
        self.has(1).await;
    }

    /// Completes when enough waits for a batch.
    pub(super) async fn wait_for_batch(&self) {
        self.has(self.batch()).await;
    }

    async fn has(&self, len: usize) {
        while self.len() < len {
            self.wake.notified().await;
        }
    }

    /// The oldest waiting spans, at most a batch.
    pub(super) fn next(&self) -> Vec<Span> {
        let mut waiting = self.waiting();
        let len = waiting.len().min(BATCH);
        waiting.drain(..len).collect()
    }
}

impl SpanSink for Queue {
    fn trace_id(&self) -> TraceId {
        let mut chance = self.rng();
        TraceId::of(u128::from(chance.next_u64()) << 64 | u128::from(chance.next_u64()))
    }

    fn span_id(&self) -> SpanId {
        SpanId::of(self.rng().next_u64())
    }

    fn take(&self, span: Span) {
        let mut waiting = self.waiting();
        if waiting.len() >= self.bound {
            drop(waiting);
            return Counts::add(&self.counts.dropped, 1);
        }
        waiting.push_back(span);
        let len = waiting.len();
        drop(waiting);
        // Not for each span: the waiting task is woken twice a batch.
        if len == 1 || len == self.batch() {
            self.wake.notify_one();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use futures_util::FutureExt;
    use spdy_clock::Instant;
    use spdy_proxy::telemetry::spans::SpanKind;
    use spdy_proxy::telemetry::trace_context::SpanContext;

    use super::*;

    /// A span without attributes or an error.
    pub(in crate::telemetry) fn plain(queue: &Queue) -> Span {
        Span {
            context: SpanContext {
                trace_id: queue.trace_id(),
                span_id: queue.span_id(),
                is_sampled: true,
                state: None,
            },
            parent: None,
            is_parent_remote: false,
            link: None,
            kind: SpanKind::Server,
            name: "GET",
            began: Instant::ZERO,
            ended: Instant::ZERO,
            attributes: Vec::new(),
            error: None,
        }
    }

    fn put(queue: &Queue, spans: usize) {
        (0..spans).for_each(|_| queue.take(plain(queue)));
    }

    #[test]
    fn one_span_more_than_may_wait_is_dropped_and_counted_and_the_oldest_stay() {
        let queue = Queue::new(3, [1; 32]);
        let first = plain(&queue);
        queue.take(first.clone());
        put(&queue, 2);
        let dropped = || queue.counts.dropped.load(Ordering::Relaxed);
        assert_eq!((queue.len(), dropped()), (3, 0));
        put(&queue, 1);
        assert_eq!((queue.len(), dropped()), (3, 1));
        assert_eq!(queue.next()[0], first);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn waiters_wake_at_the_first_span_and_at_a_full_batch() {
        let queue = Queue::new(BATCH + 1, [1; 32]);
        assert_eq!(queue.wait_for_any().now_or_never(), None);
        put(&queue, 1);
        assert_eq!(queue.wait_for_any().now_or_never(), Some(()));
        put(&queue, BATCH - 2);
        assert_eq!(queue.wait_for_batch().now_or_never(), None);
        put(&queue, 2);
        assert_eq!(queue.wait_for_batch().now_or_never(), Some(()));
        assert_eq!(queue.next().len(), BATCH);
        assert_eq!(queue.next().len(), 1);
    }

    #[test]
    fn a_queue_that_has_no_room_for_a_batch_is_sent_when_it_is_full() {
        let queue = Queue::new(2, [1; 32]);
        put(&queue, 2);
        assert_eq!(queue.wait_for_batch().now_or_never(), Some(()));
    }
}
