//! Whether it was QUIC that woke who writes on a stream: by that a stream that waits for its turn is told from one that stands still.
//!
//! quinn does not say why it takes nothing more. But it wakes every stream that waited for the connection's window when that opens
//! (RFC 9000 §4.1), and one that waited for its own only when there is room on it. So who is woken by it, and finds that nothing is
//! taken, came behind others: what they had is progress.
//!
//! It wakes the last of them first, which of three would leave one with nothing for ever. So whoever is woken is told of to `room.rs`,
//! where the order of those is another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

use super::room::QuicWakeNotifier;

/// A waker of one stream's writer that remembers that it was used.
#[derive(Debug, Default)]
pub(super) struct WakeDetector {
    woken: AtomicBool,
    writer: AtomicWaker,
    /// Whom to tell of it, if the writer has a place among others.
    notifier: Option<QuicWakeNotifier>,
}

impl WakeDetector {
    /// One that tells of its use.
    pub(super) fn with_notifier(caller: QuicWakeNotifier) -> Self {
        Self {
            notifier: Some(caller),
            ..Self::default()
        }
    }

    /// A waker for QUIC, in place of that of `cx`.
    pub(super) fn waker(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        self.writer.register(cx.waker());
        Waker::from(self.clone())
    }

    /// Whether it was used since this was last asked.
    pub(super) fn take_woken(&self) -> bool {
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
