//! Hosts, connections and packets in virtual time.
//!
//! One client stands on one side of one [`Path`]; every server, and the resolver, on the other. Both ends
//! of a connection are TCP endpoints of [`spdy_netem::tcp`] with real bytes in them. This file moves their
//! segments over the path, by the executor's one heap of timers:
//!
//! ```text
//!   write ─► Tcp ─ poll_transmit ─► Path::offer ─ Arrives(at) ─► timer ─► the other Tcp ─► wakes its reader
//!                                       └ QueueFull, Lost: counted, gone; TCP's own timers notice
//! ```
//!
//! Datagrams pass the same path, as they are: what is lost of them is for whoever sent them to notice (`udp.rs`).
//!
//! A listener hands each connection to a function as soon as its handshake is done. An address where nobody
//! listens refuses: the answer to its SYN is an RST.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use spdy::runtime::{BoxFuture, Runtime};
use spdy_clock::Instant;
use spdy_net::network::{BoxIo, DatagramSocket, Network};
use spdy_netem::path::{Path, PathConfig, Transit, Verdict, Way};
use spdy_netem::segment::Segment;
use spdy_netem::tcp::{Tcp, TcpConfig};

use crate::sim::dns::{self, NameLookups};
use crate::sim::endpoint::{Connection, End, Endpoint, Handle, Side, wake};
use crate::sim::runtime::SimRuntime;
use crate::sim::seed;
use crate::sim::socket::SimIo;
use crate::sim::timers::Fire;
use crate::sim::traffic::Traffic;
use crate::sim::udp::{Datagram, SimUdp, Sockets};

/// What a network is made of.
#[derive(Clone, Debug)]
pub struct NetworkConfig {
    /// The one path between the client and everything else.
    pub path: PathConfig,
    /// TCP as the client's system has it.
    pub client_tcp: TcpConfig,
    /// TCP as the servers' systems have it.
    pub server_tcp: TcpConfig,
    /// How the client learns addresses.
    pub name_lookups: NameLookups,
}

/// Takes a connection that was accepted.
pub type Acceptor = Arc<dyn Fn(BoxIo) + Send + Sync>;

/// IP bytes of a bare RST: 20 of IP, 20 of TCP.
const RST_LEN_BYTES: usize = 40;

/// A network in virtual time; clones are the same network.
#[derive(Clone)]
pub struct SimNetwork {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    runtime: SimRuntime,
    config: NetworkConfig,
    state: Mutex<State>,
}

struct State {
    path: Path,
    traffic: Traffic,
    listeners: BTreeMap<SocketAddr, Acceptor>,
    sockets: Sockets,
    names: BTreeMap<String, Vec<IpAddr>>,
    /// What lies beyond the path before some servers: propagation one way.
    beyond: BTreeMap<IpAddr, Duration>,
    connections: Vec<Connection>,
    /// Packets on their way, by slot; a timer holds the slot.
    in_flight: Vec<Option<Packet>>,
    free_slots: Vec<usize>,
    /// Questions that were asked, by their number.
    questions: Vec<Question>,
    /// Who waits for the network to be quiet.
    quiet: Option<Waker>,
}

struct Packet {
    len_bytes: usize,
    way: Way,
    load: Load,
    /// It stands before a pipe that it must pass again.
    transit: Option<Transit>,
}

enum Load {
    Segment { to: End, segment: Segment },
    Refusal { to: End },
    Datagram(Datagram),
    Query { question: usize },
    Answer { question: usize },
}

struct Question {
    host: String,
    answer: Option<Vec<IpAddr>>,
    waker: Option<Waker>,
}

/// What a timer's token says: a packet arrives, or an endpoint's time has come. Two bits of kind, the rest a number.
#[derive(Clone, Copy)]
enum Token {
    Packet(usize),
    Endpoint(End),
}

impl Token {
    fn pack(self) -> u64 {
        match self {
            Self::Packet(slot) => (slot as u64) << 2,
            Self::Endpoint(End { connection, side }) => {
                ((connection as u64) << 2) | if side == Side::Client { 1 } else { 2 }
            }
        }
    }

    fn unpack(token: u64) -> Self {
        let number = usize::try_from(token >> 2).expect("a number that came from a usize");
        match token & 3 {
            0 => Self::Packet(number),
            1 => Self::Endpoint(End {
                connection: number,
                side: Side::Client,
            }),
            _ => Self::Endpoint(End {
                connection: number,
                side: Side::Server,
            }),
        }
    }
}

impl State {
    /// The endpoint `end`, which must be there.
    fn endpoint(&mut self, end: End) -> &mut Endpoint {
        let connection = &mut self.connections[end.connection];
        match end.side {
            Side::Client => &mut connection.client,
            Side::Server => connection
                .server
                .as_mut()
                .expect("a server's end that no SYN has reached"),
        }
    }

    /// How long `load` is under way beyond the path.
    fn beyond(&self, load: &Load) -> Duration {
        let server = match load {
            Load::Segment { to, .. } | Load::Refusal { to } => {
                Some(self.connections[to.connection].to.ip())
            }
            Load::Datagram(datagram) => datagram.server(),
            Load::Query { .. } | Load::Answer { .. } => None,
        };
        let beyond = server.and_then(|server| self.beyond.get(&server));
        beyond.copied().unwrap_or_default()
    }

    fn is_quiet(&self) -> bool {
        let closed = |end: &Endpoint| end.is_refused || end.tcp.is_closed();
        let mut connections = self.connections.iter();
        self.in_flight.len() == self.free_slots.len()
            && connections.all(|it| closed(&it.client) && it.server.as_ref().is_none_or(closed))
    }
}

impl SimNetwork {
    /// A network with no hosts; everything random in it comes from `seed`.
    #[must_use]
    pub fn new(runtime: SimRuntime, config: NetworkConfig, seed: u64) -> Self {
        let state = State {
            path: Path::new(&config.path, seed::derive(seed, "path")),
            traffic: Traffic::default(),
            listeners: BTreeMap::new(),
            sockets: Sockets::default(),
            names: BTreeMap::new(),
            beyond: BTreeMap::new(),
            connections: Vec::new(),
            in_flight: Vec::new(),
            free_slots: Vec::new(),
            questions: Vec::new(),
            quiet: None,
        };
        Self {
            inner: Arc::new(Inner {
                runtime,
                config,
                state: Mutex::new(state),
            }),
        }
    }

    /// Hands every connection to `address` to `acceptor`, with its handshake done.
    pub fn listen(&self, address: SocketAddr, acceptor: Acceptor) {
        self.inner.lock().listeners.insert(address, acceptor);
    }

    /// A UDP socket at `address`, on the servers' side.
    ///
    /// # Errors
    ///
    /// There is one already.
    pub fn bind(&self, address: SocketAddr) -> io::Result<DatagramSocket> {
        self.inner.lock().sockets.bind(address)?;
        Ok(Arc::new(SimUdp::new(
            self.inner.clone(),
            address,
            Way::Down,
        )))
    }

    /// Tells the resolver one name.
    pub fn name(&self, host: &str, addresses: Vec<IpAddr>) {
        self.inner.lock().names.insert(dns::name(host), addresses);
    }

    /// Puts the server at `address` so far beyond the path's end: `rtt` there and back, without a rate or a queue of its own.
    pub fn put_beyond(&self, address: IpAddr, rtt: Duration) {
        if !rtt.is_zero() {
            self.inner.lock().beyond.insert(address, rtt / 2);
        }
    }

    /// What it is made of.
    pub(crate) fn config(&self) -> &NetworkConfig {
        &self.inner.config
    }

    /// The counts so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.inner.lock().traffic
    }

    /// Completes when every connection is closed on both sides and no packet is on its way.
    pub fn quiet(&self) -> impl Future<Output = ()> + Send + use<> {
        let inner = self.inner.clone();
        std::future::poll_fn(move |cx| {
            let mut state = inner.lock();
            if state.is_quiet() {
                return Poll::Ready(());
            }
            state.quiet = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    pub(crate) fn runtime(&self) -> &SimRuntime {
        &self.inner.runtime
    }

    /// Writes a question for the resolver; [`ask`](Self::ask) sends it.
    pub(crate) fn question(&self, host: &str) -> usize {
        let mut state = self.inner.lock();
        state.traffic.lookups += 1;
        state.questions.push(Question {
            host: dns::name(host),
            answer: None,
            waker: None,
        });
        state.questions.len() - 1
    }

    /// Sends `question`, once more if need be.
    pub(crate) fn ask(&self, question: usize) {
        let mut state = self.inner.lock();
        let len_bytes = dns::query_len_bytes(&state.questions[question].host);
        self.inner
            .send(&mut state, Way::Up, len_bytes, Load::Query { question });
    }

    /// Completes with the first answer to `question`; an empty one means that there is no such name.
    pub(crate) fn answer(
        &self,
        question: usize,
    ) -> impl Future<Output = Vec<IpAddr>> + Send + Unpin + use<> {
        let inner = self.inner.clone();
        std::future::poll_fn(move |cx| {
            let question = &mut inner.lock().questions[question];
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
        if self.inner.config.name_lookups == NameLookups::Known {
            let known = self.inner.lock().names.get(&dns::name(host)).cloned();
            return Box::pin(std::future::ready(known.ok_or_else(|| dns::unknown(host))));
        }
        Box::pin(dns::look_up(self.clone(), host.to_owned()))
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        let now = self.inner.runtime.now();
        let mut state = self.inner.lock();
        let end = End {
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
        self.inner.pump(&mut state, now, end);
        drop(state);
        Box::pin(Connecting {
            io: Some(SimIo::new(self.inner.clone(), end)),
        })
    }

    /// A socket on the client's side. Whoever binds one is about to open a connection over it, and that is how
    /// connections without TCP are counted.
    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        let mut state = self.inner.lock();
        let address = state.sockets.bind_client(local)?;
        state.traffic.connections += 1;
        drop(state);
        Ok(Arc::new(SimUdp::new(self.inner.clone(), address, Way::Up)))
    }
}

/// A connection whose handshake runs; dropping it gives the attempt up.
struct Connecting {
    io: Option<SimIo>,
}

impl Future for Connecting {
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

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a packet on the path.
    fn send(self: &Arc<Self>, state: &mut State, way: Way, len_bytes: usize, load: Load) {
        let now = self.runtime.now();
        if way == Way::Up {
            state.traffic.count(now, way, len_bytes);
        }
        let verdict = state.path.offer(now, way, len_bytes);
        self.carry(
            state,
            verdict,
            Packet {
                len_bytes,
                way,
                load,
                transit: None,
            },
        );
    }

    /// Sends a datagram; at most as large as the path bears.
    pub(crate) fn send_datagram(self: &Arc<Self>, way: Way, datagram: Datagram) {
        let len_bytes = datagram.ip_len_bytes();
        self.send(&mut self.lock(), way, len_bytes, Load::Datagram(datagram));
    }

    /// Does to the UDP sockets what `step` says.
    pub(crate) fn sockets<T>(&self, step: impl FnOnce(&mut Sockets) -> T) -> T {
        step(&mut self.lock().sockets)
    }

    /// Does with `packet` what the path said.
    fn carry(self: &Arc<Self>, state: &mut State, verdict: Verdict, mut packet: Packet) {
        let at = match verdict {
            Verdict::QueueFull => {
                state.traffic.queue_drops += 1;
                return;
            }
            Verdict::Lost => {
                state.traffic.losses += 1;
                return;
            }
            Verdict::Arrives(at) => at + state.beyond(&packet.load),
            Verdict::Again(transit) => {
                packet.transit = Some(transit);
                transit.at()
            }
        };
        let slot = state.free_slots.pop().unwrap_or_else(|| {
            state.in_flight.push(None);
            state.in_flight.len() - 1
        });
        state.in_flight[slot] = Some(packet);
        self.runtime
            .fire_at(at, self.clone(), Token::Packet(slot).pack());
    }

    /// Sends what `end` has to send, sets its timer, and wakes who waits for it.
    fn pump(self: &Arc<Self>, state: &mut State, now: Instant, end: End) {
        while let Some(segment) = state.endpoint(end).tcp.poll_transmit(now) {
            let (way, len_bytes) = (end.outward(), segment.ip_len_bytes());
            self.send(
                state,
                way,
                len_bytes,
                Load::Segment {
                    to: end.other(),
                    segment,
                },
            );
        }
        let endpoint = state.endpoint(end);
        endpoint.wake();
        // A timer that is too early costs one look; one that moved later is not worth moving each time.
        let is_set = |at: Instant| endpoint.timer.is_some_and(|key| key.0 <= at);
        match endpoint.tcp.poll_timeout() {
            Some(at) if is_set(at) => {}
            wanted => {
                if let Some(key) = endpoint.timer.take() {
                    self.runtime.cancel(key);
                }
                endpoint.timer = wanted.map(|at| {
                    self.runtime
                        .fire_at(at, self.clone(), Token::Endpoint(end).pack())
                });
            }
        }
        if state.quiet.is_some() && state.is_quiet() {
            wake(&mut state.quiet);
        }
    }

    fn handle_packet(self: &Arc<Self>, state: &mut State, now: Instant, slot: usize) {
        let mut packet = state.in_flight[slot]
            .take()
            .expect("a timer without its packet");
        state.free_slots.push(slot);
        if let Some(transit) = packet.transit.take() {
            let verdict = state.path.offer_again(transit);
            return self.carry(state, verdict, packet);
        }
        if packet.way == Way::Down {
            state.traffic.count(now, packet.way, packet.len_bytes);
        }
        match packet.load {
            Load::Segment { to, segment } => self.handle_segment(state, now, to, segment),
            Load::Refusal { to } => {
                let endpoint = state.endpoint(to);
                endpoint.is_refused = true;
                endpoint.tcp.abort(now);
                while endpoint.tcp.poll_transmit(now).is_some() {} // nobody is there to hear it
                self.pump(state, now, to);
            }
            Load::Datagram(datagram) => state.sockets.deliver(datagram),
            Load::Query { question } => {
                let host = state.questions[question].host.clone();
                let addresses = state.names.get(&host).cloned().unwrap_or_default();
                let len_bytes = dns::answer_len_bytes(&host, &addresses);
                self.send(state, Way::Down, len_bytes, Load::Answer { question });
            }
            Load::Answer { question } => {
                let known = state
                    .names
                    .get(&state.questions[question].host)
                    .cloned()
                    .unwrap_or_default();
                let question = &mut state.questions[question];
                question.answer = Some(known);
                wake(&mut question.waker);
            }
        }
        if state.quiet.is_some() && state.is_quiet() {
            wake(&mut state.quiet);
        }
    }

    fn handle_segment(
        self: &Arc<Self>,
        state: &mut State,
        now: Instant,
        to: End,
        segment: Segment,
    ) {
        let connection = &mut state.connections[to.connection];
        if to.side == Side::Server && connection.server.is_none() {
            let Some(acceptor) = state.listeners.get(&connection.to).cloned() else {
                return self.send(
                    state,
                    Way::Down,
                    RST_LEN_BYTES,
                    Load::Refusal { to: to.other() },
                );
            };
            let tcp = Tcp::listen(self.config.server_tcp, now);
            connection.server = Some(Endpoint::new(tcp, Some(acceptor)));
        }
        let endpoint = state.endpoint(to);
        endpoint.tcp.handle_segment(now, segment);
        if endpoint.is_abandoned && endpoint.tcp.readable_bytes() > 0 {
            endpoint.tcp.abort(now); // data for a socket that is gone: RST, as systems answer
        }
        self.pump(state, now, to);
    }

    /// Takes out what is to be handed to a listener, now that `end` changed.
    fn accepted(self: &Arc<Self>, state: &mut State, end: End) -> Option<(Acceptor, SimIo)> {
        let connection = &mut state.connections[end.connection];
        let endpoint = connection
            .server
            .as_mut()
            .filter(|it| it.tcp.is_established())?;
        let acceptor = endpoint.acceptor.take()?;
        let server = End {
            side: Side::Server,
            ..end
        };
        Some((acceptor, SimIo::new(self.clone(), server)))
    }

    /// Does `step` to the endpoint `end` and sends what follows from it.
    pub(crate) fn with<T>(
        self: &Arc<Self>,
        end: End,
        step: impl FnOnce(&mut Handle<'_>, Instant) -> T,
    ) -> T {
        let now = self.runtime.now();
        let mut state = self.lock();
        let mut handle = Handle {
            endpoint: state.endpoint(end),
            is_changed: false,
        };
        let result = step(&mut handle, now);
        if handle.is_changed {
            self.pump(&mut state, now, end);
        }
        result
    }
}

impl Fire for Inner {
    fn fire(self: Arc<Self>, now: Instant, token: u64) {
        let mut state = self.lock();
        let end = match Token::unpack(token) {
            Token::Packet(slot) => {
                let end = match &state.in_flight[slot] {
                    Some(Packet {
                        load: Load::Segment { to, .. },
                        ..
                    }) => Some(*to),
                    _ => None,
                };
                self.handle_packet(&mut state, now, slot);
                end
            }
            Token::Endpoint(end) => {
                let endpoint = state.endpoint(end);
                endpoint.timer = None;
                if endpoint.tcp.poll_timeout().is_some_and(|at| at <= now) {
                    endpoint.tcp.handle_timeout(now);
                }
                self.pump(&mut state, now, end);
                Some(end)
            }
        };
        let accepted = end.and_then(|end| self.accepted(&mut state, end));
        drop(state); // a listener may open connections of its own
        if let Some((acceptor, io)) = accepted {
            acceptor(Box::new(io));
        }
    }
}
