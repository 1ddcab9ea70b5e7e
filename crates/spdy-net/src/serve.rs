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
use spdy::Metrics;
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy::server::PushForm;
use spdy_frame::compress::Compression;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;
use tokio::io::AsyncWriteExt;

use crate::connection_slot::ConnectionSlot;
use crate::error::ConnectionError;
use crate::handler::Handler;
use crate::latch::Latch;
use crate::limit::{ConnectionLimit, LimitHits};
use crate::network::BoxIo;
use crate::protocol::Protocol;
use crate::quic::{QuicIncoming, QuicOptions};
use crate::refusal::Refusal;
use crate::timing::progress_timeout::{ProgressTimeout, ReadTimeoutBody, WriteTimeoutIo};
use crate::tls::ServerTls;
use crate::{http1, http2, http3, negotiate, spdy_session};

/// How long after the stop a connection that has sent nothing yet may stay. Its first request may be on its way, and a
/// client that is cut off then cannot know that the request was not seen.
pub(crate) const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Limits and choices of served connections.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// From accepting a connection to knowing what it speaks, TLS handshake included.
    pub handshake_timeout: Duration,
    /// How long a connection may have no exchange open. Over QUIC also how long a client may send no packet.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is there for it, be it by not reading from the
    /// connection or by keeping its window closed. Over HTTP/2 also how long an end in order may take once no
    /// exchange is open.
    pub write_timeout: Duration,
    /// How long a client may send nothing of a body that is waited for.
    pub read_timeout: Duration,
    /// From the first byte of an HTTP/1.1 request's head to its last; of HTTP/3's from the stream's.
    pub head_timeout: Duration,
    /// The least that a client must send of a body that is waited for, and take of what waits for it,
    /// bytes a second: over `read_timeout`, or `write_timeout`, of waiting. 0 for no such limit.
    pub min_rate: u32,
    /// How long a SPDY control frame may stay unfinished.
    pub frame_timeout: Duration,
    /// The largest request head taken, bytes. (HTTP/1.1: at least 8 KiB.)
    pub max_head_bytes: usize,
    /// Exchanges open at once on one connection (SPDY, HTTP/2, HTTP/3, there at most 4096).
    pub max_streams: u32,
    /// How SPDY's header blocks are compressed.
    pub compression: Compression,
    /// Which header values are kept apart from all others in them.
    pub secrets: Secrets,
    /// How far back their compression looks, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
    /// The largest DATA frame sent, bytes of body: 1 to 2^24 - 1 (SPDY; HTTP/2, where clients must allow what is over 16,384).
    pub data_frame_bytes: usize,
    /// `false`: neither obey nor enforce SPDY's windows (peers without flow control).
    pub flow_control: bool,
    /// A SPDY session that is silent for so long gets a PING, and ends when it stays silent; `None` never. Over QUIC a
    /// PING goes out so often, and who answers none is given up after `idle_timeout`.
    pub keepalive: Option<Duration>,
    /// Where SPDY sessions are counted.
    pub metrics: Option<Metrics>,
    /// What is chosen of QUIC, for HTTP/3. All connections of an endpoint share it.
    pub quic: QuicOptions,
    /// How SPDY's pushes are written.
    pub push_form: PushForm,
    /// Whether handlers find a [`Pusher`](crate::handler::Pusher) over HTTP/2. (Over SPDY there always is one.)
    pub http2_push: bool,
    /// How often clients met these limits is counted here.
    pub hits: LimitHits,
    /// This one connection's client came over TLS, which ended in front: as `Caller` has it. Default `false`.
    pub is_tls: bool,
    /// The place of this one connection, which it may have to give up for another when it has nothing to do.
    pub slot: ConnectionSlot,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            // nginx waits so long for another request on a session.
            idle_timeout: Duration::from_secs(180),
            write_timeout: Duration::from_secs(60),
            read_timeout: Duration::from_secs(60),
            head_timeout: Duration::from_secs(30),
            min_rate: 240,
            frame_timeout: Duration::from_secs(30),
            max_head_bytes: 64 * 1024,
            max_streams: 100,
            compression: Compression::CrimeSafe,
            secrets: Secrets::default(),
            compression_window_bits: None,
            data_frame_bytes: 16 * 1024,
            flow_control: true,
            keepalive: None,
            metrics: None,
            quic: QuicOptions::default(),
            push_form: PushForm::default(),
            http2_push: false,
            hits: LimitHits::default(),
            is_tls: false,
            slot: ConnectionSlot::default(),
        }
    }
}

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
    let opened = Box::pin(open(io, protocols, tls, options.handshake_timeout, runtime));
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
        Protocol::Http3 => panic!("neither ALPN nor the first bytes on TCP can tell HTTP/3"),
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
    let patience = options.handshake_timeout;
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

/// Completes when the connection is to end: the server stops, or another shall have its place.
pub(crate) fn over(
    options: &ServerOptions,
    stop: &Latch,
) -> impl Future<Output = ()> + Unpin + use<> {
    select(stop.wait(), options.slot.wanted()).map(drop)
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

/// On what terms a connection is served, whatever is spoken on it.
pub(crate) struct ServeContext<'a> {
    /// The client came over TLS.
    pub(crate) secure: bool,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) options: &'a ServerOptions,
    pub(crate) runtime: &'a SharedRuntime,
    pub(crate) stop: &'a Latch,
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
