//! TCP listeners: admission of connections, and a graceful shutdown.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use spdy_net_core::congestion::RememberedWindows;
use spdy_net_core::connection_slot::ConnectionSlot;
use spdy_net_core::latch::Latch;
use spdy_net_core::network::BoxIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::admission::{Admission, Conduct};
use crate::listen::connection_acceptor::ConnectionAcceptor;
use crate::listen::open_connections::OpenConnections;
use crate::listen::trusted_proxies::{ClientInfo, SharedTrustedProxies};

/// Limit of connections that the kernel queues before they are accepted.
const BACKLOG: u32 = 1024;
/// Limit of unsent bytes of a connection in the kernel (TCP_NOTSENT_LOWAT); when half of them are sent, it accepts more. Without
/// this limit the kernel accepts megabytes, and reports no progress until a third of them is sent: a client that reads 5 kB/s would
/// look stalled for minutes. Also, more urgent bytes cannot overtake bytes in this buffer.
#[cfg(target_os = "linux")]
const UNSENT_BYTES: u32 = 128 * 1024;
/// Delay after an `accept` that failed for lack of file descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Options of a listener.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenOptions {
    /// Decides which connections are accepted. Listeners that share it share its limits.
    pub admission: Admission,
    /// Timeout for open connections after the stop.
    pub drain_timeout: Duration,
    /// Set when connections are still open after `drain_timeout`, before they are dropped: they then end without any fault of the
    /// peer. Listeners may share it.
    pub drain_timed_out: Latch,
    /// Proxies whose information about clients is trusted. Default none.
    pub trusted_proxies: SharedTrustedProxies,
    /// Starts connections with the congestion window of earlier ones. TCP needs Linux for it. Default `None`: all start with the
    /// usual window.
    pub windows: Option<RememberedWindows>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            admission: Admission::default(),
            drain_timeout: Duration::from_secs(5),
            drain_timed_out: Latch::new(),
            trusted_proxies: SharedTrustedProxies::default(),
            windows: None,
        }
    }
}

impl ListenOptions {
    /// The stream of a connection that was just accepted from `client`.
    fn start(&self, stream: TcpStream, client: SocketAddr) -> BoxIo {
        match &self.windows {
            Some(windows) => windows.start(stream, client.ip()),
            None => Box::new(stream),
        }
    }
}

/// A bound socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds `address`; port 0 lets the system choose. SO_REUSEADDR is set, so that a server can be restarted while old connections
    /// are in TIME_WAIT.
    ///
    /// # Errors
    ///
    /// The address is in use, not local, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        Self::of(socket.listen(BACKLOG)?)
    }

    /// Uses a socket that is already listening. To be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// The socket cannot be registered with the system's poll.
    pub fn over(socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::of(TcpListener::from_std(socket)?)
    }

    fn of(socket: TcpListener) -> io::Result<Self> {
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Another descriptor of the same socket.
    ///
    /// # Errors
    ///
    /// The system has no free descriptors.
    #[cfg(unix)]
    pub(crate) fn try_clone_fd(&self) -> io::Result<std::os::fd::OwnedFd> {
        std::os::fd::AsFd::as_fd(&self.socket).try_clone_to_owned()
    }

    /// The local address, including the port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs `serve` for every connection until `stop`, then waits for open connections, and finally drops them. A connection that
    /// waits for a slot at the stop gets the first free one. The conduct that `serve` returns is recorded for the caller's address;
    /// the [`ConnectionSlot`] is for `ServerOptions::slot`, and the `Caller`'s TLS flag for
    /// [`ServerOptions::is_tls`](spdy_net_core::options::ServerOptions::is_tls).
    pub async fn run<F, S>(self, options: ListenOptions, stop: Latch, serve: F)
    where
        F: Fn(BoxIo, ClientInfo, ConnectionSlot) -> S + Send + Sync + 'static,
        S: Future<Output: Into<Conduct>> + Send + 'static,
    {
        let door = &options.admission;
        let keeper = ConnectionAcceptor::new(
            door.clone(),
            options.trusted_proxies.clone(),
            serve,
            stop.clone(),
        );
        let mut open = OpenConnections::default();
        let waits = loop {
            let accepted = tokio::select! {
                biased;
                () = stop.wait() => break None,
                accepted = self.accept() => accepted,
            };
            open.reap();
            let accepted = match accepted {
                Ok((stream, from)) => (options.start(stream, from), from),
                Err(error) => {
                    tracing::warn!(%error, address = %self.address, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            };
            // Only after a connection was accepted: a waiting listener would block others that share the `Admission`.
            let permit = tokio::select! {
                permit = door.wait_for_place() => permit,
                () = stop.wait() => break Some(accepted),
            };
            keeper.accept(&mut open, accepted, permit);
        };
        drop(self.socket);
        let stopped = tokio::time::Instant::now();
        if let Some(accepted) = waits {
            // Only this process can serve it: it was already accepted.
            match tokio::time::timeout(options.drain_timeout, door.wait_for_place()).await {
                Ok(permit) => keeper.accept(&mut open, accepted, permit),
                Err(_) => tracing::warn!("a connection waited for a free slot until shutdown"),
            }
        }
        let left = options.drain_timeout.saturating_sub(stopped.elapsed());
        open.drain(left, &options.drain_timed_out, std::future::ready(()))
            .await;
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, from) = self.socket.accept().await?;
        // It fails only on a connection that has already ended, which its first read reports.
        let _ = stream.set_nodelay(true);
        #[cfg(target_os = "linux")]
        let _ = socket2::SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES);
        Ok((stream, from))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn listener_sets_a_small_not_sent_low_water_mark() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(here).expect("loopback has a free port");
        let _client = TcpStream::connect(listener.address())
            .await
            .expect("a port");
        let accepted = listener.accept().await;
        let (stream, ..) = accepted.expect("a connection");
        let unsent = socket2::SockRef::from(&stream).tcp_notsent_lowat();
        assert_eq!(unsent.expect("Linux supports this option"), UNSENT_BYTES);
    }
}
