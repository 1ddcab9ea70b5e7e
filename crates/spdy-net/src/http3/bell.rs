//! Whether it was QUIC that woke who writes on a stream: by that a stream that waits for its turn is told from one that stands still.
//!
//! quinn does not say why it takes nothing more. But it wakes every stream that waited for the connection's window when that opens
//! (RFC 9000 §4.1), and one that waited for its own only when there is room on it. So who is woken by it, and finds that nothing is
//! taken, came behind others: what they had is progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use futures_util::task::AtomicWaker;

/// A waker of one stream's writer that remembers that it was used.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rang: AtomicBool,
    writer: AtomicWaker,
}

impl Bell {
    /// A waker for QUIC, in place of that of `cx`.
    pub(super) fn waker(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        self.writer.register(cx.waker());
        Waker::from(self.clone())
    }

    /// Whether it was used since this was last asked.
    pub(super) fn rang(&self) -> bool {
        self.rang.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Release);
        self.writer.wake();
    }
}
