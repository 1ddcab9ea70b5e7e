//! What a run in real time was. The names of the JSON fields are fixed: `--json` prints them.

use std::fmt;

use serde::Serialize;

/// What the link did between two moments, by its own clock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkStats {
    /// From the begin of the run to its end.
    pub seconds: f64,
    /// From the first packet to the last, as a capture at the client would see them: those from it when they are read, those to
    /// it when they are written. `None` if there was none.
    pub on_wire_ms: Option<f64>,
    /// Time for which the thread of the link was ready to run and did not, milliseconds; `None` where the
    /// system does not tell. A packet that came meanwhile was read late, which nothing else here can show.
    pub waited_for_cpu_ms: Option<f64>,
    /// From the client.
    pub up: DirectionStats,
    /// To the client.
    pub down: DirectionStats,
}

/// One direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DirectionStats {
    /// Rate that was asked for, bits of IP packets a second.
    pub configured_bps: u64,
    /// Rate while packets stood behind each other in the bottleneck; `None` if they did for less than 10 ms,
    /// or if the directions share it.
    pub busy_bps: Option<f64>,
    /// For how long they did.
    pub busy_seconds: f64,
    /// Propagation that was asked for: half the round trip.
    pub configured_delay_ms: f64,
    /// Propagation as it was: what was asked for, and the mean lateness. Without queue, serialisation and jitter.
    pub delay_ms: f64,
    /// Packets that were read from the sender's device.
    pub offered: u64,
    /// Packets that were written to the receiver's device.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub queue_drops: u64,
    /// Packets that chance took.
    pub lost: u64,
    /// Packets that the receiver's device did not take: a fault of the run.
    pub refused: u64,
    /// Packets that the sender's device dropped before they could be read: a fault of the run.
    pub missed: u64,
    /// Packets that are not IPv4, and went nowhere.
    pub foreign: u64,
    /// Mean of actual minus due delivery.
    pub late_mean_ms: f64,
    /// 99th percentile of it.
    pub late_p99_ms: f64,
    /// Its maximum.
    pub late_max_ms: f64,
}

impl LinkStats {
    /// Larger of the two directions' figure.
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
