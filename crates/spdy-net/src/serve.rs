//! Serves one accepted connection, from its first byte to its end.
//!
//! ```text
//! accepted --TLS? handshake--> ALPN, else sniff --> http1::serve | http2::serve | spdy_session::serve --> ended
//!              handshake_timeout                          idle_timeout
//! first packet: serve.rs of spdy-h3 ------------------------------------------------------------> ended
//! ```

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use spdy::runtime::SharedRuntime;
use spdy_frame::version::Version;
use spdy_net_core::client_certificate::{ClientCertificate, with_client_certificate};
use spdy_net_core::error::ConnectionError;
use spdy_net_core::handler::Handler;
use spdy_net_core::latch::Latch;
use spdy_net_core::limit::ConnectionLimit;
use spdy_net_core::network::BoxIo;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::serve_context::{ServeContext, shutdown_before_first_byte};
use spdy_net_core::timing::progress_timeout::ProgressTimeout;
use spdy_net_core::timing::write_timeout_io::WriteTimeoutIo;
use spdy_net_core::tls::ServerTls;
use tokio::io::AsyncWriteExt;

use crate::{http1, http2, negotiate, spdy_session};

pub use spdy_h3::serve::serve_quic;
pub use spdy_net_core::options::ServerOptions;

type ServedConnection<'a> = Pin<Box<dyn Future<Output = Result<(), ConnectionError>> + Send + 'a>>;

/// Serves `io` until it ends. `stop` lets open exchanges end and accepts no new ones.
///
/// Accepts `protocols`, in order of preference. With TLS, its ALPN must offer the same protocols. Without ALPN, and on plain TCP,
/// the first bytes decide.
///
/// # Errors
///
/// Why the connection ended, unless it ended in order. Input of a peer never causes a panic.
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
        Either::Right(_) => return Ok(()), // no request was accepted yet
    };
    let opened = opened.inspect_err(|error| {
        if matches!(error, ConnectionError::TimedOut { .. }) {
            options.hits.count(ConnectionLimit::HandshakeTimeout);
        }
    })?;
    let Some(opened) = opened else {
        return Ok(());
    };
    let OpenedConnection {
        io,
        protocol,
        is_guess: guessed,
        certificate,
    } = opened;
    let handler = with_client_certificate(handler, certificate);
    let secure = tls.is_some() || options.is_tls;
    tracing::debug!(%protocol, secure, "serving a connection");
    let io = Box::new(WriteTimeoutIo::new(
        io,
        ProgressTimeout::for_writes(runtime.clone(), options),
    ));
    let terms = ServeContext::new(secure, handler, options, runtime, stop);
    // SPDY/3 and 3.1 have the same number on the wire; if both are enabled here, the client's version is detected later.
    let may_be_31 = guessed && protocols.contains(&Protocol::Spdy(Version::V31));
    serve_protocol(io, protocol, may_be_31, terms).await
}

/// Serves `io` with `protocol`.
///
/// The code of a future, including that of hyper and h2, is compiled in the crate that boxes it. So it is boxed here, not in a caller that
/// is optimised for size.
#[inline(never)]
fn serve_protocol(
    io: BoxIo,
    protocol: Protocol,
    may_be_31: bool,
    terms: ServeContext<'_>,
) -> ServedConnection<'_> {
    match protocol {
        Protocol::Http1 => Box::pin(http1::serve(io, terms)),
        Protocol::Http2 => Box::pin(http2::server::serve(io, terms)),
        Protocol::Http3 => panic!("neither ALPN nor the first bytes on TCP can select HTTP/3"),
        Protocol::Spdy(version) => Box::pin(spdy_session::serve(io, version, may_be_31, terms)),
    }
}

/// A connection whose protocol is known.
struct OpenedConnection {
    io: BoxIo,
    protocol: Protocol,
    /// The protocol is a guess from the first bytes.
    is_guess: bool,
    /// The client's certificate, if TLS requested one.
    certificate: Option<ClientCertificate>,
}

/// Accepts TLS, if it is used. `None` if the client requested only a handshake.
async fn open(
    io: BoxIo,
    protocols: &[Protocol],
    tls: Option<&ServerTls>,
    patience: Duration,
    runtime: &SharedRuntime,
) -> Result<Option<OpenedConnection>, ConnectionError> {
    let Some(tls) = tls else {
        let (io, protocol) = negotiate::sniff(io, protocols, patience, runtime).await?;
        return Ok(Some(OpenedConnection {
            io,
            protocol,
            is_guess: true,
            certificate: None,
        }));
    };
    let handshake = Box::pin(async {
        let (mut io, agreed, certificate) = tls.accept_client(io).await?;
        if agreed.is_acme_challenge {
            io.shutdown().await?;
        }
        io::Result::Ok((io, agreed, certificate))
    });
    let deadline = runtime.sleep_until(runtime.now() + patience);
    let (io, agreed, certificate) = match select(handshake, deadline).await {
        Either::Left((shaken, _)) => shaken?,
        Either::Right(_) => {
            return Err(ConnectionError::TimedOut {
                what: "TLS handshake",
                after: patience,
            });
        }
    };
    let (io, protocol, is_guess) = match agreed.protocol {
        Some(protocol) => (io, protocol, false),
        None if agreed.is_acme_challenge => return Ok(None),
        None => {
            let (io, protocol) = negotiate::sniff(io, protocols, patience, runtime).await?;
            (io, protocol, true)
        }
    };
    Ok(Some(OpenedConnection {
        io,
        protocol,
        is_guess,
        certificate,
    }))
}
