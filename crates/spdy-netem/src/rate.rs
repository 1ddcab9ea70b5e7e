//! Transmission times: a rate, and a serialiser that sends packets one by one.

use std::fmt;

use spdy_clock::Instant;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Bits per second; at least 1.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Bitrate(u64);

impl Bitrate {
    /// `bps` bits per second; `None` for zero, because a link that never sends is a mistake.
    #[must_use]
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
}

/// Prints in the syntax of profiles: `2mbit`, `384kbit`, `1500bit`.
impl fmt::Display for Bitrate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bps if bps % 1_000_000_000 == 0 => write!(f, "{}gbit", bps / 1_000_000_000),
            bps if bps % 1_000_000 == 0 => write!(f, "{}mbit", bps / 1_000_000),
            bps if bps % 1_000 == 0 => write!(f, "{}kbit", bps / 1_000),
            bps => write!(f, "{bps}bit"),
        }
    }
}

/// Sends packets one after the other: each leaves `bits / rate` after the later of its arrival and its predecessor's departure.
///
/// The fraction of a nanosecond of a division is carried to the next packet, so a busy link neither gains nor loses a bit over any
/// time. A departure is the first whole nanosecond at which the last bit has left.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: Bitrate,
    /// Departure of the last bit of the last packet, rounded down.
    busy_until_ns: u64,
    /// Remainder of the rounding, in 1/rate of a nanosecond.
    fraction: u64,
}

impl Serialiser {
    /// An idle serialiser of `rate`.
    #[must_use]
    pub const fn new(rate: Bitrate) -> Self {
        Self {
            rate,
            busy_until_ns: 0,
            fraction: 0,
        }
    }

    /// True if a packet that arrives at `now` would wait for another.
    #[must_use]
    pub const fn is_busy(&self, now: Instant) -> bool {
        // The last nanosecond may have begun and not ended.
        self.next_start().as_nanos() > now.as_nanos()
    }

    /// Departure time of a packet of `len_bytes` that is offered at `now`. Calls are in order of `now`.
    pub fn depart(&mut self, now: Instant, len_bytes: usize) -> Instant {
        self.idle_until(now);
        self.transmit(len_bytes)
    }

    /// Notes that no packet waited before `now`.
    pub const fn idle_until(&mut self, now: Instant) {
        if now.as_nanos() > self.busy_until_ns {
            (self.busy_until_ns, self.fraction) = (now.as_nanos(), 0);
        }
    }

    /// First instant at which a packet that waits can be sent.
    #[must_use]
    pub const fn next_start(&self) -> Instant {
        let has_fraction = self.fraction > 0;
        Instant::from_nanos(self.busy_until_ns.saturating_add(has_fraction as u64))
    }

    /// Departure time of a packet of `len_bytes` that is sent directly after its predecessor.
    pub fn transmit(&mut self, len_bytes: usize) -> Instant {
        let bps = u128::from(self.rate.0);
        let bits = len_bytes as u128 * 8;
        let work = bits * NANOS_PER_SECOND + u128::from(self.fraction);
        let whole = u64::try_from(work / bps).unwrap_or(u64::MAX);
        self.busy_until_ns = self.busy_until_ns.saturating_add(whole);
        self.fraction = (work % bps) as u64; // below a u64
        self.next_start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bps(bps: u64) -> Bitrate {
        Bitrate::from_bps(bps).expect("the rate is not zero")
    }

    #[test]
    fn a_packet_takes_its_bits_over_the_rate() {
        let mut wire = Serialiser::new(bps(2_000_000));
        assert_eq!(wire.depart(Instant::ZERO, 1_500), Instant::from_millis(6));
        assert_eq!(
            wire.depart(Instant::from_millis(1), 500),
            Instant::from_millis(8)
        );
        assert_eq!(
            wire.depart(Instant::from_millis(20), 500),
            Instant::from_millis(22)
        );
    }

    #[test]
    fn a_busy_link_carries_exactly_its_rate() {
        // 7 Mbps divides no packet evenly; 7,000 packets of 1,250 bytes are exactly 10 s.
        let mut wire = Serialiser::new(bps(7_000_000));
        let last = (0..7_000).map(|_| wire.depart(Instant::ZERO, 1_250)).last();
        assert_eq!(last, Some(Instant::from_millis(10_000)));
    }

    #[test]
    fn a_serialiser_is_busy_until_its_departure_time() {
        let mut wire = Serialiser::new(bps(3_000_000_000));
        assert!(!wire.is_busy(Instant::ZERO));
        assert_eq!(wire.depart(Instant::ZERO, 1), Instant::from_nanos(3));
        assert!(wire.is_busy(Instant::from_nanos(2)));
        assert!(!wire.is_busy(Instant::from_nanos(3)));
    }

    #[test]
    fn a_fraction_of_a_nanosecond_rounds_up_and_is_not_lost() {
        let mut wire = Serialiser::new(bps(3_000_000_000));
        let out: Vec<_> = (0..3)
            .map(|_| wire.depart(Instant::ZERO, 1).as_nanos())
            .collect();
        assert_eq!(out, [3, 6, 8], "8/3, 16/3 and 24/3 ns");
    }

    #[test]
    fn rates_print_as_they_are_written() {
        let print = |rate| bps(rate).to_string();
        assert_eq!(print(2_000_000), "2mbit");
        assert_eq!(print(384_000), "384kbit");
        assert_eq!(print(1_544_000), "1544kbit");
        assert_eq!(print(56), "56bit");
        assert_eq!(print(1_000_000_000), "1gbit");
    }
}
