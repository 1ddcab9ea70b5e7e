//! What a server says of a request before it answers it (RFC 9110 §15.2): early hints, as a rule.
//!
//! Over HTTP/2 and HTTP/3. SPDY has no interim answers, and those of HTTP/1.1, where browsers do not look for hints, only a
//! [tap](crate::tap) sees.

use http::response;
use tokio::sync::mpsc;

/// Heads that wait for whoever listens; what comes while so many do is lost on them. A server may send any number.
pub const MAX_QUEUED_HEADS: usize = 16;

/// In the extensions of a request: whoever sent it hears the heads of 1xx that come before its answer.
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
    pub(crate) fn send(&self, head: response::Parts) {
        let _ = self.0.try_send(head); // nobody listens, or not fast enough
    }
}
