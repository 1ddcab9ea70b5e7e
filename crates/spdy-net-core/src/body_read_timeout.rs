//! Lets a handler decide how long the client of one request may send nothing of its body.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The read timeout of one request's body, in the request's extensions when a [`Handler`](crate::handler::Handler) gets it. Requests
/// without a body have none. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct BodyReadTimeout {
    is_lifted: Arc<AtomicBool>,
}

impl BodyReadTimeout {
    /// Disables [`read_timeout`](crate::options::ServerTimeouts::read_timeout) and the minimum rate for this body: for a stream in which
    /// the client may have nothing to send for a long time. The handler must limit the stream itself.
    pub fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_lifted(&self) -> bool {
        self.is_lifted.load(Ordering::Relaxed)
    }
}
