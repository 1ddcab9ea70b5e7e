//! Detects whether QUIC woke the writer of a stream: this tells a stream that waits for its turn from one that stalls.
//!
//! quinn does not report why it takes nothing more. But it wakes every stream that waited for the connection's window
//! when that opens (RFC 9000 §4.1), and a stream that waited for its own window only when that has room. So a writer
//! that QUIC woke and that still cannot write came after other streams: their data is progress.
//!
//! quinn wakes the last of them first, so that one of three streams could get nothing for ever. Each wake-up is
//! therefore reported to `send_budget.rs`, which has an order of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

use crate::http3::quinn_shims::send_budget::QuicWakeNotifier;

/// A waker of one stream's writer that remembers that it was used.
#[derive(Debug, Default)]
pub(crate) struct WakeDetector {
    woken: AtomicBool,
    writer: AtomicWaker,
    /// Notified of the wake-up, if the writer has a place among others.
    notifier: Option<QuicWakeNotifier>,
}

impl WakeDetector {
    /// A detector that notifies `caller` of each wake-up.
    pub(crate) fn with_notifier(caller: QuicWakeNotifier) -> Self {
        Self {
            notifier: Some(caller),
            ..Self::default()
        }
    }

    /// A waker for QUIC, in place of that of `cx`.
    pub(crate) fn waker(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        self.writer.register(cx.waker());
        Waker::from(self.clone())
    }

    /// Whether QUIC woke the writer since the last call.
    pub(crate) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for WakeDetector {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        if let Some(caller) = &self.notifier {
            caller.notify();
        }
        self.writer.wake();
    }
}
