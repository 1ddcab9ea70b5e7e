//! SPDY on both sides, by the crate `spdy`, with the same interface as `http1/` and `http2/`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::TryFutureExt;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::client::Push;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy::server::Pusher;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_net_core::error::{ConnectionError, ExchangeError, Retry};
use spdy_net_core::handler::RequestInfo;
use spdy_net_core::head::connection_headers::drop_connection_headers;
use spdy_net_core::header_bytes::HeaderBytes;
use spdy_net_core::network::BoxIo;
use spdy_net_core::options::ClientOptions;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::refusal::{Flaw, Refusal};
use spdy_net_core::serve_context::{ServeContext, end_requested};
use spdy_net_core::tap::ConnectionTap;
use spdy_session::limit::Limit;

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
            .compression(options.spdy.compression)
            .secrets(options.spdy.secrets.clone())
            .flow_control(options.spdy.flow_control)
            .initial_window_bytes(options.stream_window_bytes);
        if let Some(metrics) = &options.spdy.metrics {
            builder = builder.metrics(metrics);
        }
        let config = builder.config_mut();
        config.session_window_bytes = options.session_window_bytes;
        config.compression_window_bits = options.spdy.compression_window_bits;
        config.keepalive_interval = options.keepalive;
        config.frame_timeout = Some(options.spdy.frame_timeout);
        config.write_timeout = options.write_timeout;
        limit_heads(config, options.max_head_bytes);
        config.block_limits.lowercase_names = options.spdy.lowercase_names;
        if !options.spdy.window_update_per_stream {
            config.settings_window_bytes = None;
        }
        if let Some(limits) = options.spdy.pushes {
            builder = builder.claim_pushes(limits);
        }
        if let Some(tap) = tap {
            builder = builder.observer(Arc::new(tap));
        }
        let (session, connection) = builder.handshake(io, runtime.clone());
        connection.spawn();
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
        Box::pin(async move {
            let (head, body) = response
                .await
                .map_err(|error| exchange_error(&error))?
                .into_parts();
            let body = match head.headers.contains_key(http::header::CONTENT_LENGTH) {
                true => Body::wrap(LengthCheckedBody {
                    body,
                    is_end_reported: false,
                }),
                false => body,
            };
            Ok(Response::from_parts(head, body))
        })
    }

    pub(crate) fn take_pushes(&self) -> Vec<Push> {
        self.session.take_pushes()
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

/// A response body that fails at its end when its length differs from the declared one, as in HTTP/1.1 and HTTP/2. All received
/// bytes are delivered before that.
struct LengthCheckedBody {
    body: Body,
    /// The end was reported, as complete or as an error.
    is_end_reported: bool,
}

impl http_body::Body for LengthCheckedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.is_end_reported {
            return Poll::Ready(None);
        }
        let polled = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(_)) = polled {
            return Poll::Ready(polled);
        }
        self.is_end_reported = true;
        Poll::Ready(match (polled, self.body.length_mismatch()) {
            (None, Some(mismatch)) => Some(Err(Box::new(mismatch))),
            (ended, _) => ended,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.is_end_reported || (self.body.is_end_stream() && self.body.length_mismatch().is_none())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Converts the error of a failed exchange (SPDY/3.1 §2.6.6).
fn exchange_error(error: &spdy::Error) -> ExchangeError {
    let retry = match (error.is_retry_safe(), error.is_retry_safe_if_idempotent()) {
        (true, _) => Retry::Always,
        (false, true) => Retry::IfIdempotent,
        (false, false) => Retry::Never,
    };
    let refused = matches!(error, spdy::Error::ResetByPeer { status, .. } if *status == RstStatus::REFUSED_STREAM);
    ExchangeError {
        write_timed_out: is_write_timeout(error),
        ..ExchangeError::new(retry, format!("spdy: {error}")).refused(refused)
    }
}

/// True if the server accepted no bytes of the stream, or of the session, in time.
fn is_write_timeout(error: &spdy::Error) -> bool {
    match error {
        spdy::Error::Stalled { .. } => true,
        spdy::Error::SessionLost(error) => error.limit() == Some(Limit::WriteTimeout),
        spdy::Error::Io(error) => error.kind() == io::ErrorKind::TimedOut,
        _ => false,
    }
}

/// Serves `io` until its session ends. After the stop, or when it has been idle for too long, GOAWAY ends it. `may_be_31`: the
/// client may speak 3.1 although 3 was assumed.
///
/// Not an `async fn`: it would contain the builder and its parts for as long as the session lasts.
pub(crate) fn serve(
    io: BoxIo,
    version: Version,
    may_be_31: bool,
    terms: ServeContext<'_>,
) -> impl Future<Output = Result<(), ConnectionError>> + use<> {
    let ServeContext {
        secure,
        handler,
        options,
        runtime,
        stop,
    } = terms;
    let mut builder = spdy::server::Builder::new(version)
        .compression(options.spdy.compression)
        .secrets(options.spdy.secrets.clone())
        .flow_control(options.spdy.flow_control)
        .max_concurrent_streams(options.max_streams)
        .push_form(options.spdy.push_form)
        .send_trailers(options.spdy.send_trailers);
    if let Some(metrics) = &options.spdy.metrics {
        builder = builder.metrics(metrics);
    }
    let config = builder.config_mut();
    config.compression_window_bits = options.spdy.compression_window_bits;
    config.keepalive_interval = options.keepalive;
    config.detect_session_window = may_be_31;
    config.data_frame_bytes = options.data_frame_bytes;
    config.send_buffer_bytes = config.send_buffer_bytes.max(options.data_frame_bytes);
    config.idle_timeout = Some(options.timeouts.idle_timeout);
    config.write_timeout = Some(options.timeouts.write_timeout);
    config.frame_timeout = Some(options.spdy.frame_timeout);
    limit_heads(config, options.max_head_bytes);
    let bad_request_handler = handler.clone();
    builder = builder.on_bad_request(move |error| {
        if let Some(flaw) = Flaw::of_spdy(error) {
            bad_request_handler.refused(&Refusal::unread(Protocol::Spdy(version), flaw));
        }
    });
    let seat = options.slot.clone();
    let service = move |mut request: Request<Body>| {
        let priority = request
            .extensions()
            .get::<Pusher>()
            .map(Pusher::priority)
            .unwrap_or_default();
        let protocol = Protocol::Spdy(version);
        request.extensions_mut().insert(RequestInfo {
            protocol,
            secure,
            priority,
        });
        let (exchange, answer) = (seat.exchange(), handler.answer(request));
        async move { exchange.with(answer.await) }
    };
    builder
        .serve_until(io, runtime.clone(), service, end_requested(options, stop))
        .map_err(ConnectionError::Spdy)
}

/// Sets the limits so that a single value may fill a whole header block.
fn limit_heads(config: &mut spdy::Config, max_head_bytes: usize) {
    let limits = &mut config.block_limits;
    limits.plain_bytes = max_head_bytes;
    limits.value_bytes = max_head_bytes;
    limits.inflated_bytes = limits.inflated_bytes.max(max_head_bytes);
}
