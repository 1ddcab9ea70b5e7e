//! The servers' host: a page's site behind every address, and the resolver that knows them.
//!
//! The host has every address itself, so that one listener a port, at no address in particular, is a server at each.
//! Those that speak HTTP/3 have a UDP socket of their own.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
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

use crate::live::clock::LiveRuntime;
use crate::live::names::{self, Names};
use crate::live::on_host::block_on;

/// What stands on the far side of the link.
#[derive(Clone)]
pub struct FarSide {
    /// What is served.
    pub site: Arc<Site>,
    /// Where connections are taken.
    pub ports: Vec<u16>,
    /// How, at each address; nobody is at any other.
    pub servers: BTreeMap<Ipv4Addr, ServeConfig>,
    /// The resolver.
    pub names: Names,
}

/// A far side at work, until it is told to [stop](Self::stop).
#[derive(Debug)]
pub struct Serving {
    stop: oneshot::Sender<()>,
    ended: mpsc::Receiver<io::Result<Option<CpuTime>>>,
}

impl FarSide {
    /// Serves on the thread of `host`, and comes back when everything listens.
    ///
    /// # Errors
    ///
    /// A port cannot be listened on.
    pub fn start(self, host: &Host) -> io::Result<Serving> {
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let work = move || {
            let before = CpuTime::of_this_thread();
            block_on(self.serve_until(stopped, ready))?;
            let computed = CpuTime::of_this_thread().zip(before);
            Ok(computed.map(|(after, before)| after - before))
        };
        let ended = host.start_job(work);
        if listening.recv().is_ok() {
            return Ok(Serving { stop, ended });
        }
        let ended = ended.recv().expect("the server's job ends");
        Err(ended.err().unwrap_or(io::ErrorKind::BrokenPipe.into()))
    }

    async fn serve_until(
        self,
        stopped: oneshot::Receiver<()>,
        ready: mpsc::Sender<()>,
    ) -> io::Result<()> {
        let runtime = SharedRuntime::new(LiveRuntime::start());
        let resolver = UdpSocket::bind((SERVER, names::PORT)).await?;
        tokio::spawn(self.names.serve(resolver));
        let servers = Arc::new(self.servers);
        let ports = self.ports;
        for &port in &ports {
            let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?;
            let accepting = accept(
                listener,
                self.site.clone(),
                servers.clone(),
                runtime.clone(),
            );
            tokio::spawn(accepting);
        }
        let by_quic = |config: &&ServeConfig| config.protocols.contains(&Protocol::Http3);
        for (address, config) in servers.iter().filter(|(_, config)| by_quic(config)) {
            for &port in &ports {
                let address = SocketAddr::from((*address, port));
                let tls = config.tls.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
                let socket = SystemNetwork.datagrams(address)?;
                let endpoint = QuicEndpoint::new(socket, tls, &config.options, &runtime)?;
                let (site, config) = (self.site.clone(), config.clone());
                tokio::spawn(accept_quic(endpoint, site, config, runtime.clone()));
            }
        }
        let _ = ready.send(()); // whoever waits for it outlives us
        let _ = stopped.await; // told to stop, or forgotten
        Ok(())
    }
}

async fn accept(
    listener: TcpListener,
    site: Arc<Site>,
    servers: Arc<BTreeMap<Ipv4Addr, ServeConfig>>,
    runtime: SharedRuntime,
) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(error) => {
                tracing::warn!(%error, "no connection is accepted any more");
                return;
            }
        };
        // It fails only on a connection that is gone already, which its first read will tell.
        let _ = stream.set_nodelay(true);
        if let Some(config) = local_address(&stream).and_then(|address| servers.get(&address)) {
            let io = Box::new(stream);
            let serving = serve_connection(io, site.clone(), config.clone(), runtime.clone());
            tokio::spawn(serving);
        }
    }
}

async fn accept_quic(
    endpoint: QuicEndpoint,
    site: Arc<Site>,
    config: ServeConfig,
    runtime: SharedRuntime,
) {
    while let Some(incoming) = endpoint.accept().await {
        let serving = serve_quic(incoming, site.clone(), config.clone(), runtime.clone());
        tokio::spawn(serving);
    }
}

/// The address that the client connected to.
fn local_address(stream: &TcpStream) -> Option<Ipv4Addr> {
    match stream.local_addr().ok()?.ip() {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

impl Serving {
    /// Ends it, with every connection that is still open; what its thread computed, where the system tells.
    ///
    /// # Errors
    ///
    /// It had failed.
    pub fn stop(self) -> io::Result<Option<CpuTime>> {
        let _ = self.stop.send(()); // it may have failed meanwhile, as we see next
        self.ended.recv().expect("the server's job ends")
    }
}
