//! 103 Early Hints (RFC 8297): announces resources of a page before its response is ready.
//!
//! Only over HTTP/2 and HTTP/3. SPDY has no interim responses: its hints are in the head of the response. Over HTTP/1.1 hyper has
//! no call for it, and browsers ignore them.

use std::fmt;
use std::sync::Arc;

use http::{Extensions, HeaderMap, Response, StatusCode};
use tokio::sync::mpsc;

/// Sends early hints to a client. Use it before the [`Handler`](crate::handler::Handler) returns the response.
#[derive(Clone)]
pub struct EarlyHints(Arc<dyn InterimSender>);

/// Sends the 1xx heads of one request by one protocol.
pub trait InterimSender: Send + Sync {
    /// Sends `head`; `false` if the response was sent already, or the client left.
    fn send_interim(&self, head: Response<()>) -> bool;
}

impl InterimSender for mpsc::UnboundedSender<Response<()>> {
    fn send_interim(&self, head: Response<()>) -> bool {
        self.send(head).is_ok()
    }
}

impl fmt::Debug for EarlyHints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EarlyHints").finish_non_exhaustive()
    }
}

impl EarlyHints {
    /// The early hints of one request, which `sender` sends.
    pub fn new(sender: impl InterimSender + 'static) -> Self {
        Self(Arc::new(sender))
    }

    /// Early hints of one request that are queued, and the receiver of their heads.
    pub fn queue() -> (Self, mpsc::UnboundedReceiver<Response<()>>) {
        let (sender, heads) = mpsc::unbounded_channel();
        (Self::new(sender), heads)
    }

    /// The sender that came with a request; `None` if it has none.
    #[must_use]
    pub fn of(request: &Extensions) -> Option<Self> {
        request.get().cloned()
    }

    /// Sends `fields` (`Link`, as a rule) with status 103; whether that was still possible.
    pub fn send(&self, fields: HeaderMap) -> bool {
        self.send_interim(StatusCode::EARLY_HINTS, fields)
    }

    /// Lets the client send the body that it holds back (RFC 9110 §15.2.1).
    pub(crate) fn send_continue(&self) {
        self.send_interim(StatusCode::CONTINUE, HeaderMap::new()); // a client that has the response already does not wait for it
    }

    fn send_interim(&self, status: StatusCode, fields: HeaderMap) -> bool {
        let mut head = Response::new(());
        (*head.status_mut(), *head.headers_mut()) = (status, fields);
        self.0.send_interim(head)
    }
}
