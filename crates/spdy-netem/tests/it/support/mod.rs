//! Two endpoints, a path and an event loop, which run one connection in virtual time.
#![allow(
    dead_code,
    reason = "the benchmark includes this file and uses a part of it"
)]

pub(crate) mod arithmetic;
pub(crate) mod exchange;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_netem::path::{Direction, Path, PathConfig, PathOutcome, Transit};
use spdy_netem::queue::{FlowKey, Ticket};
use spdy_netem::segment::Segment;
use spdy_netem::tcp::{Tcp, TcpConfig};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// The applications at both ends, which are called whenever something may have changed for one of them.
pub(crate) trait Apps {
    fn client(&mut self, now: Instant, tcp: &mut Tcp);
    fn server(&mut self, now: Instant, tcp: &mut Tcp);
    fn is_done(&self) -> bool;
    /// Time at which the applications must be called without another event.
    fn next_wake(&self) -> Option<Instant> {
        None
    }
}

/// A packet that was offered to the path.
#[derive(Clone, Debug)]
pub(crate) struct TracedPacket {
    pub(crate) at: Instant,
    pub(crate) way: Direction,
    pub(crate) segment: Segment,
    /// When it arrives, if it does, after the last pass.
    pub(crate) arrives: Option<Instant>,
}

enum Event {
    Arrival(Segment),
    Again(Transit, Segment, usize),
}

/// True if the test drops the packet with this number in its direction.
type DropFilter = dyn FnMut(Direction, usize, &Segment) -> bool;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) client: Tcp,
    pub(crate) server: Tcp,
    pub(crate) path: Path,
    pub(crate) trace: Vec<TracedPacket>,
    /// Packets that the test drops, by their number in their direction, from 0.
    pub(crate) takes: Box<DropFilter>,
    counts: [usize; 2],
    /// Packets that wait in a managed queue.
    waiting: BTreeMap<Ticket, (Direction, Segment, usize)>,
    queue: BinaryHeap<Reverse<(Instant, u64)>>,
    events: Vec<Option<(Direction, Event)>>,
}

impl World {
    pub(crate) fn new(path: &PathConfig, seed: u64, client: TcpConfig, server: TcpConfig) -> Self {
        let now = Instant::ZERO;
        Self {
            now,
            client: Tcp::connect(client, now),
            server: Tcp::listen(server, now),
            path: Path::new(path, seed),
            trace: Vec::new(),
            takes: Box::new(|_, _, _| false),
            counts: [0; 2],
            waiting: BTreeMap::new(),
            queue: BinaryHeap::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn today(path: &PathConfig) -> Self {
        Self::new(path, 0, TcpConfig::today(), TcpConfig::today())
    }

    /// Runs until the applications are done, no event is left, or `end`.
    pub(crate) fn run(&mut self, apps: &mut impl Apps, end: Instant) {
        self.pump(apps, Direction::Up);
        self.pump(apps, Direction::Down);
        while !apps.is_done() && self.step(apps, end) {}
    }

    /// Continues after the applications are done, until no event is left or `end`.
    pub(crate) fn run_out(&mut self, apps: &mut impl Apps, end: Instant) {
        while self.step(apps, end) {}
    }

    fn step(&mut self, apps: &mut impl Apps, end: Instant) -> bool {
        let event = self.queue.peek().map(|Reverse((at, _))| *at);
        let timers = [
            self.client.poll_timeout(),
            self.server.poll_timeout(),
            apps.next_wake(),
            self.path.poll_timeout(),
        ];
        let timer = timers.into_iter().flatten().min();
        let Some(next) = event.into_iter().chain(timer).min() else {
            return false;
        };
        let next = next.max(self.now);
        if next > end {
            self.now = end;
            return false;
        }
        self.now = next;
        if event == Some(next) {
            let Reverse((_, id)) = self.queue.pop().expect("peeked");
            let (way, event) = self.events[id as usize].take().expect("once");
            match event {
                Event::Arrival(segment) => {
                    let receiver = match way {
                        Direction::Up => &mut self.server,
                        Direction::Down => &mut self.client,
                    };
                    receiver.handle_segment(next, segment);
                    self.pump(apps, way.reverse());
                }
                Event::Again(transit, segment, seen) => {
                    let verdict = self.path.offer_again(transit);
                    self.follow(way, verdict, segment, seen);
                }
            }
        } else {
            self.follow_departures();
            self.client.handle_timeout(next);
            self.server.handle_timeout(next);
            self.pump(apps, Direction::Up);
            self.pump(apps, Direction::Down);
        }
        true
    }

    /// Sends all segments towards `way`, then calls the application there, and repeats this.
    fn pump(&mut self, apps: &mut impl Apps, way: Direction) {
        self.drain(way);
        match way {
            Direction::Up => apps.client(self.now, &mut self.client),
            Direction::Down => apps.server(self.now, &mut self.server),
        }
        self.drain(way);
    }

    fn drain(&mut self, way: Direction) {
        loop {
            let sender = match way {
                Direction::Up => &mut self.client,
                Direction::Down => &mut self.server,
            };
            let Some(segment) = sender.poll_transmit(self.now) else {
                return;
            };
            let count = &mut self.counts[usize::from(way == Direction::Down)];
            let number = std::mem::replace(count, *count + 1);
            let seen = self.trace.len();
            let (at, copy) = (self.now, segment.clone());
            self.trace.push(TracedPacket {
                at,
                way,
                segment: copy,
                arrives: None,
            });
            if !(self.takes)(way, number, &segment) {
                let len_bytes = segment.ip_len_bytes();
                let outcome = self
                    .path
                    .offer(self.now, way, FlowKey::default(), len_bytes);
                self.follow(way, outcome, segment, seen);
                self.follow_departures();
            }
        }
    }

    fn follow(&mut self, way: Direction, verdict: PathOutcome, segment: Segment, seen: usize) {
        match verdict {
            PathOutcome::Arrives(at) => {
                self.trace[seen].arrives = Some(at);
                self.schedule(at, way, Event::Arrival(segment));
            }
            PathOutcome::NextPass(transit) => {
                self.schedule(transit.at(), way, Event::Again(transit, segment, seen));
            }
            PathOutcome::Waits(ticket) => {
                self.waiting.insert(ticket, (way, segment, seen));
            }
            PathOutcome::QueueDrop | PathOutcome::Lost => {}
        }
    }

    fn follow_departures(&mut self) {
        while let Some(departure) = self.path.poll_departure(self.now) {
            let waited = self.waiting.remove(&departure.ticket);
            let (way, segment, seen) = waited.expect("it waits");
            self.follow(way, departure.outcome, segment, seen);
        }
    }

    fn schedule(&mut self, at: Instant, way: Direction, event: Event) {
        let id = self.events.len() as u64;
        self.events.push(Some((way, event)));
        self.queue.push(Reverse((at, id)));
    }

    /// Packets of one direction.
    pub(crate) fn sent(&self, way: Direction) -> impl Iterator<Item = &TracedPacket> {
        self.trace.iter().filter(move |seen| seen.way == way)
    }

    /// A hash of all packets, times and bytes.
    pub(crate) fn trace_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for seen in &self.trace {
            let Segment {
                seq,
                ack,
                window_bytes,
                payload,
                ..
            } = &seen.segment;
            (
                seen.at,
                seen.way,
                seen.arrives,
                seq,
                ack,
                window_bytes,
                payload,
            )
                .hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// A byte of a stream that depends on its offset.
pub(crate) fn pattern(offset: usize) -> u8 {
    (offset % 251) as u8
}

/// A request of `request` bytes and a response of `answer` bytes; both sides close when they are done.
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) request: usize,
    pub(crate) answer: usize,
    pub(crate) requested: usize,
    pub(crate) request_received: usize,
    pub(crate) answered: usize,
    pub(crate) received: usize,
    /// When the last byte of the response was read.
    pub(crate) done_at: Option<Instant>,
    /// The first wrong byte.
    pub(crate) wrong: Option<usize>,
    pub(crate) closes: bool,
    pub(crate) both_closed: bool,
}

impl Download {
    pub(crate) fn new(request: usize, answer: usize) -> Self {
        Self {
            request,
            answer,
            requested: 0,
            request_received: 0,
            answered: 0,
            received: 0,
            done_at: None,
            wrong: None,
            closes: false,
            both_closed: false,
        }
    }

    pub(crate) fn closing(self) -> Self {
        Self {
            closes: true,
            ..self
        }
    }
}

fn write_some(now: Instant, tcp: &mut Tcp, from: usize, until: usize) -> usize {
    let room = tcp.send_capacity().min(until - from);
    // One byte more than it takes, if there is one: only a writer that finds no space makes the buffer grow.
    let bytes: Vec<u8> = (from..until).map(pattern).take(room + 1).collect();
    let taken = tcp.write(now, &bytes);
    assert_eq!(taken, room, "write takes what send_capacity reports");
    taken
}

impl Apps for Download {
    fn client(&mut self, now: Instant, tcp: &mut Tcp) {
        self.requested += write_some(now, tcp, self.requested, self.request);
        loop {
            let bytes = tcp.read(now, usize::MAX);
            if bytes.is_empty() {
                break;
            }
            for byte in bytes {
                if byte != pattern(self.received) && self.wrong.is_none() {
                    self.wrong = Some(self.received);
                }
                self.received += 1;
            }
        }
        if self.received == self.answer && self.answer > 0 && self.done_at.is_none() {
            self.done_at = Some(now);
        }
        if self.closes && (tcp.is_read_closed() || self.done_at.is_some()) {
            tcp.close(now);
        }
        self.both_closed |= tcp.is_closed();
    }

    fn server(&mut self, now: Instant, tcp: &mut Tcp) {
        loop {
            let bytes = tcp.read(now, usize::MAX);
            if bytes.is_empty() {
                break;
            }
            self.request_received += bytes.len();
        }
        if self.request_received == self.request && tcp.is_established() {
            self.answered += write_some(now, tcp, self.answered, self.answer);
            if self.answered == self.answer && self.closes {
                tcp.close(now);
            }
        }
    }

    fn is_done(&self) -> bool {
        if self.closes {
            self.both_closed && self.done_at.is_some()
        } else {
            self.done_at.is_some()
        }
    }
}
