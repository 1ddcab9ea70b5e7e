//! Moves packets from one TCP endpoint over the path to the other, with the executor's single heap of timers.
//!
//! ```text
//!   write ─► Tcp ─ poll_transmit ─► Path::offer ─ Arrives(at) ─► timer ─► the other Tcp ─► its program (program.rs)
//!                                       ├ Waits(ticket) ─► timer of the path ─► Path::poll_departure ─► one of the others
//!                                       └ QueueDrop, Lost: counted and dropped; TCP's own timers detect it
//! ```
//!
//! Datagrams pass the same path unchanged. Their senders must detect losses (`udp_socket.rs`). DNS queries and answers also
//! pass it (`dns.rs`).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::Runtime as _;
use spdy_clock::Instant;
use spdy_netem::path::{Departure, Direction, Path, PathOutcome};
use spdy_netem::queue::Ticket;
use spdy_netem::segment::Segment;
use spdy_netem::tcp::Tcp;

use crate::network::config::NetworkConfig;
use crate::network::datagram::{Datagram, UdpSockets};
use crate::network::dns;
use crate::network::endpoint::{
    Connection, Endpoint, EndpointId, Handle, OnEstablished, Side, wake,
};
use crate::network::packet::{Packet, PacketContent, Token};
use crate::network::program::{Arrival, Program};
use crate::network::traffic::Traffic;
use crate::runtime::{SimRuntime, TimerKey, TimerTarget};
use crate::seed;

/// IP bytes of a bare RST: 20 of IP, 20 of TCP.
const RST_LEN_BYTES: usize = 40;

/// The path, and the endpoints at its ends.
pub(crate) struct PacketNetwork {
    pub(super) runtime: SimRuntime,
    pub(super) config: NetworkConfig,
    state: Mutex<State>,
}

pub(super) struct State {
    path: Path,
    /// Fires when a packet leaves a queue of the path that decides at departure.
    path_timer: Option<TimerKey>,
    /// Packets in such a queue.
    waiting: BTreeMap<Ticket, Packet>,
    pub(super) traffic: Traffic,
    pub(super) listeners: BTreeMap<SocketAddr, OnEstablished>,
    pub(super) sockets: UdpSockets,
    pub(super) names: BTreeMap<String, Vec<IpAddr>>,
    /// One-way propagation delay beyond the path, for some servers.
    pub(super) extra_delay: BTreeMap<IpAddr, Duration>,
    pub(super) connections: Vec<Connection>,
    /// Packets in transit, by slot; a timer has the slot.
    in_flight: Vec<Option<Packet>>,
    free_slots: Vec<usize>,
    /// The programs of the client and of the servers' side.
    programs: [Program; 2],
    /// Started DNS queries, by their numbers.
    pub(super) queries: Vec<DnsQuery>,
    /// Answers that leave after other packets of this instant.
    answers_due: usize,
    /// The waker of a task that waits until the network is quiet.
    pub(super) quiet_waker: Option<Waker>,
}

pub(super) struct DnsQuery {
    pub(super) host: String,
    pub(super) answer: Option<Vec<IpAddr>>,
    pub(super) waker: Option<Waker>,
}

impl State {
    fn new(path: Path) -> Self {
        Self {
            path,
            path_timer: None,
            waiting: BTreeMap::new(),
            traffic: Traffic::default(),
            listeners: BTreeMap::new(),
            sockets: UdpSockets::default(),
            names: BTreeMap::new(),
            extra_delay: BTreeMap::new(),
            connections: Vec::new(),
            in_flight: Vec::new(),
            free_slots: Vec::new(),
            programs: Default::default(),
            queries: Vec::new(),
            answers_due: 0,
            quiet_waker: None,
        }
    }

    fn program(&mut self, side: Side) -> &mut Program {
        &mut self.programs[usize::from(side == Side::Server)]
    }

    /// The endpoint `end`, which must exist.
    fn endpoint(&mut self, end: EndpointId) -> &mut Endpoint {
        let connection = &mut self.connections[end.connection];
        match end.side {
            Side::Client => &mut connection.client,
            Side::Server => connection
                .server
                .as_mut()
                .expect("a server's end that no SYN has reached"),
        }
    }

    /// Propagation delay of `load` beyond the path.
    fn extra_delay_of(&self, load: &PacketContent) -> Duration {
        let server = match load {
            PacketContent::Segment { to, .. } | PacketContent::Reset { to } => {
                Some(self.connections[to.connection].to.ip())
            }
            PacketContent::Datagram(datagram) => datagram.server(),
            PacketContent::Query { .. } | PacketContent::Answer { .. } => None,
        };
        let beyond = server.and_then(|server| self.extra_delay.get(&server));
        beyond.copied().unwrap_or_default()
    }

    pub(super) fn is_quiet(&self) -> bool {
        let closed = |end: &Endpoint| end.is_refused || end.tcp.is_closed();
        let mut connections = self.connections.iter();
        self.in_flight.len() == self.free_slots.len()
            && self.waiting.is_empty()
            && self.answers_due == 0
            && self.programs.iter().all(Program::is_empty)
            && connections.all(|it| closed(&it.client) && it.server.as_ref().is_none_or(closed))
    }
}

impl PacketNetwork {
    /// Creates an empty network; all randomness of its path comes from `seed`.
    pub(super) fn new(runtime: SimRuntime, config: NetworkConfig, seed: u64) -> Self {
        let path = Path::new(&config.path, seed::derive(seed, "path"));
        Self {
            runtime,
            config,
            state: Mutex::new(State::new(path)),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Puts a packet on the path.
    pub(super) fn send(
        self: &Arc<Self>,
        state: &mut State,
        way: Direction,
        len_bytes: usize,
        load: PacketContent,
    ) {
        let now = self.runtime.now();
        if way == Direction::Up {
            state.traffic.count(now, way, len_bytes);
        }
        let verdict = state.path.offer(now, way, load.flow(), len_bytes);
        self.handle_verdict(
            state,
            verdict,
            Packet {
                len_bytes,
                way,
                load,
                transit: None,
            },
        );
        self.handle_departures(state, now);
    }

    /// Handles the packets that leave a queue of the path by `now`, and sets the timer for the next one.
    fn handle_departures(self: &Arc<Self>, state: &mut State, now: Instant) {
        while let Some(Departure { ticket, outcome }) = state.path.poll_departure(now) {
            let packet = state.waiting.remove(&ticket);
            self.handle_verdict(state, outcome, packet.expect("a ticket without its packet"));
        }
        // An early timer costs one extra check, which is cheaper than moving the timer each time.
        let next = state.path.poll_timeout();
        let Some(at) = next.filter(|at| state.path_timer.is_none_or(|key| key.0 > *at)) else {
            return;
        };
        if let Some(key) = state.path_timer.take() {
            self.runtime.cancel(key);
        }
        let key = self.runtime.fire_at(at, self.clone(), Token::Path.pack());
        state.path_timer = Some(key);
    }

    /// Sends a datagram of at most the path's MTU.
    pub(crate) fn send_datagram(self: &Arc<Self>, way: Direction, datagram: Datagram) {
        let len_bytes = datagram.ip_len_bytes();
        self.send(
            &mut self.lock(),
            way,
            len_bytes,
            PacketContent::Datagram(datagram),
        );
    }

    /// Calls `step` with the UDP sockets.
    pub(crate) fn sockets<T>(&self, step: impl FnOnce(&mut UdpSockets) -> T) -> T {
        step(&mut self.lock().sockets)
    }

    /// Handles the path's `verdict` on `packet`.
    fn handle_verdict(
        self: &Arc<Self>,
        state: &mut State,
        verdict: PathOutcome,
        mut packet: Packet,
    ) {
        let at = match verdict {
            PathOutcome::QueueDrop => {
                state.traffic.queue_drops += 1;
                return;
            }
            PathOutcome::Lost => {
                state.traffic.losses += 1;
                return;
            }
            PathOutcome::Waits(ticket) => {
                state.waiting.insert(ticket, packet);
                return;
            }
            PathOutcome::Arrives(at) => at + state.extra_delay_of(&packet.load),
            PathOutcome::NextPass(transit) => {
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

    /// Sends segments of `end`, sets its timer, and passes the wakers of the tasks that wait for it to the program of its side.
    pub(super) fn transmit(self: &Arc<Self>, state: &mut State, now: Instant, end: EndpointId) {
        while let Some(segment) = state.endpoint(end).tcp.poll_transmit(now) {
            let (way, len_bytes) = (end.outward(), segment.ip_len_bytes());
            self.send(
                state,
                way,
                len_bytes,
                PacketContent::Segment {
                    to: end.other(),
                    segment,
                },
            );
        }
        let endpoint = state.endpoint(end);
        // An early timer costs one extra check, which is cheaper than moving the timer each time.
        let is_set = |at: Instant| endpoint.timer.is_some_and(|key| key.0 <= at);
        match endpoint.tcp.poll_timeout() {
            Some(at) if is_set(at) => {}
            deadline => {
                if let Some(key) = endpoint.timer.take() {
                    self.runtime.cancel(key);
                }
                endpoint.timer = deadline.map(|at| {
                    self.runtime
                        .fire_at(at, self.clone(), Token::Endpoint(end).pack())
                });
            }
        }
        while let Some(waker) = state.endpoint(end).take_waker() {
            self.notify(state, now, end.side, Arrival::Wake(waker));
        }
        if state.quiet_waker.is_some() && state.is_quiet() {
            wake(&mut state.quiet_waker);
        }
    }

    /// Adds an arrival for the program on `side`.
    fn notify(self: &Arc<Self>, state: &mut State, now: Instant, side: Side, arrival: Arrival) {
        if state.program(side).add(arrival) {
            let at = now + self.config.program_latency;
            let token = Token::Program(side).pack();
            self.runtime.fire_at(at, self.clone(), token);
        }
    }

    fn handle_packet(self: &Arc<Self>, state: &mut State, now: Instant, slot: usize) {
        let mut packet = state.in_flight[slot]
            .take()
            .expect("a timer without its packet");
        state.free_slots.push(slot);
        if let Some(transit) = packet.transit.take() {
            let verdict = state.path.offer_again(transit);
            self.handle_verdict(state, verdict, packet);
            self.handle_departures(state, now);
            // It may have been the last packet, and dropped.
            if state.quiet_waker.is_some() && state.is_quiet() {
                wake(&mut state.quiet_waker);
            }
            return;
        }
        if packet.way == Direction::Down {
            state.traffic.count(now, packet.way, packet.len_bytes);
        }
        match packet.load {
            PacketContent::Segment { to, segment } => self.handle_segment(state, now, to, segment),
            PacketContent::Reset { to } => {
                let endpoint = state.endpoint(to);
                endpoint.is_refused = true;
                endpoint.tcp.abort(now);
                while endpoint.tcp.poll_transmit(now).is_some() {} // discard: the peer is gone
                self.transmit(state, now, to);
            }
            PacketContent::Datagram(datagram) => {
                let side = match packet.way {
                    Direction::Up => Side::Server,
                    Direction::Down => Side::Client,
                };
                if let Some(waker) = state.sockets.deliver(datagram) {
                    self.notify(state, now, side, Arrival::Wake(waker));
                }
            }
            PacketContent::Query { question } => {
                self.notify(state, now, Side::Server, Arrival::Query(question));
            }
            PacketContent::Answer { question } => {
                let addresses = state
                    .names
                    .get(&state.queries[question].host)
                    .cloned()
                    .unwrap_or_default();
                let question = &mut state.queries[question];
                question.answer = Some(addresses);
                if let Some(waker) = question.waker.take() {
                    self.notify(state, now, Side::Client, Arrival::Wake(waker));
                }
            }
        }
        if state.quiet_waker.is_some() && state.is_quiet() {
            wake(&mut state.quiet_waker);
        }
    }

    /// Sends the answer of the name server to the query with the number `question`.
    fn send_answer(self: &Arc<Self>, state: &mut State, question: usize) {
        let host = state.queries[question].host.clone();
        let addresses = state.names.get(&host).cloned().unwrap_or_default();
        let len_bytes = dns::answer_len_bytes(&host, &addresses);
        let answer = PacketContent::Answer { question };
        self.send(state, Direction::Down, len_bytes, answer);
    }

    fn handle_segment(
        self: &Arc<Self>,
        state: &mut State,
        now: Instant,
        to: EndpointId,
        segment: Segment,
    ) {
        let connection = &mut state.connections[to.connection];
        if to.side == Side::Server && connection.server.is_none() {
            let Some(on_established) = state.listeners.get(&connection.to).cloned() else {
                return self.send(
                    state,
                    Direction::Down,
                    RST_LEN_BYTES,
                    PacketContent::Reset { to: to.other() },
                );
            };
            let tcp = Tcp::listen(self.config.server_tcp, now);
            connection.server = Some(Endpoint::new(tcp, Some(on_established)));
        }
        let endpoint = state.endpoint(to);
        endpoint.tcp.handle_segment(now, segment);
        if endpoint.is_abandoned && endpoint.tcp.readable_bytes() > 0 {
            endpoint.tcp.abort(now); // data for a dropped socket: RST, as systems respond
        }
        self.transmit(state, now, to);
    }

    /// Takes the handler of the listener if `end` changed and the handshake is done.
    fn take_accepted(state: &mut State, end: EndpointId) -> Option<(OnEstablished, EndpointId)> {
        let connection = &mut state.connections[end.connection];
        let endpoint = connection
            .server
            .as_mut()
            .filter(|it| it.tcp.is_established())?;
        let on_established = endpoint.on_established.take()?;
        let server = EndpointId {
            side: Side::Server,
            ..end
        };
        Some((on_established, server))
    }

    /// Calls `step` with the endpoint `end` and sends the resulting segments.
    pub(crate) fn with<T>(
        self: &Arc<Self>,
        end: EndpointId,
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
            self.transmit(&mut state, now, end);
        }
        result
    }
}

impl TimerTarget for PacketNetwork {
    fn fire(self: Arc<Self>, now: Instant, token: u64) {
        let mut state = self.lock();
        let end = match Token::unpack(token) {
            Token::Packet(slot) => {
                let end = match &state.in_flight[slot] {
                    Some(Packet {
                        load: PacketContent::Segment { to, .. },
                        ..
                    }) => Some(*to),
                    _ => None,
                };
                self.handle_packet(&mut state, now, slot);
                end
            }
            Token::Path => {
                state.path_timer = None;
                self.handle_departures(&mut state, now);
                if state.quiet_waker.is_some() && state.is_quiet() {
                    wake(&mut state.quiet_waker);
                }
                None
            }
            Token::Endpoint(end) => {
                let endpoint = state.endpoint(end);
                endpoint.timer = None;
                if endpoint.tcp.poll_timeout().is_some_and(|at| at <= now) {
                    endpoint.tcp.handle_timeout(now);
                }
                self.transmit(&mut state, now, end);
                Some(end)
            }
            Token::Answer(question) => {
                state.answers_due -= 1;
                self.send_answer(&mut state, question);
                None
            }
            Token::Program(side) => {
                let mut arrivals = state.program(side).take();
                drop(state); // a listener may open connections of its own
                let mut has_woken = false;
                for arrival in arrivals.drain(..) {
                    match arrival {
                        Arrival::Wake(waker) => waker.wake(),
                        Arrival::Accept(on_established, server) => on_established(server),
                        Arrival::Query(question) if !has_woken => {
                            self.send_answer(&mut self.lock(), question);
                            continue;
                        }
                        // What the tasks before it send leaves first. They run when no event of this instant is left.
                        Arrival::Query(question) => {
                            self.lock().answers_due += 1;
                            let token = Token::Answer(question).pack();
                            let at = now + Duration::from_nanos(1);
                            self.runtime.fire_at(at, self.clone(), token);
                        }
                    }
                    has_woken = true;
                }
                let mut state = self.lock();
                state.program(side).reuse(arrivals);
                if state.quiet_waker.is_some() && state.is_quiet() {
                    wake(&mut state.quiet_waker);
                }
                return;
            }
        };
        if let Some((on_established, server)) =
            end.and_then(|end| Self::take_accepted(&mut state, end))
        {
            let arrival = Arrival::Accept(on_established, server);
            self.notify(&mut state, now, Side::Server, arrival);
        }
    }
}
