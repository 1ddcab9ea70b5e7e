//! The servers' host: a page's site at every address, and the resolver of its names.
//!
//! The host itself has every address, so one listener on a port, without an address, is a server at each. HTTP/3 servers have their
//! own UDP sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use spdy::runtime::SharedRuntime;
use spdy_net::network::{Network, SystemNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::quic::QuicEndpoint;
use spdy_server::serve::{ServeConfig, serve_connection, serve_quic};
use spdy_server::site::Site;
use spdy_tun::cpu::CpuTime;
use spdy_tun::host::{Host, SERVER};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot;

use crate::live::clock::{LiveRuntime, block_on};
use crate::live::resolver::{self, Resolver};

/// The far side of the link.
#[derive(Clone)]
pub struct ServerSide {
    /// The served site.
    pub site: Arc<Site>,
    /// The configuration of each address and port; there are no others.
    pub servers: BTreeMap<SocketAddrV4, ServeConfig>,
    /// The resolver.
    pub names: Resolver,
}

/// Running servers, until they are [stopped](Self::stop).
#[derive(Debug)]
pub struct RunningServers {
    stop: oneshot::Sender<()>,
    ended: mpsc::Receiver<io::Result<Option<CpuTime>>>,
    accepted: Arc<AtomicU64>,
}

/// Statistics of a far side.
#[derive(Clone, Copy, Debug)]
pub struct ServerStats {
    /// Number of accepted connections of TCP and QUIC.
    pub connections: u64,
    /// CPU time of its thread, if the system reports it.
    pub computed: Option<CpuTime>,
}

impl ServerSide {
    /// Serves on the thread of `host`. Returns when all sockets listen.
    ///
    /// # Errors
    ///
    /// A port cannot be listened on.
    pub fn start(self, host: &Host) -> io::Result<RunningServers> {
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let accepted = Arc::new(AtomicU64::new(0));
        let count = accepted.clone();
        let work = move || {
            let before = CpuTime::of_this_thread();
            block_on(self.serve_until(stopped, ready, count))?;
            let computed = CpuTime::of_this_thread().zip(before);
            Ok(computed.map(|(after, before)| after - before))
        };
        let ended = host.start_job(work);
        if listening.recv().is_ok() {
            return Ok(RunningServers {
                stop,
                ended,
                accepted,
            });
        }
        let ended = ended.recv().expect("the server's job ends");
        Err(ended.err().unwrap_or(io::ErrorKind::BrokenPipe.into()))
    }

    async fn serve_until(
        self,
        stopped: oneshot::Receiver<()>,
        ready: mpsc::Sender<()>,
        accepted: Arc<AtomicU64>,
    ) -> io::Result<()> {
        let runtime = SharedRuntime::new(LiveRuntime::start());
        let resolver = UdpSocket::bind((SERVER, resolver::PORT)).await?;
        tokio::spawn(self.names.clone().serve(resolver));
        let ports: BTreeSet<u16> = self.servers.keys().map(SocketAddrV4::port).collect();
        let far_side = Arc::new(self);
        for port in ports {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?;
            let (far_side, runtime) = (far_side.clone(), runtime.clone());
            tokio::spawn(far_side.accept(listener, runtime, accepted.clone()));
        }
        let by_quic = |config: &&ServeConfig| config.protocols.contains(&Protocol::Http3);
        for (address, config) in far_side
            .servers
            .iter()
            .filter(|(_, config)| by_quic(config))
        {
            let tls = config.tls.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
            let socket = SystemNetwork.datagrams((*address).into())?;
            let endpoint = QuicEndpoint::new(socket, tls, &config.options, &runtime)?;
            let (site, config) = (far_side.site.clone(), config.clone());
            let accepted = accepted.clone();
            let accepting = accept_quic(endpoint, site, config, runtime.clone(), accepted);
            tokio::spawn(accepting);
        }
        let _ = ready.send(()); // the receiver outlives this task
        let _ = stopped.await; // stopped, or the sender was dropped
        Ok(())
    }

    async fn accept(
        self: Arc<Self>,
        listener: TcpListener,
        runtime: SharedRuntime,
        accepted: Arc<AtomicU64>,
    ) {
        loop {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    tracing::warn!(%error, "the server no longer accepts connections");
                    return;
                }
            };
            accepted.fetch_add(1, Ordering::Relaxed);
            // It fails only on a connection that is already closed; its first read fails then.
            let _ = stream.set_nodelay(true);
            let config = address_of(&stream).and_then(|address| self.servers.get(&address));
            if let Some(config) = config {
                let (site, config) = (self.site.clone(), config.clone());
                let serving = serve_connection(Box::new(stream), site, config, runtime.clone());
                tokio::spawn(serving);
            }
        }
    }
}

async fn accept_quic(
    endpoint: QuicEndpoint,
    site: Arc<Site>,
    config: ServeConfig,
    runtime: SharedRuntime,
    accepted: Arc<AtomicU64>,
) {
    while let Some(incoming) = endpoint.accept().await {
        accepted.fetch_add(1, Ordering::Relaxed);
        let serving = serve_quic(incoming, site.clone(), config.clone(), runtime.clone());
        tokio::spawn(serving);
    }
}

/// The address that the client connected to.
fn address_of(stream: &TcpStream) -> Option<SocketAddrV4> {
    match stream.local_addr().ok()? {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}

impl RunningServers {
    /// For any thread: the number of connections accepted so far.
    pub(crate) fn connection_count(&self) -> impl Fn() -> u64 + Send + use<> {
        let accepted = self.accepted.clone();
        move || accepted.load(Ordering::Relaxed)
    }

    /// Stops the servers, and closes every open connection.
    ///
    /// # Errors
    ///
    /// The servers had failed.
    pub fn stop(self) -> io::Result<ServerStats> {
        let _ = self.stop.send(()); // the servers may have failed, which the next line detects
        let computed = self.ended.recv().expect("the server's job ends")?;
        Ok(ServerStats {
            connections: self.accepted.load(Ordering::Relaxed),
            computed,
        })
    }
}
