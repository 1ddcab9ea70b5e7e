//! The emulator between two devices: a packet enters when it was read, and leaves when it is due.
//!
//! ```text
//!  offer(now, way, packet) -> Path: queue, rate, loss, delay -> due, or dropped
//!  poll_timeout()          -> when the next one is due
//!  poll_delivery(now)      -> what is due by now, in order     -> handle_written(delivery, when)
//! ```
//!
//! All results are computed from nominal times, from reading to due, by the same [`Path`] as in virtual time. A late wake-up of the
//! surrounding thread delays a delivery and is measured, but does not accumulate in the link. A packet that passes a pipe a second
//! time also passes it at its nominal time, however late the emulator is polled, and so does a packet in a queue that decides when
//! the link is free.

use std::collections::BTreeMap;

use spdy_clock::Instant;
use spdy_netem::path::{Departure, Direction, Path, PathConfig, PathOutcome, Topology, Transit};
use spdy_netem::queue::Ticket;
use spdy_netem::wire::LinkRate;

use crate::capture::{Capture, DropReason};
use crate::flow::flow_of;
use crate::meter::Meter;
use crate::stats::LinkStats;

/// A packet in flight.
#[derive(Debug)]
struct InFlightPacket {
    way: Direction,
    packet: Vec<u8>,
    /// Present if it waits to pass a pipe a second time.
    transit: Option<Transit>,
    /// Bits that the bottleneck sent since the previous arriving packet; `None` if it was idle in between.
    bits_in_a_row: Option<u64>,
    /// Its index in the capture, if it is captured.
    captured: Option<usize>,
}

/// A packet in a queue that decides at departure.
#[derive(Debug)]
struct WaitingPacket {
    packet: InFlightPacket,
    /// The bottleneck was busy when it came.
    is_in_a_row: bool,
}

/// A packet that is due.
#[derive(Debug, Eq, PartialEq)]
#[must_use]
pub struct Delivery {
    /// When it is due.
    pub due: Instant,
    /// Direction of the packet.
    pub way: Direction,
    /// The packet's bytes, from the IP header on.
    pub packet: Vec<u8>,
    bits_in_a_row: Option<u64>,
    captured: Option<usize>,
}

/// A link with the packets in flight, and its statistics since it was created.
#[derive(Debug)]
pub struct Emulator {
    config: PathConfig,
    path: Path,
    /// By the time of their next step, then in the order of their reading.
    in_flight: BTreeMap<(Instant, u64), InFlightPacket>,
    waiting: BTreeMap<Ticket, WaitingPacket>,
    sequence: u64,
    up: Meter,
    down: Meter,
    began: Instant,
    capture: Option<Capture>,
    /// When the first and the last packet were at the client.
    seen: Option<(Instant, Instant)>,
}

impl Emulator {
    /// An idle link at `now`. `seed` determines all random loss and jitter.
    ///
    /// # Panics
    ///
    /// Like [`Path::new`].
    #[must_use]
    pub fn new(config: &PathConfig, seed: u64, now: Instant) -> Self {
        Self {
            config: config.clone(),
            path: Path::new(config, seed),
            in_flight: BTreeMap::new(),
            waiting: BTreeMap::new(),
            sequence: 0,
            up: Meter::new(now),
            down: Meter::new(now),
            began: now,
            capture: None,
            seen: None,
        }
    }

    /// Counts from zero again. Packets in flight stay, and are then counted only where they arrive.
    pub fn restart_counts(&mut self, now: Instant) {
        (self.up, self.down) = (Meter::new(now), Meter::new(now));
        (self.began, self.seen) = (now, None);
    }

    /// Captures every packet that arrives from now on. Packets and their metadata take at most `limit_bytes`.
    pub fn start_capture(&mut self, limit_bytes: usize) {
        let _ = self.end_capture(); // discards a capture that was not ended
        self.capture = Some(Capture::new(limit_bytes));
    }

    /// The captured packets; empty if no capture was [started](Self::start_capture). Later packets are not included.
    #[must_use]
    pub fn end_capture(&mut self) -> Capture {
        // Packets in flight hold an index into this capture. Clear it, so that it does not point into a later capture.
        for in_flight in self.in_flight.values_mut() {
            in_flight.captured = None;
        }
        for waiting in self.waiting.values_mut() {
            waiting.packet.captured = None;
        }
        self.capture.take().unwrap_or_default()
    }

    /// Offers a packet that was read at `now`. Calls are in order of `now`.
    pub fn offer(&mut self, now: Instant, way: Direction, packet: &[u8]) {
        self.run_pipes(now);
        if way == Direction::Up {
            self.note_client_packet(now);
        }
        // The share of one direction in a shared pipe is not the pipe's rate, and a trace has no constant rate.
        let rate = match way {
            Direction::Up => &self.config.up,
            Direction::Down => &self.config.down,
        };
        let has_own_rate =
            self.config.topology == Topology::TwoPipes && matches!(rate, LinkRate::Bps(_));
        let is_in_a_row = has_own_rate && self.path.is_busy(now, way);
        let outcome = self.path.offer(now, way, flow_of(packet), packet.len());
        self.meter(way).count_offered();
        let captured = self.capture.as_mut();
        let packet = InFlightPacket {
            way,
            captured: captured.and_then(|capture| capture.read(now, way, packet)),
            packet: packet.to_vec(),
            transit: None,
            bits_in_a_row: None,
        };
        self.follow_first_pass(outcome, is_in_a_row, packet);
        self.run_pipes(now);
    }

    /// When the next packet is due, must pass a pipe again, or leaves a queue.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let in_flight = self.in_flight.first_key_value().map(|((at, _), _)| *at);
        let times = [in_flight, self.path.poll_timeout()];
        times.into_iter().flatten().min()
    }

    /// The next packet that is due by `now`.
    pub fn poll_delivery(&mut self, now: Instant) -> Option<Delivery> {
        self.run_pipes(now);
        let first = self.in_flight.first_entry()?;
        let (due, _) = *first.key();
        if due > now {
            return None;
        }
        let InFlightPacket {
            way,
            packet,
            bits_in_a_row,
            captured,
            ..
        } = first.remove();
        Some(Delivery {
            due,
            way,
            packet,
            bits_in_a_row,
            captured,
        })
    }

    /// Records that `delivery` was written to the device at `now`; not `accepted` if the device rejected it.
    pub fn handle_written(&mut self, delivery: &Delivery, now: Instant, accepted: bool) {
        if let (Some(capture), Some(number)) = (&mut self.capture, delivery.captured) {
            match accepted {
                true => capture.written(number, now),
                false => capture.record_drop(number, DropReason::Refused),
            }
        }
        if accepted && delivery.way == Direction::Down {
            self.note_client_packet(now);
        }
        let meter = self.meter(delivery.way);
        if accepted {
            let len = delivery.packet.len();
            meter.count_delivered(delivery.due, now, len, delivery.bits_in_a_row);
        } else {
            meter.count_write_failure();
        }
    }

    /// Records that a packet was at the client.
    fn note_client_packet(&mut self, now: Instant) {
        let first = self.seen.map_or(now, |(first, _)| first);
        self.seen = Some((first, now));
    }

    /// Counts a packet that is not IPv4. It is not forwarded.
    pub fn handle_non_ipv4(&mut self, way: Direction) {
        self.meter(way).count_non_ipv4();
    }

    /// True if no packet is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.in_flight.is_empty() && self.waiting.is_empty()
    }

    /// The statistics so far.
    #[must_use]
    pub fn stats(&self, now: Instant) -> LinkStats {
        LinkStats {
            seconds: (now - self.began).as_secs_f64(),
            on_wire_ms: self
                .seen
                .map(|(first, last)| (last - first).as_nanos() as f64 / 1e6),
            waited_for_cpu_ms: None,
            up: self.up.stats(&self.config, Direction::Up),
            down: self.down.stats(&self.config, Direction::Down),
        }
    }

    const fn meter(&mut self, way: Direction) -> &mut Meter {
        match way {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// Follows a packet after its first pipe, or into its queue.
    fn follow_first_pass(
        &mut self,
        outcome: PathOutcome,
        is_in_a_row: bool,
        mut packet: InFlightPacket,
    ) {
        if let PathOutcome::Waits(ticket) = outcome {
            let waiting = WaitingPacket {
                packet,
                is_in_a_row,
            };
            self.waiting.insert(ticket, waiting);
            return;
        }
        let len_bytes = packet.packet.len();
        let meter = self.meter(packet.way);
        packet.bits_in_a_row = meter.follow_bottleneck(is_in_a_row, len_bytes, outcome);
        self.follow(outcome, packet);
    }

    fn follow(&mut self, outcome: PathOutcome, in_flight: InFlightPacket) {
        let (at, transit) = match outcome {
            PathOutcome::Arrives(due) => (due, None),
            PathOutcome::NextPass(transit) => (transit.at(), Some(transit)),
            PathOutcome::Waits(ticket) => {
                let waiting = WaitingPacket {
                    packet: in_flight,
                    is_in_a_row: false,
                };
                self.waiting.insert(ticket, waiting);
                return;
            }
            PathOutcome::QueueDrop => {
                self.note_dropped(&in_flight, DropReason::Queue);
                return self.meter(in_flight.way).count_queue_drop();
            }
            PathOutcome::Lost => {
                self.note_dropped(&in_flight, DropReason::Lost);
                return self.meter(in_flight.way).count_loss();
            }
        };
        self.sequence += 1;
        let in_flight = InFlightPacket {
            transit,
            ..in_flight
        };
        self.in_flight.insert((at, self.sequence), in_flight);
    }

    fn note_dropped(&mut self, in_flight: &InFlightPacket, by: DropReason) {
        if let (Some(capture), Some(number)) = (&mut self.capture, in_flight.captured) {
            capture.record_drop(number, by);
        }
    }

    /// Lets every packet that waits in a queue or for its second pipe until `now` pass it, each at its nominal time.
    fn run_pipes(&mut self, now: Instant) {
        loop {
            let mut due = self.in_flight.range(..=(now, u64::MAX));
            let again = due.find_map(|(key, in_flight)| Some((*key, in_flight.transit?)));
            let queued_at = self.path.poll_timeout().filter(|at| *at <= now);
            match (queued_at, again) {
                (None, None) => return,
                (Some(at), None) => self.follow_departures(at),
                (Some(at), Some(((again_at, _), _))) if at <= again_at => {
                    self.follow_departures(at);
                }
                (_, Some((key, transit))) => {
                    let in_flight = self
                        .in_flight
                        .remove(&key)
                        .expect("the key was found in the map");
                    let outcome = self.path.offer_again(transit);
                    self.follow(outcome, in_flight);
                }
            }
        }
    }

    fn follow_departures(&mut self, now: Instant) {
        while let Some(Departure { ticket, outcome }) = self.path.poll_departure(now) {
            let waiting = self.waiting.remove(&ticket);
            let WaitingPacket {
                packet,
                is_in_a_row,
            } = waiting.expect("each ticket has a packet");
            self.follow_first_pass(outcome, is_in_a_row, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use spdy_netem::loss::{LossModel, Probability};
    use spdy_netem::queue::QueueConfig;

    use super::*;
    use crate::capture::PacketOutcome;

    const MS: Duration = Duration::from_millis(1);

    /// Takes all deliveries, each at the time at which it is due.
    fn deliveries(emulator: &mut Emulator) -> Vec<Delivery> {
        let mut all = Vec::new();
        while let Some(at) = emulator.poll_timeout() {
            while let Some(delivery) = emulator.poll_delivery(at) {
                emulator.handle_written(&delivery, delivery.due, true);
                all.push(delivery);
            }
        }
        all
    }

    #[test]
    fn restarted_counts_have_only_what_follows() {
        let config = PathConfig::new(500_000, 2_000_000, 100 * MS);
        let mut emulator = Emulator::new(&config, 0, Instant::ZERO);
        emulator.offer(Instant::ZERO, Direction::Up, &[7; 1_500]);
        emulator.restart_counts(Instant::from_millis(1));
        let delivered = deliveries(&mut emulator);
        assert_eq!(delivered.len(), 1, "a packet in flight stays");
        let stats = emulator.stats(Instant::from_millis(101));
        assert_eq!((stats.up.offered, stats.up.packets), (0, 1));
        assert_eq!((stats.down.packets, stats.seconds), (0, 0.1));
    }

    #[test]
    fn a_packet_is_due_at_its_path_arrival_time() {
        let config = PathConfig::new(500_000, 2_000_000, 100 * MS);
        let mut emulator = Emulator::new(&config, 0, Instant::ZERO);
        emulator.offer(Instant::ZERO, Direction::Up, &[7; 1_500]);
        emulator.offer(Instant::ZERO, Direction::Down, &[8; 1_500]);
        let delivered: Vec<_> = deliveries(&mut emulator)
            .into_iter()
            .map(|it| (it.due, it.way, it.packet[0]))
            .collect();
        let at = Instant::from_millis;
        assert_eq!(
            delivered,
            [(at(56), Direction::Down, 8), (at(74), Direction::Up, 7)]
        );
        // The client sent at once, and got the answer after 56 ms; it does not see when its own packet arrived.
        assert_eq!(emulator.stats(at(80)).on_wire_ms, Some(56.0));
        let idle = Emulator::new(&config, 0, Instant::ZERO);
        assert_eq!(idle.stats(at(80)).on_wire_ms, None);
    }

    #[test]
    fn a_busy_link_measures_exactly_its_rate() {
        let config = PathConfig::new(1_000_000, 7_000_000, 10 * MS);
        let mut emulator = Emulator::new(&config, 0, Instant::ZERO);
        for _ in 0..100 {
            emulator.offer(Instant::ZERO, Direction::Down, &[0; 1_250]);
        }
        deliveries(&mut emulator);
        let down = emulator.stats(Instant::from_millis(200)).down;
        let rate = down.busy_bps.expect("the link was busy");
        assert!((rate / 7e6 - 1.0).abs() < 1e-6, "{rate} bps");
        assert_eq!((down.packets, down.bytes), (100, 125_000));
        assert_eq!(down.late_max_ms, 0.0);
    }

    #[test]
    fn losses_do_not_slow_the_measured_rate() {
        let config = PathConfig {
            loss_down: LossModel::bernoulli(
                Probability::from_ppb(200_000_000).expect("20 % is a probability"),
            ),
            ..PathConfig::new(1_000_000, 8_000_000, 10 * MS)
        };
        let mut emulator = Emulator::new(&config, 3, Instant::ZERO);
        for _ in 0..500 {
            emulator.offer(Instant::ZERO, Direction::Down, &[0; 1_000]);
        }
        deliveries(&mut emulator);
        let down = emulator.stats(Instant::from_millis(600)).down;
        assert!(down.lost > 50, "{down:?}");
        assert_eq!(down.packets + down.lost, 500);
        let rate = down.busy_bps.expect("the link was busy");
        assert!((rate / 8e6 - 1.0).abs() < 1e-6, "{rate} bps");
    }

    #[test]
    fn idle_time_is_not_part_of_the_measured_rate() {
        let config = PathConfig::new(1_000_000, 8_000_000, 10 * MS);
        let mut emulator = Emulator::new(&config, 3, Instant::ZERO);
        for ms in [0, 100, 200, 300] {
            for _ in 0..5 {
                emulator.offer(Instant::from_millis(ms), Direction::Down, &[0; 1_000]);
            }
            while emulator
                .poll_timeout()
                .is_some_and(|at| at < Instant::from_millis(ms + 90))
            {
                let at = emulator.poll_timeout().expect("a timer is set");
                let delivery = emulator.poll_delivery(at).expect("a packet is due");
                emulator.handle_written(&delivery, at, true);
            }
        }
        let down = emulator.stats(Instant::from_millis(400)).down;
        assert!(
            (down.busy_seconds - 0.016).abs() < 1e-9,
            "four gaps of 1 ms, four times: {down:?}"
        );
        assert!((down.busy_bps.expect("the link was busy") / 8e6 - 1.0).abs() < 1e-6);
    }

    #[test]
    fn lateness_is_measured_and_never_shifts_later_packets() {
        let config = PathConfig::new(1_000_000, 1_000_000, 20 * MS);
        let mut emulator = Emulator::new(&config, 0, Instant::ZERO);
        for _ in 0..3 {
            emulator.offer(Instant::ZERO, Direction::Up, &[0; 125]);
        }
        let late = Instant::from_millis(13);
        for due in [11, 12, 13] {
            let delivery = emulator.poll_delivery(late).expect("a packet is due");
            assert_eq!(delivery.due, Instant::from_millis(due));
            emulator.handle_written(&delivery, late, true);
        }
        let up = emulator.stats(late).up;
        assert_eq!((up.late_mean_ms, up.late_max_ms), (1.0, 2.0));
        assert_eq!(emulator.poll_delivery(late), None);
    }

    #[test]
    fn a_full_queue_and_a_refused_packet_are_counted_and_dropped() {
        let config = PathConfig {
            queue: QueueConfig::packets(2),
            ..PathConfig::new(8_000, 8_000, 2 * MS)
        };
        let mut emulator = Emulator::new(&config, 0, Instant::ZERO);
        for _ in 0..3 {
            emulator.offer(Instant::ZERO, Direction::Up, &[0; 100]);
        }
        let end = Instant::from_millis(1_000);
        let first = emulator.poll_delivery(end).expect("a packet is due");
        emulator.handle_written(&first, first.due, false);
        assert_eq!(deliveries(&mut emulator).len(), 1);
        let up = emulator.stats(end).up;
        assert_eq!(
            (up.offered, up.queue_drops, up.refused, up.packets),
            (3, 1, 1, 1)
        );
    }

    #[test]
    fn a_capture_has_arrival_and_outcome_of_every_packet() {
        let config = PathConfig {
            queue: QueueConfig::packets(2),
            ..PathConfig::new(8_000, 8_000_000, 2 * MS)
        };
        let mut emulator = Emulator::new(&config, 0, Instant::ZERO);
        emulator.offer(Instant::ZERO, Direction::Down, &[0; 100]);
        emulator.start_capture(10_000);
        for number in 1..4 {
            emulator.offer(Instant::from_millis(1), Direction::Up, &[number; 100]);
        }
        emulator.offer(Instant::from_millis(2), Direction::Down, &[4; 100]);
        emulator.offer(Instant::from_millis(2), Direction::Down, &[5; 100]);
        let end = Instant::from_millis(900);
        let mut number = 0;
        while let Some(delivery) = emulator.poll_delivery(end) {
            emulator.handle_written(&delivery, delivery.due, number != 1);
            number += 1;
        }
        let at = Instant::from_millis;
        let capture = emulator.end_capture();
        let fields =
            |it: &crate::capture::CapturedPacket| (it.packet[0], it.way, it.read, it.outcome);
        let outcomes: Vec<_> = capture.packets().iter().map(fields).collect();
        assert_eq!(
            outcomes,
            [
                (1, Direction::Up, at(1), PacketOutcome::Delivered(at(102))),
                (2, Direction::Up, at(1), PacketOutcome::Delivered(at(202))),
                (
                    3,
                    Direction::Up,
                    at(1),
                    PacketOutcome::Dropped(DropReason::Queue)
                ),
                (
                    4,
                    Direction::Down,
                    at(2),
                    PacketOutcome::Dropped(DropReason::Refused)
                ),
                (
                    5,
                    Direction::Down,
                    at(2),
                    PacketOutcome::Delivered(at(3) + Duration::from_micros(200))
                ),
            ]
        );
        assert_eq!(capture.left_out(), 0);
        emulator.offer(end, Direction::Up, &[6; 100]);
        assert_eq!(emulator.end_capture().packets().len(), 0);
    }

    proptest! {
        /// How often it is polled makes no difference to the outcome.
        #[test]
        fn lateness_never_changes_a_packets_outcome(
            gaps_us in prop::collection::vec(0u64..3_000, 1..60),
            lens in prop::collection::vec(40usize..1_500, 60),
            poll_every in 1usize..20,
            shared in any::<bool>(),
            queue in prop_oneof![
                Just(QueueConfig::packets(8)), Just(QueueConfig::CoDel), Just(QueueConfig::FqCoDel),
            ],
        ) {
            let topology = if shared { Topology::Shared { passes: 2 } } else { Topology::TwoPipes };
            let config = PathConfig {
                topology,
                queue,
                loss_up: LossModel::bernoulli(Probability::from_ppb(100_000_000).expect("10 % is a probability")),
                ..PathConfig::new(2_000_000, 2_000_000, 8 * MS)
            };
            let run = |poll_every: usize| {
                let mut emulator = Emulator::new(&config, 5, Instant::ZERO);
                let (mut now, mut delivered) = (Instant::ZERO, Vec::new());
                for (number, gap) in gaps_us.iter().enumerate() {
                    now += Duration::from_micros(*gap);
                    let way = if number % 3 == 0 { Direction::Down } else { Direction::Up };
                    emulator.offer(now, way, &vec![number as u8; lens[number]]);
                    if number % poll_every == 0 {
                        while let Some(it) = emulator.poll_delivery(now) {
                            delivered.push((it.due, it.way, it.packet));
                        }
                    }
                }
                delivered.extend(deliveries(&mut emulator).into_iter().map(|it| (it.due, it.way, it.packet)));
                delivered
            };
            prop_assert_eq!(run(1), run(poll_every));
        }
    }
}
