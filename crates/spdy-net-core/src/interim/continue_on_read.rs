//! `Expect: 100-continue` (RFC 9110 §10.1.1): sends 100 (Continue) to a client that holds its body back when the handler first reads
//! the body. A handler that responds without reading it sends no 100.
//!
//! Over HTTP/2 and HTTP/3. Over HTTP/1.1 hyper does the same; SPDY has no interim responses, and its clients wait for none.

use http::HeaderMap;
use http_body::Body as _;
use spdy::body::Body;

use crate::body_wrapper::wrap_poll;
use crate::interim::early_hints::EarlyHints;
use crate::interim::expect_continue::expects_continue;

/// `body` of a request with these headers. If its client holds it back, the first read sends 100 (Continue) by `interim`.
pub fn send_continue_on_read(body: Body, headers: &HeaderMap, interim: &EarlyHints) -> Body {
    if !expects_continue(headers) || body.is_end_stream() {
        return body;
    }
    // `None` once 100 (Continue) was sent, or the client sent the body without it.
    let mut pending_continue = Some(interim.clone());
    wrap_poll(body, move |body, cx| {
        let polled = body.poll_frame(cx);
        if let Some(interim) = pending_continue.take()
            && polled.is_pending()
        {
            interim.send_continue();
        }
        polled
    })
}
