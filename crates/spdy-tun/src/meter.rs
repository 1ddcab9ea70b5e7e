//! Measures one direction, packet by packet.
//!
//! The rate is that of the bottleneck while it was busy: from one delivery to the next, as long as packets were queued behind each
//! other. Bits of packets that were lost behind the bottleneck also count, because it was busy with them.

use std::time::Duration;

use hdrhistogram::Histogram;
use spdy_clock::Instant;
use spdy_netem::path::{Direction, PathConfig, PathOutcome};

use crate::stats::DirectionStats;

/// Largest lateness that the histogram distinguishes, nanoseconds; a minute.
const MOST_NS: u64 = 60_000_000_000;
/// Significant digits of a lateness.
const DIGITS: u8 = 3;
/// Minimum busy time of the bottleneck for its rate to be reported.
const LEAST_BUSY: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct Meter {
    offered: u64,
    delivered: u64,
    delivered_bytes: u64,
    queue_drops: u64,
    lost: u64,
    refused: u64,
    foreign: u64,
    late: Histogram<u64>,
    late_sum_ns: u128,
    /// The exact maximum, because the histogram rounds.
    late_max_ns: u64,
    /// Bits of the packets since the previous delivery, lost ones included; `None` at the start of a busy period.
    row_bits: Option<u64>,
    last_delivered: Instant,
    busy_bits: u64,
    busy: Duration,
}

impl Meter {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            offered: 0,
            delivered: 0,
            delivered_bytes: 0,
            queue_drops: 0,
            lost: 0,
            refused: 0,
            foreign: 0,
            late: Histogram::new_with_max(MOST_NS, DIGITS)
                .expect("the histogram's bounds are valid"),
            late_sum_ns: 0,
            late_max_ns: 0,
            row_bits: None,
            last_delivered: now,
            busy_bits: 0,
            busy: Duration::ZERO,
        }
    }

    pub(crate) const fn count_offered(&mut self) {
        self.offered += 1;
    }

    pub(crate) const fn count_queue_drop(&mut self) {
        self.queue_drops += 1;
    }

    pub(crate) const fn count_loss(&mut self) {
        self.lost += 1;
    }

    pub(crate) const fn count_write_failure(&mut self) {
        self.refused += 1;
    }

    pub(crate) const fn count_non_ipv4(&mut self) {
        self.foreign += 1;
    }

    /// Returns the bits that the bottleneck sent from the previous packet to this one; `None` if it was idle in between, or if this
    /// packet is lost.
    pub(crate) fn follow_bottleneck(
        &mut self,
        is_in_a_row: bool,
        len_bytes: usize,
        outcome: PathOutcome,
    ) -> Option<u64> {
        if outcome == PathOutcome::QueueDrop {
            return None; // it never reached the bottleneck
        }
        if !is_in_a_row {
            self.row_bits = None;
        }
        let bits = self.row_bits.map(|before| before + len_bytes as u64 * 8);
        // The next packet starts a new count, unless this one is lost.
        self.row_bits = if outcome == PathOutcome::Lost {
            bits
        } else {
            Some(0)
        };
        bits.filter(|_| outcome != PathOutcome::Lost)
    }

    pub(crate) fn count_delivered(
        &mut self,
        due: Instant,
        now: Instant,
        len_bytes: usize,
        bits_in_a_row: Option<u64>,
    ) {
        self.delivered += 1;
        self.delivered_bytes += len_bytes as u64;
        let late_ns = u64::try_from((now - due).as_nanos()).unwrap_or(u64::MAX);
        self.late.saturating_record(late_ns);
        self.late_sum_ns += u128::from(late_ns);
        self.late_max_ns = self.late_max_ns.max(late_ns);
        if let Some(bits) = bits_in_a_row {
            self.busy_bits += bits;
            self.busy += now - self.last_delivered;
        }
        self.last_delivered = now;
    }

    pub(crate) fn stats(&self, config: &PathConfig, way: Direction) -> DirectionStats {
        let (configured_bps, rtt_ns) = (
            match way {
                Direction::Up => config.up.mean_bps(),
                Direction::Down => config.down.mean_bps(),
            },
            config.rtt.as_nanos() as f64,
        );
        let ms = |nanos: f64| nanos / 1e6;
        let late_mean_ns = match self.delivered {
            0 => 0.0,
            packets => self.late_sum_ns as f64 / packets as f64,
        };
        let is_measured = self.busy >= LEAST_BUSY;
        DirectionStats {
            configured_bps,
            busy_bps: is_measured.then(|| self.busy_bits as f64 / self.busy.as_secs_f64()),
            busy_seconds: self.busy.as_secs_f64(),
            configured_delay_ms: ms(rtt_ns / 2.0),
            delay_ms: ms(rtt_ns / 2.0 + late_mean_ns),
            offered: self.offered,
            packets: self.delivered,
            bytes: self.delivered_bytes,
            queue_drops: self.queue_drops,
            lost: self.lost,
            refused: self.refused,
            missed: 0,
            foreign: self.foreign,
            late_mean_ms: ms(late_mean_ns),
            late_p99_ms: ms(self.late.value_at_quantile(0.99).min(self.late_max_ns) as f64),
            late_max_ms: ms(self.late_max_ns as f64),
        }
    }
}
