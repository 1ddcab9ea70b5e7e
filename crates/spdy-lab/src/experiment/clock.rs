//! The clock of a cell, and the measurements of a run in real time.

use std::fmt;
use std::str::FromStr;

/// The clock of a cell.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Clock {
    /// Everything is computed: the same seed gives the same nanoseconds.
    #[default]
    Virtual,
    /// The kernel's TCP behind a link of `spdy-tun`. Only its losses depend on the seed.
    Real,
}

impl Clock {
    /// All values.
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

/// A name that is no [`Clock`].
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

/// Measurements of a run in real time: of its last attempt, and why earlier attempts were invalid.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RealRun {
    /// Congestion control of both ends, by the kernel's name.
    pub congestion: String,
    /// Number of attempts, including the last.
    pub attempts: u32,
    /// Reasons why the last attempt is invalid; empty if it is valid.
    pub invalid: Vec<String>,
    /// For each earlier attempt: its load time, and the reasons why it was invalid.
    pub rejected: Vec<String>,
    /// The direction from the client.
    pub up: RealDirection,
    /// The direction to the client.
    pub down: RealDirection,
    /// Mean lateness of the worse direction, milliseconds.
    pub late_mean_ms: f64,
    /// 99th percentile of the lateness of the worse direction, milliseconds.
    pub late_p99_ms: f64,
    /// Largest lateness of a packet, milliseconds.
    pub late_max_ms: f64,
    /// Time for which the link's thread waited for a core, milliseconds; `None` if the system does not report it.
    pub link_waited_ms: Option<f64>,
    /// Time for which client and servers waited for a core, milliseconds.
    pub hosts_waited_ms: Option<f64>,
    /// CPU time of client and servers, milliseconds.
    pub computed_ms: Option<f64>,
}

/// Measurements of one direction of the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RealDirection {
    /// Bits of IP packets per second while packets were queued; `None` if they hardly were.
    pub bps: Option<f64>,
    /// Actual propagation delay, milliseconds: the configured delay plus the mean lateness.
    pub delay_ms: f64,
    /// Packets that the queue dropped.
    pub queue_drops: u64,
    /// Packets lost by random loss.
    pub lost: u64,
    /// Packets that a device dropped, and not the link.
    pub device_drops: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clock_name_parses() {
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
