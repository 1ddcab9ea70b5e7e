//! The statistics of a run in real time. The names of the JSON fields are fixed: `--json` prints them.

use std::fmt;

use serde::Serialize;

/// Statistics of the link between two instants, by its own clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkStats {
    /// Duration of the run.
    pub seconds: f64,
    /// Time from the first to the last packet, as a capture at the client would show it: packets from the client count when they
    /// are read, packets to it when they are written. `None` without packets.
    pub on_wire_ms: Option<f64>,
    /// Time in which the link's thread was runnable but did not run, milliseconds; `None` if the system does not report it. A
    /// packet that arrived in that time was read late, which no other value here shows.
    pub waited_for_cpu_ms: Option<f64>,
    /// Statistics of the direction from the client.
    pub up: DirectionStats,
    /// Statistics of the direction to the client.
    pub down: DirectionStats,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionStats {
    /// Configured rate, bits of IP packets a second; of a trace, its mean.
    pub configured_bps: u64,
    /// Rate while packets were queued in the bottleneck; `None` if that was less than 10 ms, if the directions share it, or if it has
    /// a trace.
    pub busy_bps: Option<f64>,
    /// Total time in which packets were queued in the bottleneck.
    pub busy_seconds: f64,
    /// Configured propagation delay: half the round trip.
    pub configured_delay_ms: f64,
    /// Actual propagation delay: the configured one plus the mean lateness. Without queueing, serialisation and jitter.
    pub delay_ms: f64,
    /// Packets that were read from the sender's device.
    pub offered: u64,
    /// Packets that were written to the receiver's device.
    pub packets: u64,
    /// Bytes of these packets, IP headers included.
    pub bytes: u64,
    /// Packets that the queue dropped.
    pub queue_drops: u64,
    /// Packets dropped by random loss.
    pub lost: u64,
    /// Packets that the receiver's device rejected: an error of the run.
    pub refused: u64,
    /// Packets that the sender's device dropped before they could be read: an error of the run.
    pub missed: u64,
    /// Packets that are not IPv4, and were dropped.
    pub foreign: u64,
    /// Mean of actual minus due delivery.
    pub late_mean_ms: f64,
    /// 99th percentile of actual minus due delivery.
    pub late_p99_ms: f64,
    /// Maximum of actual minus due delivery.
    pub late_max_ms: f64,
}

impl LinkStats {
    /// Larger value of the two directions.
    #[must_use]
    pub fn worst(&self, figure: impl Fn(&DirectionStats) -> f64) -> f64 {
        figure(&self.up).max(figure(&self.down))
    }
}

/// One line for people.
impl fmt::Display for DirectionStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.busy_bps {
            Some(bps) => write!(
                f,
                "{} of {} for {:.1} s",
                Mbps(bps),
                Mbps(self.configured_bps as f64),
                self.busy_seconds
            )?,
            None => write!(
                f,
                "{} configured, not measured",
                Mbps(self.configured_bps as f64)
            )?,
        }
        write!(
            f,
            ", {} packets, {} lost, {} dropped; late by {:.2} ms (p99 {:.2}, max {:.2})",
            self.packets,
            self.lost,
            self.queue_drops,
            self.late_mean_ms,
            self.late_p99_ms,
            self.late_max_ms
        )
    }
}

struct Mbps(f64);

impl fmt::Display for Mbps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} Mbps", self.0 / 1e6)
    }
}
