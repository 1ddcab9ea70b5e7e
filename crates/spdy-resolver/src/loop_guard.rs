//! A network that refuses our own addresses: for a site's own origin, which may be private but must not be this server.
//!
//! The inner network resolves the origin's name (in production with the system's resolver: hosts files, containers' names), in any
//! zone. The check is on the address that is about to be connected to, so it also finds names that lead here through aliases.

use std::io;
use std::net::{IpAddr, SocketAddr};

use spdy::runtime::BoxFuture;
use spdy_net::network::{BoxIo, DatagramSocket, Network, SharedNetwork};

use crate::address_rules::OriginDenial;
use crate::own_listeners::OwnListeners;

/// A [`Network`] that connects to none of our own listeners. Refusals are errors of the kind `PermissionDenied` with a [`OriginDenial`]
/// inside.
#[derive(Clone)]
pub struct LoopGuard {
    inner: SharedNetwork,
    own: OwnListeners,
}

impl LoopGuard {
    /// Wraps `inner`, and refuses connections to `own`.
    #[must_use]
    pub fn new(inner: SharedNetwork, own: OwnListeners) -> Self {
        Self { inner, own }
    }
}

impl Network for LoopGuard {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        self.inner.resolve(host)
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        if self.own.contains(to) {
            let denied = OriginDenial::Own(to);
            tracing::warn!(
                origin = %to,
                reason = denied.reason(),
                error = %denied,
                "connection to an origin denied"
            );
            let refusal = io::Error::new(io::ErrorKind::PermissionDenied, denied);
            return Box::pin(std::future::ready(Err(refusal)));
        }
        self.inner.connect(to)
    }

    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        self.inner.datagrams(local)
    }
}
