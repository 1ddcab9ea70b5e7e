//! Real TCP listeners: who is let in, and an end in order.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use crate::admission::{Admission, Conduct};
use crate::latch::Latch;
use crate::network::BoxIo;

/// Connections the kernel may hold before they are accepted.
const BACKLOG: u32 = 1024;
/// Rest after an `accept` that failed for want of file descriptors or memory.
const REST_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// How a listener listens.
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// Who is let in. Listeners that share it share its limits.
    pub admission: Admission,
    /// How long open connections have to end after the stop.
    pub drain_timeout: Duration,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            admission: Admission::default(),
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
    /// drops them. What `serve` says of its peer is remembered of the peer's address.
    pub async fn run<F, S>(self, options: ListenOptions, stop: Latch, serve: F)
    where
        F: Fn(BoxIo, SocketAddr) -> S,
        S: Future<Output: Into<Conduct>> + Send + 'static,
    {
        let door = &options.admission;
        let mut open = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.wait() => break,
                accepted = self.accept(door) => accepted,
            };
            while open.try_join_next().is_some() {}
            let (stream, from, permit) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, address = %self.address, "cannot accept a connection");
                    tokio::time::sleep(REST_AFTER_FAILURE).await;
                    continue;
                }
            };
            match door.admit(door.hour(), from.ip()) {
                Ok(admitted) => {
                    let serving = serve(Box::new(stream), from);
                    open.spawn(async move {
                        let conduct = serving.await.into();
                        admitted.ended(conduct);
                        drop(permit);
                    });
                }
                Err(limit) => tracing::debug!(%limit, %from, "a connection was closed unheard"),
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
        door: &Admission,
    ) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let permit = door.room().await;
        let (stream, from) = self.socket.accept().await?;
        // It fails only on a connection that is gone already, which its first read will tell.
        let _ = stream.set_nodelay(true);
        Ok((stream, from, permit))
    }
}
