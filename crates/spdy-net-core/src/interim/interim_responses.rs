//! Interim answers of a server, before the answer to a request (RFC 9110 §15.2): usually early hints.
//!
//! Over HTTP/2 and HTTP/3. SPDY has no interim answers. Those of HTTP/1.1, where browsers ignore hints, only a
//! [tap](crate::tap) sees.

use http::response;
use tokio::sync::mpsc;

/// 1xx heads that wait for their receiver; further ones are lost while the queue is full. A server may send any number.
pub const MAX_QUEUED_HEADS: usize = 16;

/// In the extensions of a request: passes the 1xx heads that come before its answer to its sender.
#[derive(Clone, Debug)]
pub struct InterimResponses(mpsc::Sender<response::Parts>);

impl InterimResponses {
    /// For one request, and where they are to be taken from, in the order in which they come.
    #[must_use]
    pub fn channel() -> (Self, mpsc::Receiver<response::Parts>) {
        let (sender, heads) = mpsc::channel(MAX_QUEUED_HEADS);
        (Self(sender), heads)
    }

    /// `head` came.
    pub fn send(&self, head: response::Parts) {
        let _ = self.0.try_send(head); // the receiver is gone, or too slow
    }
}
