//! A path between a client's side and the servers' side: the pipes that a packet passes, and the effects on it.
//!
//! ```text
//! two pipes            client -> [up]   -> loss -> delay -> server
//!                      client <- delay  <- loss <- [down] <- server
//!
//! one shared pipe,     client -> [pipe] -> delay/2 -> [pipe] -> loss -> delay/2 -> server
//! two passes           client <- delay/2 <- loss <- [pipe] <- delay/2 <- [pipe] <- server
//! ```
//!
//! The second is the laboratory of Lulic 2013: a dummynet rule that matches every packet on a gateway matches it when it enters and
//! again when it leaves, and both directions share one pipe. So the true round trip is four times the configured delay, and the
//! capacity of one direction is at most half the bandwidth.
//!
//! A packet that must pass a pipe again competes with packets that arrived in between, so its outcome is not known at once:
//! [`Path::offer`] returns [`PathOutcome::NextPass`], and the caller passes the [`Transit`] back at its time.
//!
//! The outcome of a packet in a managed queue (CoDel, FQ-CoDel) is not known at once either: [`Path::offer`] returns
//! [`PathOutcome::Waits`]. The caller calls [`Path::poll_departure`] after each offer and at [`Path::poll_timeout`].

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_clock::Instant;

use crate::loss::{Loss, LossModel};
use crate::pipe::{Pipe, PipeDeparture, PipeOutcome};
use crate::queue::{FlowKey, QueueConfig, Ticket, WaitingPacket};
use crate::rng::{Purpose, RandomStream};
use crate::wire::{LinkRate, Wire};

/// A direction, as seen from the client.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Direction {
    /// From the client to a server.
    Up,
    /// From a server to the client.
    Down,
}

impl Direction {
    /// The other direction.
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// The outcome of a packet that was offered to the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum PathOutcome {
    /// It arrives at this time.
    Arrives(Instant),
    /// It is in transit to a pipe that it must pass again: call [`Path::offer_again`] at [`Transit::at`], in order with all other
    /// calls. A path of two pipes never returns it.
    NextPass(Transit),
    /// It waits in a queue: [`Path::poll_departure`] returns its outcome later, with this ticket. Only a managed queue returns it.
    Waits(Ticket),
    /// The queue dropped it: it was full, or the packet was too late for CoDel.
    QueueDrop,
    /// It was lost at random.
    Lost,
}

/// The outcome of a packet that waited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Departure {
    /// The ticket of [`PathOutcome::Waits`].
    pub ticket: Ticket,
    /// Its outcome; never [`PathOutcome::Waits`].
    pub outcome: PathOutcome,
}

/// A packet before a pipe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transit {
    at: Instant,
    way: Direction,
    flow: FlowKey,
    len_bytes: usize,
    remaining_passes: u32,
}

impl Transit {
    /// When it reaches the pipe.
    #[must_use]
    pub const fn at(&self) -> Instant {
        self.at
    }

    /// Its direction.
    #[must_use]
    pub const fn way(&self) -> Direction {
        self.way
    }
}

/// Topology of the pipes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Topology {
    /// One pipe up and one down; a packet passes one of them, once.
    #[default]
    TwoPipes,
    /// One pipe that every packet of both directions passes `passes` times.
    Shared {
        /// Number of passes, at least 1.
        passes: u32,
    },
}

impl Topology {
    /// Number of pipe passes of a packet.
    #[must_use]
    pub const fn passes(self) -> u32 {
        match self {
            Self::TwoPipes => 1,
            Self::Shared { passes } => passes,
        }
    }
}

/// Settings of a path.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathConfig {
    /// Capacity from the client.
    pub up: LinkRate,
    /// Capacity to the client; equal to `up` if the pipe is shared.
    pub down: LinkRate,
    /// Round-trip propagation delay, without serialisation and queues. Each direction has half of it, uplink the odd nanosecond; each
    /// pass of a shared pipe has an equal part.
    pub rtt: Duration,
    /// Delay added to each packet, evenly distributed from zero to this.
    pub jitter: Duration,
    /// Whether jitter may let a packet overtake another of its direction. If not, it arrives no earlier than its predecessor.
    pub reorder: bool,
    /// Loss of packets from the client, after the bottleneck.
    pub loss_up: LossModel,
    /// Loss of packets to the client, after the bottleneck.
    pub loss_down: LossModel,
    /// Each pipe's queue.
    pub queue: QueueConfig,
    /// Topology of the pipes.
    pub topology: Topology,
    /// Timer that serves the pipes, as in a kernel: packets leave them at its ticks, counted from the origin of the clock. Zero: as
    /// soon as they are sent, as a managed queue and a trace require.
    pub tick: Duration,
}

impl PathConfig {
    /// Two pipes of these rates in bits per second, at least 1, and this round trip: no loss, no jitter, the default queue.
    #[must_use]
    pub const fn new(up_bps: u64, down_bps: u64, rtt: Duration) -> Self {
        Self {
            up: LinkRate::Bps(up_bps),
            down: LinkRate::Bps(down_bps),
            rtt,
            jitter: Duration::ZERO,
            reorder: false,
            loss_up: LossModel::None,
            loss_down: LossModel::None,
            queue: QueueConfig::DEFAULT,
            topology: Topology::TwoPipes,
            tick: Duration::ZERO,
        }
    }

    /// True with loss or jitter. Without them the path is the same for every seed: no queue and no trace depends on it.
    #[must_use]
    pub fn is_random(&self) -> bool {
        let lossless = [self.loss_up, self.loss_down] == [LossModel::None; 2];
        !(lossless && self.jitter.is_zero())
    }
}

/// Loss and delay of one direction, after the pipes.
#[derive(Clone, Debug)]
struct Impairments {
    loss: Loss,
    jitter: RandomStream,
    /// Propagation of the whole direction, nanoseconds.
    delay_ns: u64,
    last_arrival: Instant,
}

/// The path itself, with its queues and its seeded randomness.
#[derive(Clone, Debug)]
pub struct Path {
    /// Up and down, or only the shared one.
    pipes: Vec<Pipe>,
    up: Impairments,
    down: Impairments,
    jitter_ns: u64,
    reorder: bool,
    passes: u32,
    /// Packets in managed queues.
    waiting: BTreeMap<Ticket, Transit>,
    next_ticket: u64,
}

impl Path {
    /// An idle path. `seed` decides every loss and every jitter.
    ///
    /// # Panics
    ///
    /// If a rate is zero, `passes` is zero, a shared pipe has two rates, or a managed queue or a trace has a timer.
    #[must_use]
    pub fn new(config: &PathConfig, seed: u64) -> Self {
        let pipe = |rate| {
            let wire = Wire::new(rate)
                .unwrap_or_else(|| panic!("rate is 0, expected at least 1 bps: {config:?}"));
            let is_timed = matches!(wire, Wire::Constant(_)) || config.tick.is_zero();
            assert!(is_timed, "a trace has no timer: {config:?}");
            Pipe::new(wire, config.queue, config.tick)
        };
        let pipes = match config.topology {
            Topology::TwoPipes => vec![pipe(&config.up), pipe(&config.down)],
            Topology::Shared { passes } => {
                assert!(passes > 0, "passes is 0, expected at least 1: {config:?}");
                assert_eq!(
                    config.up, config.down,
                    "both rates of a shared pipe must be equal"
                );
                vec![pipe(&config.down)]
            }
        };
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let rtt_ns = nanos(config.rtt);
        let direction = |model, delay_ns, loss, jitter| Impairments {
            loss: Loss::new(model, RandomStream::new(seed, loss)),
            jitter: RandomStream::new(seed, jitter),
            delay_ns,
            last_arrival: Instant::ZERO,
        };
        let (up, down) = (rtt_ns - rtt_ns / 2, rtt_ns / 2);
        Self {
            pipes,
            up: direction(config.loss_up, up, Purpose::LossUp, Purpose::JitterUp),
            down: direction(
                config.loss_down,
                down,
                Purpose::LossDown,
                Purpose::JitterDown,
            ),
            jitter_ns: nanos(config.jitter),
            reorder: config.reorder,
            passes: config.topology.passes(),
            waiting: BTreeMap::new(),
            next_ticket: 0,
        }
    }

    /// Offers a packet of `flow` and `len_bytes` (IP header included) at `now`. Calls come in order of `now`.
    pub fn offer(
        &mut self,
        now: Instant,
        way: Direction,
        flow: FlowKey,
        len_bytes: usize,
    ) -> PathOutcome {
        for pipe in &mut self.pipes {
            pipe.begin(now);
        }
        self.pass(Transit {
            at: now,
            way,
            flow,
            len_bytes,
            remaining_passes: self.passes,
        })
    }

    /// Offers a packet to the pipe that it must pass once more, at its [`Transit::at`].
    pub fn offer_again(&mut self, transit: Transit) -> PathOutcome {
        self.pass(transit)
    }

    /// When [`poll_departure`](Self::poll_departure) returns the next packet, if no other is offered before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.pipes.iter().filter_map(Pipe::poll_timeout).min()
    }

    /// The next waiting packet that leaves its queue by `now`, or is dropped. Calls come in order of `now`, with those of
    /// [`offer`](Self::offer).
    pub fn poll_departure(&mut self, now: Instant) -> Option<Departure> {
        let departure = self
            .pipes
            .iter_mut()
            .find_map(|it| it.poll_departure(now))?;
        let PipeDeparture {
            ticket, departs, ..
        } = departure;
        let transit = self.waiting.remove(&ticket);
        let transit = transit.expect("a pipe returns each packet that waits in it once");
        let outcome = departs.map_or(PathOutcome::QueueDrop, |at| self.leave_pipe(transit, at));
        Some(Departure { ticket, outcome })
    }

    /// True if a packet offered at `now` would wait behind another in its first pipe.
    #[must_use]
    pub fn is_busy(&self, now: Instant, way: Direction) -> bool {
        self.pipes[self.pipe_of(way)].is_busy(now)
    }

    const fn pipe_of(&self, way: Direction) -> usize {
        match way {
            Direction::Down if self.pipes.len() == 2 => 1,
            _ => 0,
        }
    }

    fn pass(&mut self, transit: Transit) -> PathOutcome {
        let ticket = Ticket(self.next_ticket);
        let packet = WaitingPacket {
            ticket,
            flow: transit.flow,
            len_bytes: transit.len_bytes,
            since: transit.at,
        };
        let pipe = self.pipe_of(transit.way);
        match self.pipes[pipe].offer(packet) {
            PipeOutcome::Departs(at) => self.leave_pipe(transit, at),
            PipeOutcome::Dropped => PathOutcome::QueueDrop,
            PipeOutcome::Waits => {
                self.next_ticket += 1;
                self.waiting.insert(ticket, transit);
                PathOutcome::Waits(ticket)
            }
        }
    }

    /// The outcome of a packet that leaves a pipe at `departed_at`.
    fn leave_pipe(&mut self, transit: Transit, departed_at: Instant) -> PathOutcome {
        let Transit {
            way,
            remaining_passes,
            ..
        } = transit;
        let direction = match way {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        let (share, last_share) = {
            let share = direction.delay_ns / u64::from(self.passes);
            (
                share,
                direction.delay_ns - share * u64::from(self.passes - 1),
            )
        };
        if remaining_passes > 1 {
            let at = departed_at + Duration::from_nanos(share);
            return PathOutcome::NextPass(Transit {
                at,
                remaining_passes: remaining_passes - 1,
                ..transit
            });
        }
        // One random number for each packet, when it leaves its last pipe.
        if direction.loss.is_next_lost() {
            return PathOutcome::Lost;
        }
        let jitter = match self.jitter_ns {
            0 => 0,
            most => direction.jitter.below(most.saturating_add(1)),
        };
        let mut arrives = departed_at + Duration::from_nanos(last_share.saturating_add(jitter));
        if !self.reorder {
            arrives = arrives.max(direction.last_arrival);
            direction.last_arrival = arrives;
        }
        PathOutcome::Arrives(arrives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Probability;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn two_pipes_add_serialisation_to_half_the_round_trip() {
        let mut path = Path::new(&PathConfig::new(500_000, 2_000_000, 100 * MS), 0);
        let at = |ms| PathOutcome::Arrives(Instant::from_millis(ms));
        assert_eq!(
            path.offer(Instant::ZERO, Direction::Down, FlowKey::default(), 1_500),
            at(6 + 50)
        );
        assert_eq!(
            path.offer(Instant::ZERO, Direction::Up, FlowKey::default(), 1_500),
            at(24 + 50)
        );
        assert_eq!(
            path.offer(Instant::ZERO, Direction::Down, FlowKey::default(), 1_500),
            at(12 + 50)
        );
    }

    #[test]
    fn two_passes_through_one_pipe_make_four_delays_of_a_round_trip() {
        // Label 10 ms: 40 ms of true round trip.
        let config = PathConfig {
            topology: Topology::Shared { passes: 2 },
            ..PathConfig::new(1_000_000, 1_000_000, 40 * MS)
        };
        let mut path = Path::new(&config, 0);
        let PathOutcome::NextPass(first) =
            path.offer(Instant::ZERO, Direction::Up, FlowKey::default(), 125)
        else {
            panic!("one pass");
        };
        assert_eq!(first.at(), Instant::from_millis(1 + 10));
        // A packet of the other direction is in the pipe when the first returns to it.
        let other = path.offer(
            Instant::from_millis(11),
            Direction::Down,
            FlowKey::default(),
            125,
        );
        assert!(matches!(other, PathOutcome::NextPass(_)));
        assert_eq!(
            path.offer_again(first),
            PathOutcome::Arrives(Instant::from_millis(13 + 10))
        );
    }

    #[test]
    fn jitter_reorders_packets_only_if_reordering_is_on() {
        let mut config = PathConfig::new(1_000_000_000, 1_000_000_000, 10 * MS);
        config.jitter = 5 * MS;
        let arrivals = |config: &PathConfig| -> Vec<Instant> {
            let mut path = Path::new(config, 3);
            (0..100)
                .map(|us| {
                    match path.offer(
                        Instant::from_micros(us),
                        Direction::Up,
                        FlowKey::default(),
                        100,
                    ) {
                        PathOutcome::Arrives(at) => at,
                        other => panic!("{other:?}"),
                    }
                })
                .collect()
        };
        let ordered = arrivals(&config);
        assert!(ordered.is_sorted());
        assert!(
            *ordered.last().unwrap() > Instant::from_millis(9),
            "jitter adds up to 5 ms"
        );
        config.reorder = true;
        assert!(!arrivals(&config).is_sorted());
    }

    #[test]
    fn loss_of_one_direction_does_not_move_the_other() {
        let lossy = |up| {
            let one = LossModel::bernoulli(Probability::from_ppb(100_000_000).unwrap());
            let loss_up = if up { one } else { LossModel::None };
            let config = PathConfig {
                loss_up,
                loss_down: one,
                ..PathConfig::new(1 << 30, 1 << 30, MS)
            };
            let mut path = Path::new(&config, 5);
            (0..200)
                .map(|us| {
                    let now = Instant::from_micros(us);
                    let _ = path.offer(now, Direction::Up, FlowKey::default(), 40);
                    path.offer(now, Direction::Down, FlowKey::default(), 40)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(lossy(true), lossy(false));
        assert!(lossy(true).contains(&PathOutcome::Lost));
    }
}
