//! One accepted QUIC connection, from its first packet to its end.
//!
//! ```text
//!  first packet --QUIC's handshake--> server.rs --> ended
//!                 handshake_timeout     idle_timeout
//! ```

use std::sync::Arc;

use futures_util::future::{Either, select};
use spdy::runtime::SharedRuntime;

use crate::error::ConnectionError;
use crate::handler::Handler;
use crate::http3::server;
use crate::latch::Latch;
use crate::limit::ConnectionLimit;
use crate::options::ServerOptions;
use crate::protocol::Protocol;
use crate::quic::QuicIncoming;
use crate::serve_context::{ServeContext, shutdown_before_first_byte};

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
    let terms = ServeContext::new(true, handler, options, runtime, stop);
    server::serve(connection, terms).await
}
