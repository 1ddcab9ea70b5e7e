//! One pipe: a queue, followed by a link. It is the first part of a bottleneck.
//!
//! ```text
//! offer -> | room in the queue? | -> | link | -> departure          drop-tail
//!             no: dropped
//!
//! offer -> | packets wait | -> the link is free: | CoDel | -> | link | -> departure
//!                                                  too late: dropped
//! ```
//!
//! [`Pipe::offer`] returns the departure of a packet in a drop-tail queue at once. A packet in a managed queue waits, and
//! [`Pipe::poll_departure`] returns its outcome later.
//!
//! Loss, delay and jitter follow it and belong to a direction, not to a pipe: a shared pipe serves two directions. The path combines
//! them.
//!
//! A timer may serve a pipe, as in dummynet: every event of a packet then happens at one of its ticks.
//!
//! ```text
//! ticks            |         |         |         |
//! enters an idle pipe    x                             counts as arrived at the previous tick
//! its last bit         [-----------]                   duration of its bits
//! leaves                               x               at the next tick
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use spdy_clock::Instant;

use crate::queue::{DropTail, ManagedQueue, QueueConfig, Ticket, WaitingPacket};
use crate::wire::Wire;

/// A queue and a link behind it.
#[derive(Clone, Debug)]
pub struct Pipe {
    queue: PipeQueue,
    wire: Wire,
    /// Period of the timer, nanoseconds; 0 without a timer.
    tick_ns: u64,
}

#[derive(Clone, Debug)]
enum PipeQueue {
    DropTail(DropTail),
    Managed {
        queue: ManagedQueue,
        /// Decided packets that were not polled yet.
        decided: VecDeque<PipeDeparture>,
    },
}

/// The outcome of a packet that was offered to a pipe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PipeOutcome {
    /// It departs at this time.
    Departs(Instant),
    /// It waits, and [`Pipe::poll_departure`] returns it.
    Waits,
    /// The queue was full.
    Dropped,
}

/// A packet that waited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PipeDeparture {
    /// Its number.
    pub ticket: Ticket,
    /// When this was decided.
    pub decided_at: Instant,
    /// When it departs; `None` if the queue dropped it.
    pub departs: Option<Instant>,
}

impl Pipe {
    /// Creates an idle pipe with a timer of this `tick`, or without one if that is zero.
    ///
    /// # Panics
    ///
    /// If a managed queue has a timer.
    #[must_use]
    pub fn new(wire: Wire, queue: QueueConfig, tick: Duration) -> Self {
        let managed = |queue| {
            assert!(tick.is_zero(), "a managed queue has no timer");
            let decided = VecDeque::new();
            PipeQueue::Managed { queue, decided }
        };
        let queue = match queue {
            QueueConfig::DropTail(limit) => PipeQueue::DropTail(DropTail::new(limit)),
            QueueConfig::CoDel => managed(ManagedQueue::codel()),
            QueueConfig::FqCoDel => managed(ManagedQueue::fq_codel()),
        };
        Self {
            queue,
            wire,
            tick_ns: u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Notes that the first packet came to the path at `now`, if none came before.
    pub fn begin(&mut self, now: Instant) {
        self.wire.begin(now);
    }

    /// Offers a packet at its [`WaitingPacket::since`]. Calls are in order of time.
    pub fn offer(&mut self, packet: WaitingPacket) -> PipeOutcome {
        let (now, len_bytes) = (packet.since, packet.len_bytes);
        self.decide_until(now);
        let drop_tail = match &mut self.queue {
            PipeQueue::DropTail(queue) => queue,
            PipeQueue::Managed { queue, decided } => {
                let mut dropped = Vec::new();
                if queue.is_empty() {
                    if self.wire.next_start() <= now {
                        // The free link requested a packet, and there was none: flows and CoDel are idle, as in Linux.
                        queue.pop(now, &mut dropped);
                    }
                    self.wire.idle_until(now);
                }
                queue.push(packet, &mut dropped);
                decided.extend(dropped.into_iter().map(|ticket| drop_at(now, ticket)));
                return PipeOutcome::Waits;
            }
        };
        if !drop_tail.has_room(now, len_bytes) {
            return PipeOutcome::Dropped;
        }
        let departs = match self.tick_ns {
            0 => self.wire.depart(now, len_bytes),
            tick_ns => {
                let tick_before = Instant::from_nanos(now.as_nanos() / tick_ns * tick_ns);
                let sent = self.wire.depart(tick_before, len_bytes).as_nanos();
                Instant::from_nanos(sent.div_ceil(tick_ns).saturating_mul(tick_ns))
            }
        };
        drop_tail.push(departs, len_bytes);
        PipeOutcome::Departs(departs)
    }

    /// When [`poll_departure`](Self::poll_departure) returns the next packet.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let PipeQueue::Managed { queue, decided } = &self.queue else {
            return None;
        };
        match decided.front() {
            Some(departure) => Some(departure.decided_at),
            None => (!queue.is_empty()).then(|| self.wire.next_start()),
        }
    }

    /// The next waiting packet that the queue sends or drops by `now`.
    pub fn poll_departure(&mut self, now: Instant) -> Option<PipeDeparture> {
        self.decide_until(now);
        match &mut self.queue {
            PipeQueue::DropTail(_) => None,
            PipeQueue::Managed { decided, .. } => decided.pop_front(),
        }
    }

    /// Sends or drops every waiting packet that the link can take by `now`, each at its own time.
    fn decide_until(&mut self, now: Instant) {
        let PipeQueue::Managed { queue, decided } = &mut self.queue else {
            return;
        };
        let mut dropped = Vec::new();
        while !queue.is_empty() && self.wire.next_start() <= now {
            let start = self.wire.next_start();
            let sent = queue.pop(start, &mut dropped);
            decided.extend(dropped.drain(..).map(|ticket| drop_at(start, ticket)));
            if let Some(packet) = sent {
                decided.push_back(PipeDeparture {
                    ticket: packet.ticket,
                    decided_at: start,
                    departs: Some(self.wire.transmit(packet.len_bytes)),
                });
            }
        }
    }

    /// True if a packet offered at `now` would wait behind another.
    #[must_use]
    pub const fn is_busy(&self, now: Instant) -> bool {
        self.wire.is_busy(now)
    }
}

const fn drop_at(decided_at: Instant, ticket: Ticket) -> PipeDeparture {
    PipeDeparture {
        ticket,
        decided_at,
        departs: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::FlowKey;
    use crate::wire::LinkRate;

    fn departures(tick_ms: u64, offers: &[(u64, usize)]) -> Vec<u64> {
        // A byte a microsecond: 1,000 bytes take 1 ms.
        let wire = Wire::new(&LinkRate::Bps(8_000_000)).expect("the rate is not zero");
        let tick = Duration::from_millis(tick_ms);
        let mut pipe = Pipe::new(wire, QueueConfig::packets(50), tick);
        let offer = |&(us, len_bytes): &(u64, usize)| {
            let packet = WaitingPacket {
                ticket: Ticket(0),
                flow: FlowKey::default(),
                len_bytes,
                since: Instant::from_micros(us),
            };
            match pipe.offer(packet) {
                PipeOutcome::Departs(at) => at.as_micros(),
                other => panic!("{other:?}"),
            }
        };
        offers.iter().map(offer).collect()
    }

    #[test]
    fn a_timer_releases_packets_only_at_its_ticks() {
        let alone = [(100, 40), (19_900, 40), (50_000, 1_500)];
        assert_eq!(departures(0, &alone), [140, 19_940, 51_500]);
        // A packet that arrives at a tick waits for the next, because its bits take time.
        assert_eq!(departures(10, &alone), [10_000, 20_000, 60_000]);
        // Longer than a tick: as many ticks as its bits take, from the tick before its arrival.
        assert_eq!(departures(10, &[(9_000, 10_001)]), [20_000]);
    }

    #[test]
    fn a_timer_does_not_reduce_the_rate_of_a_busy_pipe() {
        let offers = vec![(0, 1_000); 40];
        let times = departures(10, &offers);
        assert_eq!(times.first(), Some(&10_000));
        assert_eq!(times.last(), Some(&40_000), "40 ms of work");
        assert_eq!(times.iter().filter(|time| **time == 20_000).count(), 10);
    }
}
