//! A network in which every name leads to one server: the server keeps the name of the origin, and its certificate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use spdy::runtime::BoxFuture;
use spdy_net::network::{BoxIo, Network, SharedNetwork};

use crate::config::servers::ServerAddress;

/// The network of one server.
pub(super) struct ServerNetwork {
    network: SharedNetwork,
    server: ServerAddress,
    /// Its configured address, in place of a look-up.
    address: Option<IpAddr>,
}

impl ServerNetwork {
    /// The network of `server`, which is reached over `network`, at `address` if that is configured.
    pub(super) fn shared(
        network: SharedNetwork,
        server: ServerAddress,
        address: Option<IpAddr>,
    ) -> SharedNetwork {
        Arc::new(Self {
            network,
            server,
            address,
        })
    }
}

impl Network for ServerNetwork {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        match &self.server {
            ServerAddress::Tcp(host, _) => {
                let address = self.address.or_else(|| host.parse().ok());
                match address {
                    Some(address) => Box::pin(std::future::ready(Ok(vec![address]))),
                    None => self.network.resolve(host),
                }
            }
            // A socket has a path only; this address represents it.
            ServerAddress::Unix(_) => {
                Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
            }
        }
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        match &self.server {
            ServerAddress::Tcp(_, port) => self.network.connect(SocketAddr::new(to.ip(), *port)),
            #[cfg(unix)]
            ServerAddress::Unix(path) => {
                let path = path.clone();
                Box::pin(async move {
                    let stream = tokio::net::UnixStream::connect(path).await?;
                    Ok(Box::new(stream) as BoxIo)
                })
            }
            #[cfg(not(unix))]
            ServerAddress::Unix(_) => {
                Box::pin(std::future::ready(Err(io::ErrorKind::Unsupported.into())))
            }
        }
    }
}
