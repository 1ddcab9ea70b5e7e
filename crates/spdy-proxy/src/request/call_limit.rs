//! Limits the gRPC calls of one client: how many are open, and how many it cancels.
//!
//! Calls to an origin share connections, and may last without end. Each call that a client cancels is reset at the origin, and an origin may
//! close a connection on which many are reset, which ends the calls of other clients.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Poll, ready};

use http::Response;
use http_body::Body as _;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_net::body_wrapper::wrap_poll;

use crate::sites::client_rate::ClientRateLimit;
use crate::sites::open_limit::{OpenLimit, OpenPermit};

/// Calls that one client may cancel in a second, saved up for five seconds. Above it, the client can begin no call until it has saved again.
const CANCELS_PER_SECOND: u32 = 10;

/// The calls of all clients. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct ClientCalls {
    open: OpenLimit,
    cancels: Arc<ClientRateLimit>,
}

/// A call that is open. It counts as cancelled if it is dropped before its end.
#[derive(Debug)]
pub(crate) struct OpenCall {
    _permit: OpenPermit,
    cancels: Option<(Arc<ClientRateLimit>, IpAddr, SharedRuntime)>,
}

impl Default for ClientCalls {
    fn default() -> Self {
        Self {
            open: OpenLimit::default(),
            cancels: Arc::new(ClientRateLimit::new(CANCELS_PER_SECOND)),
        }
    }
}

impl ClientCalls {
    /// Begins a call of the client at `from`, which may have `per_client` open; `None` if a limit is reached. No client has a limit if
    /// `per_client` is `None`.
    pub(crate) fn begin(
        &self,
        from: Option<IpAddr>,
        per_client: Option<usize>,
        runtime: &SharedRuntime,
    ) -> Option<OpenCall> {
        let client = from.filter(|_| per_client.is_some());
        if client.is_some_and(|client| !self.cancels.has_budget(client, runtime.now())) {
            return None;
        }
        let permit = self.open.acquire(from, per_client, usize::MAX).ok()?;
        Some(OpenCall {
            _permit: permit,
            cancels: client.map(|client| (self.cancels.clone(), client, runtime.clone())),
        })
    }
}

impl OpenCall {
    /// `response`; the call ends when the response ends.
    pub(crate) fn until_end_of(self, response: Response<Body>) -> Response<Body> {
        if response.body().is_end_stream() {
            self.end();
            return response;
        }
        response.map(|body| {
            let mut call = Some(self);
            wrap_poll(body, move |mut body, cx| {
                let frame = ready!(body.as_mut().poll_frame(cx));
                let is_last = match &frame {
                    Some(Ok(frame)) => frame.is_trailers() || body.is_end_stream(),
                    _ => true,
                };
                if is_last && let Some(call) = call.take() {
                    call.end();
                }
                Poll::Ready(frame)
            })
        })
    }

    /// Ends it: it was not cancelled.
    fn end(mut self) {
        self.cancels = None;
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some((cancels, client, runtime)) = self.cancels.take() {
            cancels.charge(client, runtime.now());
        }
    }
}
