//! Histograms of the time from a request to the head of the response, for each kind of origin.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::origin_kind::OriginKind;

/// Upper bounds of the buckets of [`LatencyHistogram`], milliseconds.
pub const LATENCY_BOUNDS_MS: [u64; 12] = [
    5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000,
];

/// A histogram of response times.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LatencyHistogram {
    /// How many took no longer than each of [`LATENCY_BOUNDS_MS`], and longer than the one before; those that took longer than all
    /// come last.
    pub buckets: [u64; LATENCY_BOUNDS_MS.len() + 1],
    /// All of them together.
    pub sum: Duration,
}

impl LatencyHistogram {
    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[derive(Debug, Default)]
struct AtomicHistogram {
    buckets: [AtomicU64; LATENCY_BOUNDS_MS.len() + 1],
    sum_us: AtomicU64,
}

/// Of the sites' own origins, and of other hosts.
#[derive(Debug, Default)]
pub struct OriginLatency {
    site: AtomicHistogram,
    others: AtomicHistogram,
}

impl OriginLatency {
    /// Records that the head of a response arrived after `took`.
    pub(crate) fn record(&self, kind: OriginKind, took: Duration) {
        let latency = self.of(kind);
        let within = |bound: &u64| took <= Duration::from_millis(*bound);
        let last = LATENCY_BOUNDS_MS.len();
        let bucket = LATENCY_BOUNDS_MS.iter().position(within).unwrap_or(last);
        latency.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        latency.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    /// The values so far.
    #[must_use]
    pub fn load(&self, kind: OriginKind) -> LatencyHistogram {
        let latency = self.of(kind);
        LatencyHistogram {
            buckets: std::array::from_fn(|nth| latency.buckets[nth].load(Ordering::Relaxed)),
            sum: Duration::from_micros(latency.sum_us.load(Ordering::Relaxed)),
        }
    }

    fn of(&self, kind: OriginKind) -> &AtomicHistogram {
        match kind {
            OriginKind::Site => &self.site,
            OriginKind::ThirdParty => &self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_counted_in_the_first_matching_bucket() {
        let all = OriginLatency::default();
        for ms in [0, 5, 6, 30_000, 30_001] {
            all.record(OriginKind::ThirdParty, Duration::from_millis(ms));
        }
        let others = all.load(OriginKind::ThirdParty);
        assert_eq!(others.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(others.count(), 5);
        assert_eq!(others.sum, Duration::from_millis(60_012));
        assert_eq!(all.load(OriginKind::Site), LatencyHistogram::default());
    }
}
