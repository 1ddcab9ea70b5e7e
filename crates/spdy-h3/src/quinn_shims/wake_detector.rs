//! Detects whether QUIC woke the writer of a stream. This distinguishes a stream that waits for its turn from one that stalls.
//!
//! quinn does not report why it accepts no more data. A stream may wait for its own window or for the connection's
//! window (RFC 9000 §4.1). When a stream's own window opens, quinn wakes that stream. When the connection's window
//! opens, quinn wakes all streams that wait for it. If a woken writer still cannot write, other streams were first and
//! used the connection's window. Their data is progress, so the writer has not stalled.
//!
//! Of the streams that wait for the connection's window, quinn wakes the last one first. One of three streams could
//! then never get any of the window. So each wake-up is also reported to `send_budget.rs`, which decides the order.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

use crate::quinn_shims::send_budget::QuicWakeNotifier;

/// Wakes the writer of one stream, and remembers that QUIC did so.
#[derive(Debug, Default)]
pub(crate) struct WakeDetector {
    woken: AtomicBool,
    writer: AtomicWaker,
    /// Notified of each wake-up, if the writer shares a send budget with other streams.
    notifier: Option<QuicWakeNotifier>,
}

impl WakeDetector {
    /// A detector that calls `notifier` on each wake-up.
    pub(crate) fn with_notifier(notifier: QuicWakeNotifier) -> Self {
        Self {
            notifier: Some(notifier),
            ..Self::default()
        }
    }

    /// Returns the waker to give to QUIC instead of that of `cx`, which it wakes in turn.
    pub(crate) fn waker(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        self.writer.register(cx.waker());
        Waker::from(self.clone())
    }

    /// True if QUIC woke the writer since the last call.
    pub(crate) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for WakeDetector {
    fn wake(self: Arc<Self>) {
        // Before the writer is woken, because the writer reads it.
        self.woken.store(true, Ordering::Release);
        if let Some(notifier) = &self.notifier {
            notifier.notify();
        }
        self.writer.wake();
    }
}
