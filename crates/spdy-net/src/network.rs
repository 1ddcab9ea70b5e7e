//! Where connections come from: the system's sockets, or the lab's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use spdy::runtime::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes both ways: TCP, TLS, or a connection in the lab.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + ?Sized> Io for T {}

/// A connection as it is handed around.
pub type BoxIo = Box<dyn Io>;

/// Names and connections. [`SystemNetwork`] is the real one; the lab has its own.
pub trait Network: Send + Sync + 'static {
    /// Addresses of `host`, in the order to try them.
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>>;
    /// Opens a TCP connection.
    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>>;
}

/// A network as it is handed around.
pub type SharedNetwork = Arc<dyn Network>;

/// The system's resolver and sockets, on tokio.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNetwork;

impl Network for SystemNetwork {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxIo)
        })
    }
}
