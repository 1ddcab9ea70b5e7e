//! Histograms of the time from a request to the head of the response, for each kind of origin.

use std::time::Duration;

use crate::origin_kind::OriginKind;
use crate::telemetry::histogram::{AtomicHistogram, Histogram, ORIGIN_LATENCY_BOUNDS};

/// Of the sites' own origins, and of other hosts.
#[derive(Debug)]
pub struct OriginLatency {
    site: AtomicHistogram,
    others: AtomicHistogram,
}

impl Default for OriginLatency {
    fn default() -> Self {
        Self {
            site: AtomicHistogram::new(ORIGIN_LATENCY_BOUNDS),
            others: AtomicHistogram::new(ORIGIN_LATENCY_BOUNDS),
        }
    }
}

impl OriginLatency {
    /// Records that the head of a response arrived after `took`.
    pub(crate) fn record(&self, kind: OriginKind, took: Duration) {
        self.of(kind).record(took);
    }

    /// The values so far.
    #[must_use]
    pub fn load(&self, kind: OriginKind) -> Histogram {
        self.of(kind).load()
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
    fn latency_is_counted_for_its_kind_of_origin() {
        let all = OriginLatency::default();
        for ms in [0, 5, 6, 30_000, 30_001] {
            all.record(OriginKind::ThirdParty, Duration::from_millis(ms));
        }
        let others = all.load(OriginKind::ThirdParty);
        assert_eq!(others.buckets, [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(all.load(OriginKind::Site).count(), 0);
    }
}
