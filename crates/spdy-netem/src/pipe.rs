//! One pipe: a queue, followed by a rate limit. It is the first part of a bottleneck.
//!
//! ```text
//! offer -> | room in the queue? | -> | serialiser | -> departure
//!             no: dropped
//! ```
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

use std::time::Duration;

use spdy_clock::Instant;

use crate::queue::{DropTail, QueueLimit};
use crate::rate::{Bitrate, Serialiser};

/// A queue and a serialiser behind it.
#[derive(Clone, Debug)]
pub struct Pipe {
    queue: DropTail,
    wire: Serialiser,
    /// Period of the timer, nanoseconds; 0 without a timer.
    tick_ns: u64,
}

impl Pipe {
    /// Creates an idle pipe with a timer of this `tick`, or without one if that is zero.
    #[must_use]
    pub fn new(rate: Bitrate, queue: QueueLimit, tick: Duration) -> Self {
        Self {
            queue: DropTail::new(queue),
            wire: Serialiser::new(rate),
            tick_ns: u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Departure time of a packet of `len_bytes` offered at `now`; `None` if the queue was full. Calls are in order of `now`.
    pub fn offer(&mut self, now: Instant, len_bytes: usize) -> Option<Instant> {
        if !self.queue.has_room(now, len_bytes) {
            return None;
        }
        let leaves = match self.tick_ns {
            0 => self.wire.depart(now, len_bytes),
            tick_ns => {
                let tick_before = Instant::from_nanos(now.as_nanos() / tick_ns * tick_ns);
                let sent = self.wire.depart(tick_before, len_bytes).as_nanos();
                Instant::from_nanos(sent.div_ceil(tick_ns).saturating_mul(tick_ns))
            }
        };
        self.queue.push(leaves, len_bytes);
        Some(leaves)
    }

    /// True if a packet offered at `now` would wait behind another.
    #[must_use]
    pub const fn is_busy(&self, now: Instant) -> bool {
        self.wire.is_busy(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departures(tick_ms: u64, offers: &[(u64, usize)]) -> Vec<u64> {
        // A byte a microsecond: 1,000 bytes take 1 ms.
        let rate = Bitrate::from_bps(8_000_000).expect("the rate is not zero");
        let tick = Duration::from_millis(tick_ms);
        let mut pipe = Pipe::new(rate, QueueLimit::Packets(50), tick);
        let offer = |&(us, len_bytes): &(u64, usize)| {
            let departed_at = pipe.offer(Instant::from_micros(us), len_bytes);
            departed_at.expect("the queue has room").as_micros()
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
