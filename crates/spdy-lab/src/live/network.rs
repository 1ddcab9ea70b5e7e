//! The kernel's sockets on the client's host, and the resolver behind the link.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_net::network::{BoxIo, DatagramSocket, Network, SystemNetwork};
use spdy_sim::network::dns::{self, NameLookups};
use tokio::net::TcpStream;

use crate::live::resolver::{self, Resolver};

/// A network in real time; clones are the same network.
#[derive(Clone)]
pub(crate) struct LiveNetwork {
    pub(crate) runtime: SharedRuntime,
    pub(crate) resolver: SocketAddr,
    /// Names for lookups if `name_lookups` is `HostsFile`.
    pub(crate) names: Resolver,
    pub(crate) name_lookups: NameLookups,
    /// Number of started connections.
    pub(crate) connections: Arc<AtomicU64>,
}

impl Network for LiveNetwork {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Box::pin(std::future::ready(Ok(vec![address])));
        }
        if self.name_lookups == NameLookups::HostsFile {
            let address = self.names.address(host);
            let addresses = address.map(|address| vec![IpAddr::V4(address)]);
            return Box::pin(std::future::ready(
                addresses.ok_or_else(|| dns::unknown(host)),
            ));
        }
        let (runtime, resolver, host) = (self.runtime.clone(), self.resolver, host.to_owned());
        Box::pin(async move { resolver::lookup(&*runtime, resolver, &host).await })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxIo)
        })
    }

    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        self.connections.fetch_add(1, Ordering::Relaxed); // one per socket
        SystemNetwork.datagrams(local)
    }
}
