//! SPDY on both sides, by the crate `spdy`: the same doors as `http1.rs` and `http2.rs`.

use std::sync::Arc;

use futures_util::future::{Either, select};
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;

use crate::byte_count::HeaderBytes;
use crate::connection::{ClientOptions, drop_connection_headers};
use crate::error::{ConnectionError, ExchangeError, Retry};
use crate::handler::{Arrival, Handler};
use crate::idle::Idle;
use crate::latch::Latch;
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::serve::ServerOptions;
use crate::tap::ConnectionTap;

/// A client's SPDY session.
#[derive(Clone, Debug)]
pub(crate) struct SpdyClient {
    session: spdy::client::Session,
}

impl SpdyClient {
    pub(crate) fn start(
        io: BoxIo,
        version: Version,
        options: &ClientOptions,
        tap: Option<ConnectionTap>,
        runtime: &SharedRuntime,
    ) -> Self {
        let mut builder = spdy::client::Builder::new(version)
            .compression(options.compression)
            .flow_control(options.flow_control)
            .initial_window_bytes(options.stream_window_bytes)
            .session_window_bytes(options.session_window_bytes);
        if let Some(tap) = tap {
            builder = builder.observer(Arc::new(tap));
        }
        let (session, connection) = builder.handshake(io, runtime.clone());
        runtime.spawn(Box::pin(async move {
            if let Err(error) = connection.run().await {
                tracing::debug!(%error, "spdy session ended");
            }
        }));
        Self { session }
    }

    pub(crate) fn send(
        &self,
        request: Request<Body>,
        priority: Priority,
    ) -> BoxFuture<Result<Response<Body>, ExchangeError>> {
        let (mut head, body) = request.into_parts();
        drop_connection_headers(&mut head.headers);
        let response = self
            .session
            .request(Request::from_parts(head, body), priority);
        Box::pin(async move { response.await.map_err(|error| lost(&error)) })
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.session.is_closing()
    }

    pub(crate) fn close(&self) {
        self.session.shutdown();
    }

    pub(crate) fn closed(&self) -> BoxFuture<()> {
        let session = self.session.clone();
        Box::pin(async move { session.closed().await })
    }

    pub(crate) fn header_bytes(&self) -> HeaderBytes {
        let stats = self.session.stats();
        HeaderBytes {
            sent: stats.sent_block_wire_bytes,
            received: stats.received_block_wire_bytes,
        }
    }
}

/// What a failed exchange means for its request (SPDY/3.1 §2.6.6).
fn lost(error: &spdy::Error) -> ExchangeError {
    let retry = match (error.is_retry_safe(), error.is_retry_safe_if_idempotent()) {
        (true, _) => Retry::Always,
        (false, true) => Retry::IfIdempotent,
        (false, false) => Retry::Never,
    };
    ExchangeError::new(retry, format!("spdy: {error}"))
}

/// Serves `io` until its session ends; after `stop`, or when nobody asks any more, it is ended by GOAWAY.
pub(crate) async fn serve(
    io: BoxIo,
    version: Version,
    secure: bool,
    handler: Arc<dyn Handler>,
    options: &ServerOptions,
    runtime: &SharedRuntime,
    stop: &Latch,
) -> Result<(), ConnectionError> {
    let builder = spdy::server::Builder::new(version)
        .compression(options.compression)
        .flow_control(options.flow_control)
        .max_concurrent_streams(options.max_streams);
    let idle = Idle::start(runtime.clone(), options.idle_timeout);
    let arrival = |priority| Arrival {
        protocol: Protocol::Spdy(version),
        secure,
        priority,
    };
    let busy = idle.clone();
    let service = move |mut request: Request<Body>| {
        let priority = request
            .extensions()
            .get::<Priority>()
            .copied()
            .unwrap_or_default();
        request.extensions_mut().insert(arrival(priority));
        let guard = busy.exchange();
        let answer = handler.answer(request);
        async move { guard.until_its_body_ends(answer.await) }
    };
    let until = async move {
        match select(std::pin::pin!(stop.wait()), std::pin::pin!(idle.expired())).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    };
    spdy::server::serve_until(io, builder, runtime.clone(), service, until)
        .await
        .map_err(|error| ConnectionError::Spdy(error.to_string()))
}
