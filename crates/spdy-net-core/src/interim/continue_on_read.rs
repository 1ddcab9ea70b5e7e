//! `Expect: 100-continue` (RFC 9110 §10.1.1): sends 100 (Continue) to a client that holds its body back when the handler first reads
//! the body. A handler that responds without reading it sends no 100.
//!
//! Over HTTP/2 and HTTP/3. Over HTTP/1.1 hyper does the same; SPDY has no interim responses, and its clients wait for none.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};

use crate::interim::early_hints::EarlyHints;
use crate::interim::expect_continue::expects_continue;

/// `body` of a request with these headers. If its client holds it back, the first read sends 100 (Continue) by `interim`.
pub fn send_continue_on_read(body: Body, headers: &HeaderMap, interim: &EarlyHints) -> Body {
    if !expects_continue(headers) || http_body::Body::is_end_stream(&body) {
        return body;
    }
    Body::wrap(ContinueOnReadBody {
        body,
        pending_continue: Some(interim.clone()),
    })
}

struct ContinueOnReadBody {
    body: Body,
    /// `None` once 100 (Continue) was sent, or the client sent the body without it.
    pending_continue: Option<EarlyHints>,
}

impl http_body::Body for ContinueOnReadBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Some(interim) = self.pending_continue.take()
            && polled.is_pending()
        {
            interim.send_continue();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
