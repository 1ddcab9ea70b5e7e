//! Requests in early data (0-RTT), which arrive before the handshake is complete (RFC 8470).
//!
//! Not every server can reject a replay of early data. So only requests whose repetition changes nothing are sent and handled before the
//! handshake is complete. Our server accepts the early data of a ticket once.

use http::Method;

use crate::latch::Latch;

/// In the extensions of a request when a [`Handler`](crate::handler::Handler) gets it before the handshake is complete. The method is
/// [safe](may_be_early), and there is no content.
///
/// A handler that contacts another server for the request waits for [`handshake`](Self::handshake) first, unless that server is known
/// to understand `Early-Data` (RFC 8470 §6.1).
#[derive(Clone, Debug)]
pub struct EarlyData {
    complete: Latch,
}

impl EarlyData {
    /// A request on a connection whose handshake sets `complete`.
    #[must_use]
    pub fn new(complete: Latch) -> Self {
        Self { complete }
    }

    /// True until the handshake is complete.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        !self.complete.is_set()
    }

    /// Completes with the handshake. If the handshake fails, the connection drops the request instead.
    pub fn handshake(&self) -> impl Future<Output = ()> + Send + 'static {
        self.complete.wait()
    }
}

/// True if a request with `method` and without content may be sent and handled in early data: its repetition changes nothing.
#[must_use]
pub fn may_be_early(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}
