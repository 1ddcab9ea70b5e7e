//! One connection at 10 Mbit/s: a download whose packets a test may drop.

use spdy_clock::Instant;
use spdy_netem::path::{Direction, PathConfig};
use spdy_netem::segment::Segment;
use spdy_netem::tcp::{Tcp, TcpConfig};

use super::{Apps, Download, MS, TracedPacket, World, at_ms};

/// 10 Mbps both ways.
pub(crate) fn path(rtt_ms: u32) -> PathConfig {
    PathConfig::new(10_000_000, 10_000_000, MS * rtt_ms)
}

/// The same TCP at both ends.
pub(crate) fn world(path: &PathConfig, tcp: TcpConfig) -> World {
    World::new(path, 0, tcp, tcp)
}

/// A download of `answer` bytes with `takes` dropping packets; it must complete.
pub(crate) fn download(
    path: &PathConfig,
    tcp: TcpConfig,
    answer: usize,
    takes: impl FnMut(Direction, usize, &Segment) -> bool + 'static,
) -> (World, Download) {
    let mut world = world(path, tcp);
    world.takes = Box::new(takes);
    let mut apps = Download::new(100, answer);
    world.run(&mut apps, at_ms(3_600_000));
    // The last acknowledgements are still in transit.
    let end = world.now + 2_000 * MS;
    world.run_out(&mut apps, end);
    assert_eq!(apps.wrong, None);
    assert_eq!(apps.received, answer, "{:?}", world.server);
    (world, apps)
}

/// Drops the `copies` first copies of the full data segments with these numbers, from 0.
pub(crate) fn drop_data(
    numbers: std::ops::RangeInclusive<usize>,
    copies: usize,
) -> impl FnMut(Direction, usize, &Segment) -> bool {
    let mut seen = std::collections::BTreeMap::new();
    move |way, _, segment| {
        let number = (segment.seq as usize - usize::from(segment.seq > 0)) / 1_448;
        if way == Direction::Up || segment.payload.is_empty() || !numbers.contains(&number) {
            return false;
        }
        let copy: &mut usize = seen.entry(number).or_default();
        *copy += 1;
        *copy <= copies
    }
}

/// Packets of the server with data.
pub(crate) fn data(world: &World) -> impl Iterator<Item = &TracedPacket> {
    world
        .sent(Direction::Down)
        .filter(|seen| !seen.segment.payload.is_empty())
}

/// In milliseconds of virtual time.
pub(crate) fn times_ms(sent: impl Iterator<Item = Instant>) -> Vec<u64> {
    sent.map(|at| at.as_nanos() / 1_000_000).collect()
}

/// Applications that do nothing by themselves.
#[derive(Default)]
pub(crate) struct Silent;

impl Apps for Silent {
    fn client(&mut self, _: Instant, _: &mut Tcp) {}
    fn server(&mut self, _: Instant, _: &mut Tcp) {}
    fn is_done(&self) -> bool {
        false
    }
}

/// The server writes `answer` bytes at once; the client begins to read at `reads_from`.
pub(crate) struct SlowReader {
    answer: usize,
    written: usize,
    /// Bytes that the client has read.
    pub(crate) read: usize,
    reads_from: Instant,
}

impl SlowReader {
    pub(crate) fn new(answer: usize, reads_from: Instant) -> Self {
        Self {
            answer,
            written: 0,
            read: 0,
            reads_from,
        }
    }
}

impl Apps for SlowReader {
    fn client(&mut self, now: Instant, tcp: &mut Tcp) {
        while now >= self.reads_from && tcp.readable_bytes() > 0 {
            self.read += tcp.read(now, 10_000).len();
        }
    }

    fn server(&mut self, now: Instant, tcp: &mut Tcp) {
        self.written += tcp.write(now, &vec![7; self.answer - self.written]);
    }

    fn is_done(&self) -> bool {
        self.read == self.answer
    }

    fn next_wake(&self) -> Option<Instant> {
        (self.read < self.answer && self.written > 0)
            .then_some(self.reads_from)
            .filter(|_| self.read == 0)
    }
}

/// Two responses of 100 kB, the second at `resumes_at`.
pub(crate) struct Twice {
    pub(crate) written: usize,
    pub(crate) read: usize,
    /// When the second half is written.
    pub(crate) resumes_at: Instant,
    /// Maximum size of one write, bytes.
    pub(crate) part_bytes: usize,
}

impl Apps for Twice {
    fn client(&mut self, now: Instant, tcp: &mut Tcp) {
        while tcp.readable_bytes() > 0 {
            self.read += tcp.read(now, usize::MAX).len();
        }
    }

    fn server(&mut self, now: Instant, tcp: &mut Tcp) {
        let until = if now < self.resumes_at {
            100_000
        } else {
            200_000
        };
        for part in vec![7; until - self.written].chunks(self.part_bytes) {
            self.written += tcp.write(now, part);
        }
    }

    fn is_done(&self) -> bool {
        self.read == 200_000
    }

    fn next_wake(&self) -> Option<Instant> {
        (self.written == 100_000 && self.read == 100_000).then_some(self.resumes_at)
    }
}
