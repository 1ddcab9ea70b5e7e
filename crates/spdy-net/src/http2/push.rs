//! Pushes of a server over HTTP/2 (RFC 9113 §8.4). Current clients accept none; for others the push plan is the same as over SPDY.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{Request, Response};
use http_body::Body as _;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net_core::handler::{PushError, PushSender, Pusher};
use spdy_net_core::head::connection_headers::drop_connection_headers;
use spdy_net_core::interim::early_hints::InterimSender;
use spdy_net_core::options::ServerOptions;
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::timing::progress_timeout::{ProgressTimeout, StreamProgressTimeout};

use crate::http2::body::send_body;
use crate::shims::h2::write_scheduler::WriteScheduler;

/// Sends the response of one exchange, and its interim responses and pushes before it.
#[derive(Clone)]
pub(crate) struct ResponseSender {
    to: Arc<Mutex<SendResponse<Bytes>>>,
    /// True if its head was sent; set while `to` is locked. Without it h2 would send a 1xx head after it.
    is_answered: Arc<AtomicBool>,
}

impl ResponseSender {
    pub(crate) fn new(respond: SendResponse<Bytes>) -> Self {
        Self {
            to: Arc::new(Mutex::new(respond)),
            is_answered: Arc::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SendResponse<Bytes>> {
        self.to.lock()
    }

    /// Sends the head of the response; `is_all` if no body follows.
    pub(crate) fn answer(
        &self,
        head: Response<()>,
        is_all: bool,
    ) -> Result<SendStream<Bytes>, h2::Error> {
        let mut to = self.lock();
        self.is_answered.store(true, Ordering::Relaxed);
        to.send_response(head, is_all)
    }
}

impl InterimSender for ResponseSender {
    fn send_interim(&self, head: Response<()>) -> bool {
        let mut to = self.lock();
        !self.is_answered.load(Ordering::Relaxed) && to.send_informational(head).is_ok()
    }
}

/// Creates pushers for the requests of one connection.
pub(crate) struct PusherFactory(Arc<PushTimeouts>);

/// The timeouts for a client that accepts no bytes of a push.
struct PushTimeouts {
    runtime: SharedRuntime,
    options: ServerOptions,
}

impl PusherFactory {
    pub(crate) fn new(runtime: SharedRuntime, options: ServerOptions) -> Self {
        Self(Arc::new(PushTimeouts { runtime, options }))
    }

    /// Adds a pusher to the extensions of `request`.
    pub(crate) fn offer<B>(
        &self,
        request: &mut Request<B>,
        respond: &ResponseSender,
        turns: &WriteScheduler,
    ) {
        let pusher = Http2Pusher {
            respond: respond.clone(),
            scheduler: turns.clone(),
            timeouts: self.0.clone(),
            uri: request.uri().clone(),
        };
        request.extensions_mut().insert(Pusher::new(pusher));
    }
}

/// Pushes along with the response to one request.
struct Http2Pusher {
    respond: ResponseSender,
    scheduler: WriteScheduler,
    timeouts: Arc<PushTimeouts>,
    uri: http::Uri,
}

impl std::fmt::Debug for Http2Pusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Pusher")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

impl PushSender for Http2Pusher {
    fn push(
        &self,
        request: &Request<()>,
        priority: Priority,
        response: Response<Body>,
    ) -> Result<BoxFuture<bool>, PushError> {
        if !spdy_http::push::is_same_origin(&self.uri, request.uri()) {
            return Err(PushError("the URL has a different origin".to_owned()));
        }
        let refused = |error: h2::Error| PushError(error.to_string());
        let mut promise = Request::new(());
        *promise.uri_mut() = request.uri().clone();
        *promise.headers_mut() = request.headers().clone();
        *promise.version_mut() = http::Version::HTTP_2;
        let mut pushed = self.respond.lock().push_request(promise).map_err(refused)?;
        let (mut head, body) = response.into_parts();
        drop_connection_headers(&mut head.headers);
        head.version = http::Version::HTTP_2;
        let empty = body.is_end_stream();
        let sent = pushed.send_response(Response::from_parts(head, ()), empty);
        let stream = match sent {
            Ok(stream) => stream,
            Err(error) => {
                pushed.send_reset(Reason::INTERNAL_ERROR);
                return Err(refused(error));
            }
        };
        let precedence = HttpPriority {
            urgency: priority.level(),
            ..HttpPriority::default()
        };
        let turn = self.scheduler.open(stream.stream_id().as_u32(), precedence);
        let PushTimeouts { runtime, options } = &*self.timeouts;
        let stall =
            StreamProgressTimeout::new(|| ProgressTimeout::for_writes(runtime.clone(), options));
        let frame = options.data_frame_bytes.max(1);
        Ok(Box::pin(async move {
            empty
                || send_body(
                    stream,
                    body,
                    frame,
                    turn,
                    Some(stall),
                    Reason::INTERNAL_ERROR,
                )
                .await
                .is_ok()
        }))
    }
}
