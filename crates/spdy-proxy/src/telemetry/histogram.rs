//! Histograms of durations with fixed buckets, which any number of threads fill.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets for response times to clients.
pub const RESPONSE_BOUNDS: &[Duration] = &[
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2500),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// Upper bounds of the buckets for response times of origins: the same from 5 ms, because a request crosses a network.
pub const ORIGIN_LATENCY_BOUNDS: &[Duration] = RESPONSE_BOUNDS.split_at(3).1;

/// A histogram that is being filled. A record is two relaxed additions.
#[derive(Debug)]
pub(crate) struct AtomicHistogram {
    bounds: &'static [Duration],
    buckets: Box<[AtomicU64]>,
    sum_us: AtomicU64,
}

impl AtomicHistogram {
    /// An empty histogram with these upper bounds of buckets, in ascending order.
    pub(crate) fn new(bounds: &'static [Duration]) -> Self {
        let buckets = (0..=bounds.len()).map(|_| AtomicU64::new(0));
        Self {
            bounds,
            buckets: buckets.collect(),
            sum_us: AtomicU64::new(0),
        }
    }

    /// Records one duration.
    pub(crate) fn record(&self, took: Duration) {
        let bucket = self.bounds.partition_point(|bound| *bound < took);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_us.fetch_add(micros, Ordering::Relaxed);
    }

    /// The values so far.
    pub(crate) fn load(&self) -> Histogram {
        let buckets = self.buckets.iter();
        Histogram {
            bounds: self.bounds,
            buckets: buckets
                .map(|bucket| bucket.load(Ordering::Relaxed))
                .collect(),
            sum: Duration::from_micros(self.sum_us.load(Ordering::Relaxed)),
        }
    }
}

/// A histogram of durations.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Histogram {
    /// Upper bounds of the buckets, in ascending order.
    pub bounds: &'static [Duration],
    /// How many durations were no longer than each of the bounds, and longer than the one before; those longer than all come last.
    pub buckets: Vec<u64>,
    /// All durations together.
    pub sum: Duration,
}

impl Histogram {
    /// The number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// An estimate of the duration that the share `quantile` (0 to 1) of all durations does not exceed: linear within its bucket. If it is
    /// longer than all bounds, the estimate is the last bound. `None` without durations.
    #[must_use]
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = quantile.clamp(0.0, 1.0) * count as f64;
        let mut below = 0.0;
        let mut lower = Duration::ZERO;
        for (&upper, &bucket) in self.bounds.iter().zip(&self.buckets) {
            let within = bucket as f64;
            if bucket > 0 && below + within >= rank {
                return Some(lower + (upper - lower).mul_f64((rank - below) / within));
            }
            below += within;
            lower = upper;
        }
        Some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [Duration; 3] = [
        Duration::from_millis(10),
        Duration::from_millis(20),
        Duration::from_millis(100),
    ];

    fn of(durations_ms: &[u64]) -> Histogram {
        let histogram = AtomicHistogram::new(&BOUNDS);
        for ms in durations_ms {
            histogram.record(Duration::from_millis(*ms));
        }
        histogram.load()
    }

    #[test]
    fn duration_is_counted_in_the_first_matching_bucket() {
        let histogram = of(&[0, 10, 11, 100, 101]);
        assert_eq!(histogram.buckets, [2, 1, 1, 1]);
        assert_eq!(histogram.count(), 5);
        assert_eq!(histogram.sum, Duration::from_millis(222));
    }

    #[test]
    fn quantile_is_linear_within_its_bucket_and_at_most_the_last_bound() {
        assert_eq!(of(&[]).quantile(0.5), None);
        let histogram = of(&[15, 15, 15, 50]);
        for (quantile, expected_ms) in [(0.0, 10), (0.375, 15), (0.75, 20), (1.0, 100)] {
            let expected = Some(Duration::from_millis(expected_ms));
            assert_eq!(histogram.quantile(quantile), expected, "{quantile}");
        }
        let beyond = of(&[1, 500, 500]).quantile(0.95);
        assert_eq!(beyond, Some(Duration::from_millis(100)));
    }
}
