//! Passes an accepted connection to `serve`, or closes it without reading, depending on its client's address.
//!
//! ```text
//!  accepted, with a slot ───▶ a client's ─────────────────────────────▶ its address's limits ─▶ served
//!                         ├─▶ of a proxy that forwards requests ──────▶ no limits ────────────▶ served
//!                         └─▶ with a PROXY header ────▶ the header ───▶ its client's limits ──▶ served
//!                                                       listen/proxy_protocol.rs; until then it can be evicted like an idle one
//! ```

use std::net::SocketAddr;
use std::sync::Arc;

use spdy_net_core::connection_slot::ConnectionSlot;
use spdy_net_core::latch::Latch;
use spdy_net_core::limit::ConnectionLimit;
use spdy_net_core::network::BoxIo;
use spdy_net_core::serve_context::FIRST_REQUEST_GRACE;
use tokio::sync::OwnedSemaphorePermit;

use crate::admission::{Admission, AdmissionPermit, Conduct};
use crate::listen::open_connections::OpenConnections;
use crate::listen::proxy_protocol::{self, ProxyHeaderError, ProxyHeaderInfo};
use crate::listen::trusted_proxies::{ClientInfo, SharedTrustedProxies, TrustedProxies};
use crate::log_throttle::LogThrottle;

/// Decides which accepted connections of a listener are served.
pub(crate) struct ConnectionAcceptor<F> {
    admission: Admission,
    trusted_proxies: SharedTrustedProxies,
    serve: Arc<F>,
    stop: Latch,
    /// Limits how often a missing proxy header is logged.
    header_log: Arc<LogThrottle>,
}

impl<F, S> ConnectionAcceptor<F>
where
    F: Fn(BoxIo, ClientInfo, ConnectionSlot) -> S + Send + Sync + 'static,
    S: Future<Output: Into<Conduct>> + Send + 'static,
{
    pub(crate) fn new(
        door: Admission,
        in_front: SharedTrustedProxies,
        serve: F,
        stop: Latch,
    ) -> Self {
        Self {
            admission: door,
            trusted_proxies: in_front,
            serve: Arc::new(serve),
            stop,
            header_log: Arc::default(),
        }
    }

    /// Serves the connection from `from` as one of the `open` ones, unless its client has reached a limit.
    pub(crate) fn accept(
        &self,
        open: &mut OpenConnections,
        (stream, from): (BoxIo, SocketAddr),
        permit: OwnedSemaphorePermit,
    ) {
        let (door, in_front) = (&self.admission, self.trusted_proxies.now());
        if !in_front.uses_proxy_protocol(from.ip()) {
            let caller = ClientInfo::from(from);
            let Ok(admitted) = admit(door, &in_front, caller) else {
                return;
            };
            let serving = (self.serve)(stream, caller, admitted.slot());
            open.serve(admitted, permit, serving);
            return;
        }
        let (door, serve, stop) = (door.clone(), self.serve.clone(), self.stop.clone());
        let header_log = self.header_log.clone();
        open.spawn(permit, async move {
            let waiting = door.admit_trusted_proxy(from.ip());
            let (io, announced) = match read_proxy_header(stream, waiting.slot(), stop).await {
                Ok(heard) => heard,
                Err(reason) => return log_proxy_header_error(&door, &header_log, from, &reason),
            };
            drop(waiting);
            let caller = in_front.client(from, announced);
            if let Ok(admitted) = admit(&door, &in_front, caller) {
                let conduct = serve(io, caller, admitted.slot()).await;
                admitted.ended(conduct.into());
            }
        });
    }
}

/// Applies the limits to a connection of `caller`.
pub(crate) fn admit(
    door: &Admission,
    in_front: &TrustedProxies,
    caller: ClientInfo,
) -> Result<AdmissionPermit, ConnectionLimit> {
    let address = caller.address.ip();
    if in_front.forwards_requests(address) {
        return Ok(door.admit_trusted_proxy(address));
    }
    door.admit(door.now(), address).inspect_err(|limit| {
        let from = caller.address;
        tracing::debug!(%limit, %from, "connection rejected by admission control");
    })
}

/// Reads the PROXY header from `io`, unless it arrives too late or another connection needs the slot first.
async fn read_proxy_header(
    io: BoxIo,
    seat: ConnectionSlot,
    stop: Latch,
) -> Result<(BoxIo, ProxyHeaderInfo), ProxyHeaderError> {
    let too_late = async {
        stop.wait().await;
        tokio::time::sleep(FIRST_REQUEST_GRACE).await;
    };
    tokio::select! {
        heard = proxy_protocol::read(io) => heard,
        () = too_late => Err(ProxyHeaderError::NoBytes),
        () = seat.evicted() => Err(ProxyHeaderError::NoBytes),
    }
}

/// Logs why a proxy's connection was closed: the proxy and this listener are configured differently.
fn log_proxy_header_error(
    door: &Admission,
    throttle: &LogThrottle,
    from: SocketAddr,
    reason: &ProxyHeaderError,
) {
    if matches!(reason, ProxyHeaderError::TimedOut(_)) {
        door.count(ConnectionLimit::HandshakeTimeout);
    }
    // Some proxies send the header only after the client's first byte, and many clients send none.
    let is_well_set_up = matches!(
        reason,
        ProxyHeaderError::NoBytes | ProxyHeaderError::TimedOut(0) | ProxyHeaderError::Io(_)
    );
    if !is_well_set_up && throttle.is_due(door.now()) {
        tracing::warn!(%from, %reason, "trusted proxy sends no valid PROXY protocol header: closing its connections");
    } else {
        tracing::debug!(%from, %reason, "connection without a valid PROXY protocol header");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::AdmissionLimits;
    use spdy_net_core::limit::LimitHits;

    #[test]
    fn slow_proxy_header_is_counted_and_a_wrong_one_is_logged() {
        let from = SocketAddr::from(([192, 0, 2, 1], 1));
        let log_error = |reason: ProxyHeaderError| {
            let (hits, throttle) = (LimitHits::default(), LogThrottle::default());
            let door = Admission::new(AdmissionLimits::default(), hits.clone());
            log_proxy_header_error(&door, &throttle, from, &reason);
            let is_logged = !throttle.is_due(door.now());
            (is_logged, hits.of(ConnectionLimit::HandshakeTimeout))
        };
        let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        for (reason, expected) in [
            (ProxyHeaderError::NoBytes, (false, 0)),
            (ProxyHeaderError::Io(broken), (false, 0)),
            (ProxyHeaderError::TimedOut(0), (false, 1)),
            (ProxyHeaderError::TimedOut(6), (true, 1)),
            (ProxyHeaderError::Truncated(6), (true, 0)),
            (ProxyHeaderError::TooLong, (true, 0)),
            (
                ProxyHeaderError::NotAHeader(b"GET".as_slice().into()),
                (true, 0),
            ),
        ] {
            let named = reason.to_string();
            assert_eq!(log_error(reason), expected, "{named}");
        }
    }
}
