//! By which clock a cell is loaded, and what a run in real time was under.

use std::fmt;
use std::str::FromStr;

/// By which clock a cell is loaded.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Clock {
    /// Everything is computed: the same seed gives the same nanoseconds.
    #[default]
    Virtual,
    /// The kernel's TCP behind a link of `spdy-tun`, whose losses alone are the seed's.
    Real,
}

impl Clock {
    /// Every one that has a name.
    pub const ALL: [Self; 2] = [Self::Virtual, Self::Real];

    /// Its name in experiments and stores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Virtual => "virtual",
            Self::Real => "real",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name of no [`Clock`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown clock {0:?}: expected virtual or real")]
pub struct UnknownClock(pub String);

impl FromStr for Clock {
    type Err = UnknownClock;

    fn from_str(name: &str) -> Result<Self, UnknownClock> {
        let found = Self::ALL.into_iter().find(|clock| clock.name() == name);
        found.ok_or_else(|| UnknownClock(name.to_owned()))
    }
}

/// What a run in real time was under: its last attempt, and why those before it did not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RealRun {
    /// Congestion control of both ends, by the kernel's name.
    pub congestion: String,
    /// How often it was tried, the attempt that stands here included.
    pub attempts: u32,
    /// Every reason why it does not count though it was tried so often; nothing if it counts.
    pub invalid: Vec<String>,
    /// Of each attempt before it: what it took, and every reason why it did not count.
    pub rejected: Vec<String>,
    /// The way from the client.
    pub up: RealDirection,
    /// The way to the client.
    pub down: RealDirection,
    /// Mean lateness of the worse direction, milliseconds.
    pub late_mean_ms: f64,
    /// 99th percentile of the lateness of the worse direction, milliseconds.
    pub late_p99_ms: f64,
    /// Largest lateness of a packet, milliseconds.
    pub late_max_ms: f64,
    /// For how long the link's thread waited for a core, milliseconds; `None` if the system does not report it.
    pub link_waited_ms: Option<f64>,
    /// For how long client and servers did, milliseconds.
    pub hosts_waited_ms: Option<f64>,
    /// For how long client and servers computed, milliseconds.
    pub computed_ms: Option<f64>,
}

/// What one direction of the link achieved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RealDirection {
    /// Bits of IP packets a second while packets stood behind each other; `None` if they hardly did.
    pub bps: Option<f64>,
    /// Propagation as it was, milliseconds: the configured delay, and the mean lateness.
    pub delay_ms: f64,
    /// Packets that the queue dropped.
    pub queue_drops: u64,
    /// Packets that chance took.
    pub lost: u64,
    /// Packets that a device dropped, and not the link.
    pub device_drops: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_has_a_name_that_reads_back() {
        for clock in Clock::ALL {
            assert_eq!(clock.name().parse(), Ok(clock));
        }
        let unknown = "wall".parse::<Clock>().expect_err("no clock");
        assert_eq!(
            unknown.to_string(),
            "unknown clock \"wall\": expected virtual or real"
        );
    }
}
