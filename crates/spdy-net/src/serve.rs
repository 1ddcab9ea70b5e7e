//! One accepted connection, from its first byte to its end.
//!
//! ```text
//! accepted --TLS? handshake--> ALPN, else sniff --> http1::serve | http2::serve | spdy_session::serve --> ended
//!              handshake_timeout                          idle_timeout
//! first packet --QUIC's handshake--> http3::server::serve -------------------------------------> ended
//! ```

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::version::Version;
use tokio::io::AsyncWriteExt;

use crate::error::ConnectionError;
use crate::handler::Handler;
use crate::latch::Latch;
use crate::limit::ConnectionLimit;
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::quic::QuicIncoming;
use crate::refusal::Refusal;
use crate::serve_context::{FIRST_REQUEST_GRACE, ServeContext};
use crate::timing::progress_timeout::ProgressTimeout;
use crate::timing::read_timeout_body::ReadTimeoutBody;
use crate::timing::write_timeout_io::WriteTimeoutIo;
use crate::tls::ServerTls;
use crate::{http1, http2, http3, negotiate, spdy_session};

pub use crate::options::ServerOptions;

/// Serves `io` until it ends. `stop` lets open exchanges end and takes no new ones.
///
/// `protocols` are spoken, best first: with TLS its ALPN must say the same; without ALPN, and on plain
/// TCP, the first bytes tell.
///
/// # Errors
///
/// Why the connection ended out of order; nothing a peer sends makes this panic.
pub async fn serve_connection(
    io: BoxIo,
    handler: Arc<dyn Handler>,
    protocols: &[Protocol],
    tls: Option<&ServerTls>,
    options: &ServerOptions,
    runtime: &SharedRuntime,
    stop: &Latch,
) -> Result<(), ConnectionError> {
    let opened = Box::pin(open(
        io,
        protocols,
        tls,
        options.timeouts.handshake_timeout,
        runtime,
    ));
    let opened = match select(opened, shutdown_before_first_byte(options, stop, runtime)).await {
        Either::Left((opened, _)) => opened,
        Either::Right(_) => return Ok(()), // nothing was promised yet
    };
    let opened = opened.inspect_err(|error| {
        if matches!(error, ConnectionError::TimedOut { .. }) {
            options.hits.count(ConnectionLimit::HandshakeTimeout);
        }
    })?;
    let Some((io, protocol, guessed)) = opened else {
        return Ok(());
    };
    let secure = tls.is_some() || options.is_tls;
    tracing::debug!(%protocol, secure, "serving a connection");
    let io = Box::new(WriteTimeoutIo::new(
        io,
        ProgressTimeout::for_writes(runtime.clone(), options),
    ));
    let handler = Arc::new(ReadTimeoutHandler {
        handler,
        runtime: runtime.clone(),
        options: options.clone(),
    });
    let terms = ServeContext {
        secure,
        handler,
        options,
        runtime,
        stop,
    };
    match protocol {
        Protocol::Http1 => http1::serve(io, terms).await,
        Protocol::Http2 => http2::server::serve(io, terms).await,
        Protocol::Http3 => panic!("neither ALPN nor the first bytes on TCP can select HTTP/3"),
        Protocol::Spdy(version) => {
            // On the wire 3 and 3.1 are one number; if both are spoken here, the client may yet show
            // which it meant.
            let may_be_31 = guessed && protocols.contains(&Protocol::Spdy(Version::V31));
            spdy_session::serve(io, version, may_be_31, terms).await
        }
    }
}

/// Serves a QUIC connection, over which HTTP/3 is spoken, until it ends. `stop` lets open exchanges end and takes no
/// new ones.
///
/// # Errors
///
/// Why the connection ended out of order; nothing a peer sends makes this panic.
pub async fn serve_quic(
    incoming: QuicIncoming,
    handler: Arc<dyn Handler>,
    options: &ServerOptions,
    runtime: &SharedRuntime,
    stop: &Latch,
) -> Result<(), ConnectionError> {
    let patience = options.timeouts.handshake_timeout;
    let shaking = async {
        let deadline = runtime.sleep_until(runtime.now() + patience);
        match select(Box::pin(incoming.accept()), deadline).await {
            Either::Left((shaken, _)) => shaken,
            Either::Right(_) => {
                options.hits.count(ConnectionLimit::HandshakeTimeout);
                Err(ConnectionError::TimedOut {
                    what: "QUIC handshake",
                    after: patience,
                })
            }
        }
    };
    let unheard = shutdown_before_first_byte(options, stop, runtime);
    let connection = match select(Box::pin(shaking), unheard).await {
        Either::Left((shaken, _)) => shaken?,
        Either::Right(_) => return Ok(()), // nothing was promised yet
    };
    tracing::debug!(protocol = %Protocol::Http3, "serving a connection");
    let handler = Arc::new(ReadTimeoutHandler {
        handler,
        runtime: runtime.clone(),
        options: options.clone(),
    });
    let terms = ServeContext {
        secure: true,
        handler,
        options,
        runtime,
        stop,
    };
    http3::server::serve(connection, terms).await
}

/// A handler whose requests' bodies do not stand still for ever, whatever is spoken.
struct ReadTimeoutHandler {
    handler: Arc<dyn Handler>,
    runtime: SharedRuntime,
    options: ServerOptions,
}

impl Handler for ReadTimeoutHandler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        if http_body::Body::is_end_stream(request.body()) {
            return self.handler.answer(request);
        }
        let request = request.map(|body| {
            let stall = ProgressTimeout::for_reads(self.runtime.clone(), &self.options);
            Body::wrap(ReadTimeoutBody::new(body, stall))
        });
        self.handler.answer(request)
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        self.handler.refused(refusal);
    }
}

/// Completes when a connection of which nothing was heard is to end: the server has stopped for a while, or another shall have its place.
fn shutdown_before_first_byte(
    options: &ServerOptions,
    stop: &Latch,
    runtime: &SharedRuntime,
) -> impl Future<Output = ()> + Unpin {
    let (stopped, runtime) = (stop.wait(), runtime.clone());
    let late = async move {
        stopped.await;
        runtime
            .sleep_until(runtime.now() + FIRST_REQUEST_GRACE)
            .await;
    };
    select(Box::pin(late), options.slot.wanted()).map(drop)
}

/// TLS, if there is any, what is spoken, and whether that is a guess from the first bytes; `None` where a handshake was all that
/// was wanted.
async fn open(
    io: BoxIo,
    protocols: &[Protocol],
    tls: Option<&ServerTls>,
    patience: Duration,
    runtime: &SharedRuntime,
) -> Result<Option<(BoxIo, Protocol, bool)>, ConnectionError> {
    let Some(tls) = tls else {
        let (io, protocol) = negotiate::sniff(io, protocols, patience, runtime).await?;
        return Ok(Some((io, protocol, true)));
    };
    let handshake = Box::pin(async {
        let (mut io, agreed) = tls.accept(io).await?;
        if agreed.is_acme_challenge {
            io.shutdown().await?;
        }
        io::Result::Ok((io, agreed))
    });
    let deadline = runtime.sleep_until(runtime.now() + patience);
    let (io, agreed) = match select(handshake, deadline).await {
        Either::Left((shaken, _)) => shaken?,
        Either::Right(_) => {
            return Err(ConnectionError::TimedOut {
                what: "TLS handshake",
                after: patience,
            });
        }
    };
    match agreed.protocol {
        Some(protocol) => Ok(Some((io, protocol, false))),
        None if agreed.is_acme_challenge => Ok(None),
        None => {
            let (io, protocol) = negotiate::sniff(io, protocols, patience, runtime).await?;
            Ok(Some((io, protocol, true)))
        }
    }
}
