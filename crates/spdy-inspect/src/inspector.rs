//! The whole inspection: packets, connections, their protocols and their events.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use spdy_clock::Instant;
use spdy_frame::version::Version;

use crate::capture::Record;
use crate::conversation::{Context, Conversation};
use crate::direction::Direction;
use crate::event::{DetectionMethod, Event, EventKind, SessionInfo};
use crate::limits::Limits;
use crate::packet::{self, NotSegment, Segment};
use crate::reassembly::{Piece, Reassembly};
use crate::tls::key_log::KeyLog;

/// Options of an inspection.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Limits on memory.
    pub limits: Limits,
    /// Decode SPDY as this version; `None` uses ALPN, Upgrade and the frames.
    pub version: Option<Version>,
    /// Secrets of TLS connections; a pcapng may contain more.
    pub keys: KeyLog,
}

/// Counters of a capture, with or without SPDY.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets.
    pub packets: u64,
    /// Segments of TCP among them.
    pub segments: u64,
    /// IP fragments, which are not reassembled.
    pub fragments: u64,
    /// Packets that are too short for their own headers.
    pub damaged: u64,
    /// Packets that were captured only in part.
    pub cut: u64,
    /// Packets of an unsupported link type.
    pub other_links: u64,
    /// TCP connections.
    pub connections: u64,
    /// TCP connections that were dropped because of [`Limits::connections`].
    pub evicted: u64,
}

/// Client and server, if known: the client sent the SYN, or has the higher port.
type Ends = (SocketAddr, SocketAddr);

/// Reads packets, or two raw streams, and reports the SPDY in them.
#[derive(Debug)]
pub struct Inspector {
    options: Options,
    counts: Counts,
    /// Time of the first packet, nanoseconds since 1970.
    origin: Option<u64>,
    now: Instant,
    /// By ends in the order of address; never iterated where the order matters, except to finish.
    connections: BTreeMap<Ends, Connection>,
    held_bytes: usize,
    numbered_connections: u64,
    events: VecDeque<Event>,
}

#[derive(Debug)]
struct Connection {
    /// Assigned with the first event.
    number: Option<u64>,
    ends: Ends,
    /// The SYN was captured, so the roles are certain.
    are_roles_known: bool,
    last_packet: u64,
    halves: [Reassembly; 2],
    closed: [bool; 2],
    conversation: Conversation,
}

impl Inspector {
    /// Creates an inspection of a capture.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            counts: Counts::default(),
            origin: None,
            now: Instant::ZERO,
            connections: BTreeMap::new(),
            held_bytes: 0,
            numbered_connections: 0,
            events: VecDeque::new(),
        }
    }

    /// The counters so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Handles the next record of a capture. Drain [`poll_event`](Self::poll_event) after it.
    pub fn record(&mut self, record: &Record) {
        match record {
            Record::Secrets(text) => {
                self.options.keys.add(text, self.options.limits.secrets);
            }
            Record::Packet {
                unix_nanos,
                link,
                bytes,
                cut,
            } => {
                let origin = *self.origin.get_or_insert(*unix_nanos);
                self.now = Instant::from_nanos(unix_nanos.saturating_sub(origin));
                self.counts.packets += 1;
                self.counts.cut += u64::from(*cut);
                match packet::segment(*link, bytes) {
                    Ok(segment) => self.segment(&segment),
                    Err(NotSegment::NotTcp) => {}
                    Err(NotSegment::Fragment) => self.counts.fragments += 1,
                    Err(NotSegment::Damaged) => self.counts.damaged += 1,
                    Err(NotSegment::Link) => self.counts.other_links += 1,
                }
            }
        }
    }

    /// Handles two complete raw streams: the client's bytes and the server's bytes.
    ///
    /// They have no times, so stalls are not detected. Drain [`poll_event`](Self::poll_event) after it.
    pub fn streams(&mut self, client: &[u8], server: &[u8]) {
        // The caller has the streams in memory already, so buffering needs no limit.
        let mut options = self.options.clone();
        options.limits.waiting_bytes = usize::MAX;
        let mut conversation = Conversation::new();
        let mut around = context(&options, None, false);
        // A client's bytes that wait for 101 or a ServerHello are buffered until the server's bytes follow.
        conversation.push(Instant::ZERO, Direction::ToServer, client, &mut around);
        conversation.push(Instant::ZERO, Direction::ToClient, server, &mut around);
        if let (true, Some(version)) = (conversation.is_not_ours(), self.options.version) {
            conversation = Conversation::new();
            conversation.begin_spdy(Instant::ZERO, version, &mut around);
            conversation.push(Instant::ZERO, Direction::ToServer, client, &mut around);
            conversation.push(Instant::ZERO, Direction::ToClient, server, &mut around);
        }
        let mut out = around.out;
        if let Some(summary) = conversation.finish(Instant::ZERO, true) {
            out.push((Instant::ZERO, EventKind::SessionEnd(Box::new(summary))));
        }
        let mut number = None;
        self.emit(&mut number, out);
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Call this at the end of the capture: every hole becomes a gap, and every session ends.
    pub fn finish(&mut self) {
        while let Some((_, mut connection)) = self.connections.pop_first() {
            self.end(&mut connection, false);
        }
    }

    fn emit(&mut self, number: &mut Option<u64>, out: Vec<(Instant, EventKind)>) {
        for (at, what) in out {
            let connection = *number.get_or_insert_with(|| {
                self.numbered_connections += 1;
                self.numbered_connections
            });
            self.events.push_back(Event {
                at,
                connection,
                what,
            });
        }
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        use packet::{ACK, FIN, RST, SYN};
        self.counts.segments += 1;
        let forward = (segment.from, segment.to);
        let key = if segment.from <= segment.to {
            forward
        } else {
            (segment.to, segment.from)
        };
        let (syn, ack) = (segment.flags & SYN != 0, segment.flags & ACK != 0);
        if syn && let Some(previous) = self.connections.get(&key) {
            // The ports are reused: the old connection has ended.
            let half = &previous.halves[previous.direction(segment.from).index()];
            if half.has_begun() && !half.is_at_start(segment.seq.wrapping_add(1)) {
                let old = self.connections.remove(&key);
                if let Some(mut old) = old {
                    self.end(&mut old, true);
                }
            }
        }
        if !self.connections.contains_key(&key) {
            if !syn && segment.payload.is_empty() {
                return;
            }
            self.make_room();
            self.counts.connections += 1;
            let client_sent = match (syn, ack) {
                (true, ack) => !ack,
                _ => segment.from.port() >= segment.to.port(),
            };
            let ends = match client_sent {
                true => forward,
                false => (segment.to, segment.from),
            };
            self.connections.insert(
                key,
                Connection {
                    number: None,
                    ends,
                    are_roles_known: syn,
                    last_packet: 0,
                    halves: Default::default(),
                    closed: [false; 2],
                    conversation: Conversation::new(),
                },
            );
        }
        let Some(mut connection) = self.connections.remove(&key) else {
            return;
        };
        connection.last_packet = self.counts.packets;
        if !connection.are_roles_known && !segment.payload.is_empty() {
            connection.are_roles_known = true;
            if connection.has_swapped_roles(segment) {
                connection.ends = (connection.ends.1, connection.ends.0);
                connection.halves.swap(0, 1);
            }
        }
        let direction = connection.direction(segment.from);
        let which = direction.index();
        let held_before = connection.held_bytes();
        let mut pieces = Vec::new();
        let half = &mut connection.halves[which];
        let seq = match syn {
            true => {
                half.begin(segment.seq.wrapping_add(1));
                segment.seq.wrapping_add(1)
            }
            false => segment.seq,
        };
        // A connection of another protocol uses no memory except its entry.
        if !connection.conversation.is_not_ours() {
            half.push(self.now, seq, segment.payload, &mut pieces);
            if half.held_bytes() > self.options.limits.held_bytes {
                half.give_up(&mut pieces);
            }
        }
        let mut back = Vec::new();
        if ack {
            connection.halves[1 - which].acknowledged(segment.ack, &mut back);
        }
        let in_all = (self.held_bytes + connection.held_bytes()).saturating_sub(held_before);
        if in_all > self.options.limits.total_held_bytes {
            connection.halves[which].give_up(&mut pieces);
        }
        self.deliver(&mut connection, direction.back(), back);
        self.deliver(&mut connection, direction, pieces);
        if connection.conversation.is_not_ours() {
            connection.halves.iter_mut().for_each(Reassembly::forget);
        }
        self.held_bytes = (self.held_bytes + connection.held_bytes()).saturating_sub(held_before);
        connection.closed[which] |= segment.flags & FIN != 0;
        let reset = segment.flags & RST != 0;
        if reset || connection.closed == [true; 2] && connection.held_bytes() == 0 {
            self.end(&mut connection, true);
        }
        // The entry stays after the end, so that a retransmission is not a new connection.
        self.connections.insert(key, connection);
    }

    fn deliver(&mut self, connection: &mut Connection, direction: Direction, pieces: Vec<Piece>) {
        if pieces.is_empty() {
            return;
        }
        let mut around = context(&self.options, Some(connection.ends), true);
        for piece in pieces {
            match piece {
                Piece::Bytes(at, bytes) => {
                    connection
                        .conversation
                        .push(at, direction, &bytes, &mut around);
                }
                Piece::Gap { at, len, .. } => {
                    connection.conversation.gap(at, direction, len, &mut around);
                }
            }
        }
        let out = around.out;
        self.emit(&mut connection.number, out);
    }

    /// Ends a connection; `whole` if its end was captured.
    fn end(&mut self, connection: &mut Connection, whole: bool) {
        let held = connection.held_bytes();
        for direction in Direction::BOTH {
            let mut pieces = Vec::new();
            while connection.halves[direction.index()].held_bytes() > 0 {
                connection.halves[direction.index()].give_up(&mut pieces);
            }
            self.deliver(connection, direction, pieces);
        }
        self.held_bytes = self.held_bytes.saturating_sub(held);
        let conversation = std::mem::replace(&mut connection.conversation, Conversation::over());
        if let Some(mut summary) = conversation.finish(self.now, whole) {
            summary.segments = [0, 1].map(|which| connection.halves[which].segments);
            let ended = EventKind::SessionEnd(Box::new(summary));
            self.emit(&mut connection.number, vec![(self.now, ended)]);
        }
    }

    /// Drops the connections that were idle longest, if there are too many.
    fn make_room(&mut self) {
        let limit = self.options.limits.connections.max(1);
        if self.connections.len() < limit {
            return;
        }
        let mut idle: Vec<_> = self
            .connections
            .iter()
            .map(|(key, connection)| (connection.last_packet, *key))
            .collect();
        idle.sort_unstable();
        idle.truncate((limit / 8).max(1));
        for (_, key) in idle {
            if let Some(mut connection) = self.connections.remove(&key) {
                // A connection that has ended, or of another protocol, loses nothing.
                let lost = !connection.conversation.is_not_ours();
                self.counts.evicted += u64::from(lost);
                self.end(&mut connection, false);
            }
        }
    }
}

impl Connection {
    fn direction(&self, from: SocketAddr) -> Direction {
        if from == self.ends.0 {
            Direction::ToServer
        } else {
            Direction::ToClient
        }
    }

    fn held_bytes(&self) -> usize {
        self.halves.iter().map(Reassembly::held_bytes).sum()
    }

    /// True if the first bytes show that the roles are swapped.
    fn has_swapped_roles(&self, segment: &Segment<'_>) -> bool {
        let by_client = match *segment.payload {
            // ClientHello, ServerHello; SYN_STREAM of an odd stream, SYN_REPLY to one.
            [0x16, 3, _, _, _, kind @ (1 | 2), ..] => kind == 1,
            [0x80, 2 | 3, 0, kind @ (1 | 2), _, _, _, _, _, _, _, id, ..] if id % 2 == 1 => {
                kind == 1
            }
            _ if segment.payload.starts_with(b"HTTP/") => false,
            _ if crate::http1::begins_request(segment.payload) == Some(true) => true,
            _ => return false,
        };
        by_client != (self.direction(segment.from) == Direction::ToServer)
    }
}

fn context(options: &Options, ends: Option<Ends>, timed: bool) -> Context<'_> {
    Context {
        limits: &options.limits,
        keys: &options.keys,
        forced: options.version,
        begun: SessionInfo {
            client: ends.map(|ends| ends.0),
            server: ends.map(|ends| ends.1),
            version: None,
            found: DetectionMethod::FirstBytes,
            tls: false,
        },
        timed,
        out: Vec::new(),
    }
}
