//! 103 Early Hints (RFC 8297): what a page will need, told before its answer is there.
//!
//! Over HTTP/2 and HTTP/3 alone. SPDY has no interim answers, its hints stand in the head of the answer; over HTTP/1.1 hyper has
//! no call for it, and browsers do not look for them there.

use http::{Extensions, HeaderMap, Response, StatusCode};
use tokio::sync::mpsc;

use crate::http2::push::ResponseSender;

/// Tells a client what it will need. To be used before the [`Handler`](crate::handler::Handler) gives the answer.
#[derive(Clone)]
pub struct EarlyHints(HintSender);

#[derive(Clone)]
enum HintSender {
    Http2(ResponseSender),
    Http3(mpsc::UnboundedSender<Response<()>>),
}

impl std::fmt::Debug for EarlyHints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let over = match self.0 {
            HintSender::Http2(_) => "Http2",
            HintSender::Http3(_) => "Http3",
        };
        f.debug_tuple("EarlyHints").field(&over).finish()
    }
}

impl EarlyHints {
    pub(crate) fn over_http2(respond: ResponseSender) -> Self {
        Self(HintSender::Http2(respond))
    }

    /// Those of one request over HTTP/3, and where their heads are to be taken from.
    pub(crate) fn over_http3() -> (Self, mpsc::UnboundedReceiver<Response<()>>) {
        let (sender, heads) = mpsc::unbounded_channel();
        (Self(HintSender::Http3(sender)), heads)
    }

    /// The way that came with a request; `None` where there is none.
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
        self.send_interim(StatusCode::CONTINUE, HeaderMap::new()); // a client that has the answer already does not wait for it
    }

    fn send_interim(&self, status: StatusCode, fields: HeaderMap) -> bool {
        let mut head = Response::new(());
        (*head.status_mut(), *head.headers_mut()) = (status, fields);
        match &self.0 {
            HintSender::Http2(respond) => respond.send_interim(head),
            HintSender::Http3(heads) => heads.send(head).is_ok(),
        }
    }
}
