//! Hosts and connections in virtual time.
//!
//! One client is on one side of one [`Path`](spdy_netem::path::Path), every server and the resolver on the other. Both
//! ends of a connection are TCP endpoints of [`spdy_netem::tcp`] with real bytes in them; `packet_network.rs` moves their segments.
//!
//! A listener passes each connection to a function when its program handles the end of the handshake. An address without a listener refuses: it
//! responds to a SYN with an RST.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use spdy::runtime::{BoxFuture, Runtime};
use spdy_net::congestion::RememberedWindows;
use spdy_net::network::{BoxIo, DatagramSocket, Network};
use spdy_netem::path::Direction;
use spdy_netem::tcp::Tcp;

use crate::network::config::NetworkConfig;
use crate::network::dns::{self, NameLookups};
use crate::network::endpoint::{Connection, Endpoint, EndpointId, Side};
use crate::network::packet::PacketContent;
use crate::network::packet_network::{DnsQuery, PacketNetwork};
use crate::network::tcp_socket::SimIo;
use crate::network::traffic::Traffic;
use crate::network::udp_socket::SimUdp;
use crate::runtime::SimRuntime;

/// The address of the client of every network.
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Takes an accepted connection.
pub type Acceptor = Arc<dyn Fn(BoxIo) + Send + Sync>;

/// A network in virtual time; clones are the same network.
#[derive(Clone)]
pub struct SimNetwork {
    inner: Arc<PacketNetwork>,
}

impl SimNetwork {
    /// Creates a network without hosts; all randomness in it comes from `seed`.
    #[must_use]
    pub fn new(runtime: SimRuntime, config: NetworkConfig, seed: u64) -> Self {
        Self {
            inner: Arc::new(PacketNetwork::new(runtime, config, seed)),
        }
    }

    /// Passes every connection to `address` to `acceptor` after its handshake.
    pub fn listen(&self, address: SocketAddr, acceptor: Acceptor) {
        self.listen_with_windows(address, acceptor, None);
    }

    /// The same, with connections that start with the congestion window of earlier ones.
    pub fn listen_with_windows(
        &self,
        address: SocketAddr,
        acceptor: Acceptor,
        windows: Option<RememberedWindows>,
    ) {
        // The table with the handler is part of the network.
        let network = Arc::downgrade(&self.inner);
        let on_established = move |server| {
            if let Some(network) = network.upgrade() {
                let io = SimIo::new(network, server);
                acceptor(match &windows {
                    Some(windows) => windows.start(io, CLIENT),
                    None => Box::new(io),
                });
            }
        };
        let mut state = self.inner.lock();
        state.listeners.insert(address, Arc::new(on_established));
    }

    /// Binds a UDP socket at `address`, on the servers' side.
    ///
    /// # Errors
    ///
    /// If `address` is in use.
    pub fn bind(&self, address: SocketAddr) -> io::Result<DatagramSocket> {
        self.inner.lock().sockets.bind(address)?;
        Ok(Arc::new(SimUdp::new(
            self.inner.clone(),
            address,
            Direction::Down,
        )))
    }

    /// Adds one name to the resolver.
    pub fn name(&self, host: &str, addresses: Vec<IpAddr>) {
        self.inner.lock().names.insert(dns::name(host), addresses);
    }

    /// Adds `rtt` to the round trip of the server at `address`, beyond the path's end, without a rate or queue of its own.
    pub fn set_extra_rtt(&self, address: IpAddr, rtt: Duration) {
        if !rtt.is_zero() {
            self.inner.lock().extra_delay.insert(address, rtt / 2);
        }
    }

    /// Its configuration.
    #[cfg(feature = "accelerator")]
    pub(crate) fn config(&self) -> &NetworkConfig {
        &self.inner.config
    }

    /// The counts so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.inner.lock().traffic
    }

    /// Counts from zero again.
    pub(crate) fn restart_traffic(&self) {
        self.inner.lock().traffic = Traffic::default();
    }

    /// Completes when every connection is closed on both sides and no packet is in transit.
    pub fn quiet(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = self.inner.clone();
        std::future::poll_fn(move |cx| {
            let mut state = inner.lock();
            if state.is_quiet() {
                return Poll::Ready(());
            }
            state.quiet_waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    pub(crate) fn runtime(&self) -> &SimRuntime {
        &self.inner.runtime
    }

    /// Prepares a query to the resolver; [`send_query`](Self::send_query) sends it.
    pub(crate) fn start_query(&self, host: &str) -> usize {
        let mut state = self.inner.lock();
        state.traffic.lookups += 1;
        state.queries.push(DnsQuery {
            host: dns::name(host),
            answer: None,
            waker: None,
        });
        state.queries.len() - 1
    }

    /// Sends `question`; further calls repeat it.
    pub(crate) fn send_query(&self, question: usize) {
        let mut state = self.inner.lock();
        let len_bytes = dns::query_len_bytes(&state.queries[question].host);
        self.inner.send(
            &mut state,
            Direction::Up,
            len_bytes,
            PacketContent::Query { question },
        );
    }

    /// Completes with the first response to `question`; an empty one means that the name does not exist.
    pub(crate) fn answer(
        &self,
        question: usize,
    ) -> impl Future<Output = Vec<IpAddr>> + Send + Unpin + use<> {
        let inner = self.inner.clone();
        std::future::poll_fn(move |cx| {
            let question = &mut inner.lock().queries[question];
            if let Some(answer) = question.answer.take() {
                return Poll::Ready(answer);
            }
            question.waker = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Network for SimNetwork {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        if let Ok(address) = host.trim_matches(['[', ']']).parse() {
            return Box::pin(std::future::ready(Ok(vec![address])));
        }
        if self.inner.config.name_lookups == NameLookups::HostsFile {
            let addresses = self.inner.lock().names.get(&dns::name(host)).cloned();
            return Box::pin(std::future::ready(
                addresses.ok_or_else(|| dns::unknown(host)),
            ));
        }
        Box::pin(lookup(self.clone(), host.to_owned()))
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let now = self.inner.runtime.now();
        let mut state = self.inner.lock();
        let end = EndpointId {
            connection: state.connections.len(),
            side: Side::Client,
        };
        let client = Endpoint::new(Tcp::connect(self.inner.config.client_tcp, now), None);
        state.connections.push(Connection {
            to,
            client,
            server: None,
        });
        state.traffic.connections += 1;
        self.inner.transmit(&mut state, now, end);
        drop(state);
        Box::pin(ConnectFuture {
            io: Some(SimIo::new(self.inner.clone(), end)),
        })
    }

    /// A socket on the client's side. A client binds one to open a connection over it, so each bind counts as a connection without
    /// TCP.
    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        let mut state = self.inner.lock();
        let address = state.sockets.bind_client(local)?;
        state.traffic.connections += 1;
        drop(state);
        Ok(Arc::new(SimUdp::new(
            self.inner.clone(),
            address,
            Direction::Up,
        )))
    }
}

/// Sends queries to the resolver until there is a response.
async fn lookup(network: SimNetwork, host: String) -> io::Result<Vec<IpAddr>> {
    let question = network.start_query(&host);
    let (answer, send_query) = (network.answer(question), || network.send_query(question));
    match dns::query_with_retries(network.runtime(), &host, send_query, answer).await? {
        addresses if addresses.is_empty() => Err(dns::unknown(&host)),
        addresses => Ok(addresses),
    }
}

/// A connection during its handshake; dropping it cancels the attempt.
struct ConnectFuture {
    io: Option<SimIo>,
}

impl Future for ConnectFuture {
    type Output = io::Result<BoxIo>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<BoxIo>> {
        let io = self
            .io
            .take()
            .expect("polled after the connection was made");
        match io.poll_established(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(Box::new(io))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                self.io = Some(io);
                Poll::Pending
            }
        }
    }
}
