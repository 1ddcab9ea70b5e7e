//! A UDP socket: the trait that networks implement, and the system's socket on tokio.
//!
//! The methods are those of quinn's trait of the same name, because that allows fast UDP: several datagrams in one system call. It
//! is a separate trait, so that a network, or a name server, does not depend on QUIC. `spdy-h3/src/quic/socket.rs` implements
//! quinn's socket with it.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn_udp::UdpSocketState;
pub use quinn_udp::{RecvMeta, Transmit};
use tokio::io::Interest;

/// A UDP socket, shared by the tasks that use it.
pub type DatagramSocket = Arc<dyn AsyncUdpSocket>;

/// A UDP socket. One task receives at a time, and any number of tasks send.
pub trait AsyncUdpSocket: Send + Sync + fmt::Debug + 'static {
    /// A handle by which one task waits until it can send. Each task that sends needs its own.
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>>;

    /// Sends the datagrams of `transmit`.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room: [`UdpPoller::poll_writable`] reports when there is. All other
    /// errors are the socket's.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()>;

    /// Receives datagrams into `bufs`, and describes each buffer in `meta`. Returns the number of buffers that were filled.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>>;

    /// The local address, with its port.
    ///
    /// # Errors
    ///
    /// The system does not report it.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Maximum number of datagrams in one [`Transmit`].
    fn max_transmit_segments(&self) -> usize {
        1
    }

    /// Maximum number of datagrams that one [`RecvMeta`] describes.
    fn max_receive_segments(&self) -> usize {
        1
    }

    /// True if a datagram can be fragmented on its path.
    fn may_fragment(&self) -> bool {
        true
    }
}

/// Waits until one task can send on an [`AsyncUdpSocket`].
pub trait UdpPoller: Send + Sync + fmt::Debug + 'static {
    /// Ready if the socket may have room. To be called after [`AsyncUdpSocket::try_send`] returned
    /// [`WouldBlock`](io::ErrorKind::WouldBlock). It may be called again after it was ready.
    fn poll_writable(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The system's socket, on tokio.
#[derive(Debug)]
pub(crate) struct SystemUdpSocket {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
}

impl SystemUdpSocket {
    /// Wraps a socket that is already bound. Needs a tokio runtime.
    pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        Ok(Self {
            state: UdpSocketState::new((&socket).into())?,
            io: tokio::net::UdpSocket::from_std(socket)?,
        })
    }
}

impl AsyncUdpSocket for SystemUdpSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(SystemUdpPoller {
            socket: self,
            writable: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let send = || self.state.send((&self.io).into(), transmit);
        self.io.try_io(Interest::WRITABLE, send)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let receive = || self.state.recv((&self.io).into(), bufs, meta);
            // An error belongs to an earlier datagram (an ICMP message), or the socket is not readable any more.
            if let Ok(filled) = self.io.try_io(Interest::READABLE, receive) {
                return Poll::Ready(Ok(filled));
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.state.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }
}

/// Waits until the socket is writable. It stores its own waker, because tokio's `poll_send_ready` stores only one.
struct SystemUdpPoller {
    socket: Arc<SystemUdpSocket>,
    /// The pending wait.
    writable: Option<Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>>,
}

impl fmt::Debug for SystemUdpPoller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemUdpPoller").finish_non_exhaustive()
    }
}

impl UdpPoller for SystemUdpPoller {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let writable = this.writable.get_or_insert_with(|| {
            let socket = this.socket.clone();
            Box::pin(async move { socket.io.writable().await })
        });
        let ready = ready!(writable.as_mut().poll(cx));
        this.writable = None;
        Poll::Ready(ready)
    }
}
