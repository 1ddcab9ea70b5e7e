//! The source of connections: the system's sockets, or virtual time.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use socket2::{Domain, SockRef, Socket, Type};
use spdy::runtime::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::udp_socket::SystemUdpSocket;
pub use crate::udp_socket::{AsyncUdpSocket, DatagramSocket, RecvMeta, Transmit, UdpPoller};

/// A byte stream in both directions: TCP, TLS, or a connection in virtual time.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + ?Sized> Io for T {}

impl fmt::Debug for dyn Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dyn Io")
    }
}

/// A boxed connection.
pub type BoxIo = Box<dyn Io>;

/// Names, connections and datagrams. [`SystemNetwork`] is the real one; `spdy-sim` has one in virtual time.
pub trait Network: Send + Sync + 'static {
    /// Addresses of `host`, in the order to try them.
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>>;
    /// Opens a TCP connection.
    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>>;
    /// Binds a UDP socket to `local`; port 0 lets the system choose.
    ///
    /// # Errors
    ///
    /// The address is in use, not local, or not permitted. The default is the error of a network without UDP.
    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        let reason = format!("this network has no UDP socket at {local}");
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }
}

/// Buffer size of a UDP socket in each direction, bytes.
const UDP_BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// A shared network.
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

    /// Must be called inside a tokio runtime.
    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        Self::datagrams_from_std(Self::bind_datagrams(local)?)
    }
}

impl SystemNetwork {
    /// Binds a UDP socket without registering it with a runtime.
    ///
    /// # Errors
    ///
    /// The address is in use, not local, or not permitted.
    pub fn bind_datagrams(local: SocketAddr) -> io::Result<std::net::UdpSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, None)?;
        socket.bind(&local.into())?;
        Ok(socket.into())
    }

    /// Uses a socket that is already bound. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// The socket cannot be registered with the system's poll.
    pub fn datagrams_from_std(socket: std::net::UdpSocket) -> io::Result<DatagramSocket> {
        let room = SockRef::from(&socket);
        // Room for bursts of a fast peer, and of our own. The system may grant less.
        let _ = room.set_recv_buffer_size(UDP_BUFFER_BYTES);
        let _ = room.set_send_buffer_size(UDP_BUFFER_BYTES);
        Ok(Arc::new(SystemUdpSocket::new(socket)?))
    }
}
