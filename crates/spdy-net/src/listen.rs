//! Real TCP listeners: a limit on connections, and an end in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::latch::Latch;
use crate::network::BoxIo;

/// Connections the kernel may hold before they are accepted.
const BACKLOG: u32 = 1024;
/// Rest after an `accept` that failed for want of file descriptors or memory.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Limits on a listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// Connections open at once; the kernel's queue holds the rest.
    pub max_connections: usize,
    /// How long open connections have to end after the stop.
    pub drain_timeout: Duration,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            max_connections: 16 * 1024,
            drain_timeout: Duration::from_secs(5),
        }
    }
}

/// A bound socket that takes connections.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds `address`; port 0 lets the system choose. SO_REUSEADDR is set, so that a server can be
    /// started again while old connections linger.
    ///
    /// # Errors
    ///
    /// The address is in use, not ours, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = if address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let socket = socket.listen(BACKLOG)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where it listens, port included.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs `serve` for every connection until `stop`, then waits for those that are open, and at last
    /// drops them.
    pub async fn run<F, S>(self, options: ListenOptions, stop: Latch, serve: F)
    where
        F: Fn(BoxIo, SocketAddr) -> S,
        S: Future<Output = ()> + Send + 'static,
    {
        let room = Arc::new(Semaphore::new(options.max_connections));
        let mut open = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.wait() => break,
                accepted = self.accept(&room) => accepted,
            };
            while open.try_join_next().is_some() {}
            match accepted {
                Ok((stream, from, permit)) => {
                    let serving = serve(Box::new(stream), from);
                    open.spawn(async move {
                        serving.await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, address = %self.address, "cannot accept a connection");
                    tokio::time::sleep(REST_AFTER_FAILURE).await;
                }
            }
        }
        drop(self.socket);
        let drained = async { while open.join_next().await.is_some() {} };
        if tokio::time::timeout(options.drain_timeout, drained)
            .await
            .is_err()
        {
            tracing::warn!(
                connections = open.len(),
                "connections are still open; leaving them"
            );
            open.shutdown().await;
        }
    }

    async fn accept(
        &self,
        room: &Arc<Semaphore>,
    ) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        let permit = room
            .clone()
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let (stream, from) = self.socket.accept().await?;
        // It fails only on a connection that is gone already, which its first read will tell.
        let _ = stream.set_nodelay(true);
        Ok((stream, from, permit))
    }
}
