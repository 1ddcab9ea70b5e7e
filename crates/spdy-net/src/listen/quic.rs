//! A UDP socket that accepts HTTP/3: admission of connections, and a graceful shutdown. Like `listen/tcp.rs` for TCP.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use spdy::runtime::SharedRuntime;
use spdy_h3::quic::{QuicEndpoint, QuicIncoming};
use spdy_net_core::connection_slot::ConnectionSlot;
use spdy_net_core::latch::Latch;
use spdy_net_core::network::{DatagramSocket, Network, SystemNetwork};
use spdy_net_core::options::ServerOptions;
use spdy_net_core::tls::ServerTls;

use crate::admission::Conduct;
use crate::listen::ListenOptions;
use crate::listen::connection_acceptor::admit;
use crate::listen::open_connections::OpenConnections;
use crate::listen::trusted_proxies::ClientInfo;

/// Number of open connections up to which client addresses are accepted without validation, if there are free slots and the address
/// has used less than half of its limits. Above it each client must first prove that it receives packets at its address. Otherwise
/// forged addresses could use up the slots, and count against their real owners.
const MAX_UNVALIDATED: usize = 128;

/// A bound socket that accepts QUIC connections.
#[derive(Debug)]
pub struct QuicListener {
    endpoint: QuicEndpoint,
    address: SocketAddr,
}

impl QuicListener {
    /// Binds `address`; port 0 lets the system choose. To be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// The address is in use, not local, or not permitted; or TLS does not support QUIC (version 1.3).
    pub fn bind(
        address: SocketAddr,
        tls: &ServerTls,
        options: &ServerOptions,
        runtime: &SharedRuntime,
    ) -> io::Result<Self> {
        Self::over(SystemNetwork.datagrams(address)?, tls, options, runtime)
    }

    /// Uses a socket that is already bound. To be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// TLS does not support QUIC (version 1.3).
    pub fn over(
        socket: DatagramSocket,
        tls: &ServerTls,
        options: &ServerOptions,
        runtime: &SharedRuntime,
    ) -> io::Result<Self> {
        let endpoint = QuicEndpoint::new(socket, tls, options, runtime)?;
        let address = endpoint.address()?;
        Ok(Self { endpoint, address })
    }

    /// The local address, including the port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs `serve` for every connection until `stop`, then waits for open connections, and finally drops them, like
    /// [`Listener::run`](crate::listen::Listener::run).
    pub async fn run<F, S>(self, options: ListenOptions, stop: Latch, serve: F)
    where
        F: Fn(QuicIncoming, ClientInfo, ConnectionSlot) -> S,
        S: Future<Output: Into<Conduct>> + Send + 'static,
    {
        let door = &options.admission;
        let mut open = OpenConnections::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.wait() => break,
                accepted = self.endpoint.accept() => accepted,
            };
            open.reap();
            let Some(incoming) = accepted else {
                tracing::warn!(address = %self.address, "the socket is gone");
                break;
            };
            let from = incoming.address();
            let is_calm = open.len() < MAX_UNVALIDATED && door.has_headroom(door.now(), from.ip());
            if !is_calm && !incoming.is_address_validated() {
                incoming.retry();
                continue;
            }
            let permit = tokio::select! {
                biased;
                () = stop.wait() => break,
                permit = door.wait_for_place() => permit,
            };
            let caller = ClientInfo::from(from);
            match admit(door, &options.trusted_proxies.now(), caller) {
                Ok(admitted) => {
                    let incoming = incoming.with_windows(options.windows.clone());
                    let serving = serve(incoming, caller, admitted.slot());
                    open.serve(admitted, permit, serving);
                }
                Err(_) => incoming.refuse(),
            }
        }
        self.endpoint.stop_accepting();
        let drained = self.endpoint.drained();
        open.drain(options.drain_timeout, &options.drain_timed_out, drained)
            .await;
    }
}
