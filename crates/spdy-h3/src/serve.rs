//! Serves one accepted QUIC connection, from its first packet to its end.
//!
//! ```text
//!  first packet --QUIC's handshake--> server.rs --> ended
//!       |    |    handshake_timeout     idle_timeout
//!       |    `--> a request in early data (0-RTT): server.rs begins before the handshake is complete
//!       `--> our SETTINGS: the client's first requests may then use the dynamic table
//! ```

use std::sync::Arc;

use futures_util::future::{Either, select};
use rustls::pki_types::CertificateDer;
use spdy::runtime::SharedRuntime;
use spdy_net_core::client_certificate::{ClientCertificate, with_client_certificate};
use spdy_net_core::error::ConnectionError;
use spdy_net_core::handler::Handler;
use spdy_net_core::latch::Latch;
use spdy_net_core::limit::ConnectionLimit;
use spdy_net_core::options::ServerOptions;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::serve_context::{ServeContext, shutdown_before_first_byte};

use crate::code::Code;
use crate::control::OwnControlStream;
use crate::quic::QuicIncoming;
use crate::server;

/// Serves HTTP/3 on a QUIC connection until it ends. `stop` lets open exchanges end and accepts no new ones.
///
/// # Errors
///
/// Why the connection ended, unless it ended in order. Input of a peer never causes a panic.
pub async fn serve_quic(
    incoming: QuicIncoming,
    handler: Arc<dyn Handler>,
    options: &ServerOptions,
    runtime: &SharedRuntime,
    stop: &Latch,
) -> Result<(), ConnectionError> {
    let patience = options.timeouts.handshake_timeout;
    let accepted = incoming.accept(options)?;
    let (connection, handshake) = (accepted.connection, accepted.handshake);
    let _recorded = accepted.recorded;
    let mut control = OwnControlStream::start(&connection, options.max_head_bytes);
    let handshake = Box::pin(async {
        let deadline = runtime.sleep_until(runtime.now() + patience);
        match select(Box::pin(handshake), deadline).await {
            Either::Left((shaken, _)) => shaken,
            Either::Right(_) => {
                options.hits.count(ConnectionLimit::HandshakeTimeout);
                Err(ConnectionError::TimedOut {
                    what: "QUIC handshake",
                    after: patience,
                })
            }
        }
    });
    // Streams of the client can only arrive in early data until then.
    let arrived = control.while_sent(select(handshake, Box::pin(connection.accept_bi())));
    let unheard = shutdown_before_first_byte(options, stop, runtime);
    let early = match select(Box::pin(arrived), unheard).await {
        Either::Left((Either::Left((shaken, _)), _)) => {
            shaken?;
            None
        }
        Either::Left((Either::Right((Ok(stream), handshake)), _)) => Some((stream, handshake)),
        Either::Left((Either::Right((Err(_), handshake)), _)) => {
            return handshake.await; // the connection is lost, and the handshake has the error
        }
        Either::Right(_) => return Ok(()), // no request was accepted yet
    };
    tracing::debug!(protocol = %Protocol::Http3, early = early.is_some(), "serving a connection");
    let handler = with_client_certificate(handler, client_certificate(&connection));
    let terms = ServeContext::new(true, handler, options, runtime, stop);
    let complete = Latch::new();
    let Some((first, handshake)) = early else {
        complete.set();
        return server::serve(connection, control, None, complete, terms).await;
    };
    let serving = server::serve(
        connection.clone(),
        control,
        Some(first),
        complete.clone(),
        terms,
    );
    let serving = Box::pin(serving);
    match select(handshake, serving).await {
        Either::Left((Ok(()), serving)) => {
            complete.set();
            serving.await
        }
        Either::Left((Err(failed), _)) => {
            connection.close(Code::NO_ERROR.wire(), b"");
            Err(failed)
        }
        Either::Right((ended, _)) => ended,
    }
}

/// The certificate of the client at the other side, if TLS requested one and the client has one.
fn client_certificate(connection: &quinn::Connection) -> Option<ClientCertificate> {
    let identity = connection.peer_identity()?;
    let certificates = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    certificates
        .first()
        .map(|certificate| ClientCertificate::new(certificate))
}
