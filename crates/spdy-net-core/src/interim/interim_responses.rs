//! Interim responses of a server, before the final response to a request (RFC 9110 §15.2): usually early hints.
//!
//! Over HTTP/1.1, HTTP/2 and HTTP/3. SPDY has no interim responses.

use http::response;
use tokio::sync::mpsc;

/// Limit of 1xx heads that wait for their receiver; more are lost. A server may send any number.
pub const MAX_QUEUED_HEADS: usize = 16;

/// In the extensions of a request: passes the 1xx heads before its response to its sender.
#[derive(Clone, Debug)]
pub struct InterimResponses(mpsc::Sender<response::Parts>);

impl InterimResponses {
    /// Creates it for one request, with the receiver of the heads in their order.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<response::Parts>) {
        let (sender, heads) = mpsc::channel(MAX_QUEUED_HEADS);
        (Self(sender), heads)
    }

    /// Passes on a received `head`.
    pub fn send(&self, head: response::Parts) {
        let _ = self.0.try_send(head); // the receiver is dropped, or too slow
    }
}
