//! Decides if a run in real time counts. A run that does not is reported with the reasons and repeated, and never included in a
//! mean.

use serde::Serialize;

use crate::stats::{DirectionStats, LinkStats};

/// Limits of the deviation of a run from its configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ValidityLimits {
    /// Mean lateness of a direction, milliseconds.
    pub late_mean_ms: f64,
    /// 99th percentile of the lateness of a direction, milliseconds.
    pub late_p99_ms: f64,
    /// Largest lateness of a direction, milliseconds.
    pub late_max_ms: f64,
    /// Error of a direction's rate while it was busy, as a fraction of the rate.
    pub rate_error: f64,
    /// Minimum busy time of a direction for its rate to be checked, seconds.
    pub rate_judged_after_seconds: f64,
}

impl Default for ValidityLimits {
    /// Limits that a machine with a spare core easily meets: 0.5 ms mean, 5 ms p99 and 20 ms maximum lateness, and 0.5 % of the
    /// rate once the link was busy for a second.
    fn default() -> Self {
        Self {
            late_mean_ms: 0.5,
            late_p99_ms: 5.0,
            late_max_ms: 20.0,
            rate_error: 0.005,
            rate_judged_after_seconds: 1.0,
        }
    }
}

/// Why a run does not count.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// Packets were too late on average.
    #[error("packets were {measured_ms:.2} ms late on average, limit {limit_ms} ms")]
    LateMean {
        /// Mean lateness.
        measured_ms: f64,
        /// The limit.
        limit_ms: f64,
    },
    /// One packet in a hundred was too late.
    #[error("one packet in a hundred was {measured_ms:.2} ms late or more, limit {limit_ms} ms")]
    LateP99 {
        /// 99th percentile.
        measured_ms: f64,
        /// The limit.
        limit_ms: f64,
    },
    /// A packet was too late.
    #[error("a packet was {measured_ms:.2} ms late, limit {limit_ms} ms")]
    LateMax {
        /// Largest lateness.
        measured_ms: f64,
        /// The limit.
        limit_ms: f64,
    },
    /// The link was too slow or too fast.
    #[error("the link carried {measured_bps:.0} bps, expected {configured_bps}")]
    Rate {
        /// Measured rate while it was busy.
        measured_bps: f64,
        /// Configured rate.
        configured_bps: u64,
    },
    /// The programs at the ends were runnable but did not run.
    #[error("the programs waited {measured_ms:.2} ms for a core, limit {limit_ms:.2} ms")]
    Starved {
        /// Total time of all programs.
        measured_ms: f64,
        /// The limit.
        limit_ms: f64,
    },
    /// Devices dropped packets outside the link model.
    #[error("a device, not the link, dropped {packets} packets")]
    Devices {
        /// Number of packets.
        packets: u64,
    },
}

impl ValidityLimits {
    /// All reasons why `run` does not count; empty if it counts.
    #[must_use]
    pub fn faults(&self, run: &LinkStats) -> Vec<Fault> {
        let mut faults = Vec::new();
        let (mean, p99, max) = (
            run.worst(|way| way.late_mean_ms),
            run.worst(|way| way.late_p99_ms),
            run.worst(|way| way.late_max_ms),
        );
        if mean > self.late_mean_ms {
            let (measured_ms, limit_ms) = (mean, self.late_mean_ms);
            faults.push(Fault::LateMean {
                measured_ms,
                limit_ms,
            });
        }
        if p99 > self.late_p99_ms {
            let (measured_ms, limit_ms) = (p99, self.late_p99_ms);
            faults.push(Fault::LateP99 {
                measured_ms,
                limit_ms,
            });
        }
        if max > self.late_max_ms {
            let (measured_ms, limit_ms) = (max, self.late_max_ms);
            faults.push(Fault::LateMax {
                measured_ms,
                limit_ms,
            });
        }
        let ways = [&run.up, &run.down];
        faults.extend(ways.into_iter().filter_map(|way| self.rate_fault(way)));
        let packets = ways.iter().map(|way| way.refused + way.missed).sum();
        if packets > 0 {
            faults.push(Fault::Devices { packets });
        }
        faults
    }

    fn rate_fault(&self, way: &DirectionStats) -> Option<Fault> {
        let measured_bps = way
            .busy_bps
            .filter(|_| way.busy_seconds >= self.rate_judged_after_seconds)?;
        let configured_bps = way.configured_bps;
        let error = (measured_bps / configured_bps as f64 - 1.0).abs();
        (error > self.rate_error).then_some(Fault::Rate {
            measured_bps,
            configured_bps,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction() -> DirectionStats {
        DirectionStats {
            configured_bps: 1_000_000,
            busy_bps: Some(1_005_000.0),
            busy_seconds: 1.0,
            configured_delay_ms: 10.0,
            delay_ms: 10.5,
            offered: 100,
            packets: 100,
            bytes: 100_000,
            queue_drops: 3,
            lost: 2,
            refused: 0,
            missed: 0,
            foreign: 1,
            late_mean_ms: 0.5,
            late_p99_ms: 5.0,
            late_max_ms: 20.0,
        }
    }

    fn faults(change: impl FnOnce(&mut DirectionStats)) -> Vec<Fault> {
        let mut down = direction();
        change(&mut down);
        let run = LinkStats {
            seconds: 2.0,
            on_wire_ms: None,
            waited_for_cpu_ms: None,
            up: direction(),
            down,
        };
        ValidityLimits::default().faults(&run)
    }

    #[test]
    fn a_run_at_every_limit_counts_and_one_past_any_does_not() {
        assert_eq!(faults(|_| {}), []);
        let one = |change: fn(&mut DirectionStats)| {
            let faults = faults(change);
            assert_eq!(faults.len(), 1, "{faults:?}");
            faults[0].clone()
        };
        assert!(matches!(
            one(|it| it.late_mean_ms = 0.51),
            Fault::LateMean { .. }
        ));
        assert!(matches!(
            one(|it| it.late_p99_ms = 5.1),
            Fault::LateP99 { .. }
        ));
        assert!(matches!(
            one(|it| it.late_max_ms = 20.1),
            Fault::LateMax { .. }
        ));
        assert!(matches!(
            one(|it| it.busy_bps = Some(1_005_001.0)),
            Fault::Rate { .. }
        ));
        assert!(matches!(
            one(|it| it.busy_bps = Some(994_999.0)),
            Fault::Rate { .. }
        ));
        assert_eq!(one(|it| it.refused = 1), Fault::Devices { packets: 1 });
        assert_eq!(one(|it| it.missed = 2), Fault::Devices { packets: 2 });
    }

    #[test]
    fn a_rate_is_ignored_below_the_minimum_busy_time() {
        let short = |it: &mut DirectionStats| {
            it.busy_bps = Some(900_000.0);
            it.busy_seconds = 0.99;
        };
        assert_eq!(faults(short), []);
    }
}
