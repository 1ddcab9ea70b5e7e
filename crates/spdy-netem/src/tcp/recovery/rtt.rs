//! The smoothed round trip and the retransmission timeout (RFC 6298), as in Linux.
//!
//! Two differences from the RFC are Linux's. The variance term is at least `min_rto`, so the timeout is the round trip plus at least
//! 200 ms. A falling mean deviation decreases once per round trip, by a quarter of the difference; a rising one counts at once.

use std::time::Duration;

use crate::tcp::jiffies;

/// Round-trip estimates in whole microseconds; the scaled ones as in RFC 6298 §2 with shifts.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    min_rto_us: u64,
    max_rto: Duration,
    /// Smoothed round trip, times 8; zero before the first sample.
    srtt_x8_us: u64,
    /// Mean deviation, times 4.
    deviation_x4_us: u64,
    /// Largest deviation of the current round trip, times 4.
    deviation_peak_x4_us: u64,
    /// The variance term of the timeout.
    variance_us: u64,
    /// The round trip is over when this sequence number is acknowledged.
    round_end: u64,
    /// Smallest sample.
    min_us: Option<u64>,
    rto: Duration,
}

impl RttEstimator {
    pub(crate) fn new(initial_rto: Duration, min_rto: Duration, max_rto: Duration) -> Self {
        Self {
            min_rto_us: micros(min_rto),
            max_rto,
            srtt_x8_us: 0,
            deviation_x4_us: 0,
            deviation_peak_x4_us: 0,
            variance_us: micros(initial_rto),
            round_end: 0,
            min_us: None,
            rto: initial_rto,
        }
    }

    /// The current timeout, including back-off: whole jiffies.
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }

    /// Smoothed round trip, microseconds; zero before the first sample.
    pub(crate) fn srtt_us(&self) -> u64 {
        self.srtt_x8_us >> 3
    }

    /// Smallest sample, microseconds.
    pub(crate) fn min_us(&self) -> Option<u64> {
        self.min_us
    }

    /// Doubles the timeout after it expired.
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.max_rto);
    }

    /// Uses `rto` instead of the first one: the SYN was repeated and there is no sample (RFC 6298 §5.7).
    pub(crate) fn start_over(&mut self, rto: Duration) {
        if self.srtt_x8_us == 0 {
            self.rto = rto;
        }
    }

    /// Records an unambiguous round trip, for the minimum only.
    pub(crate) fn note_min(&mut self, sample_us: u64) {
        let sample_us = sample_us.max(1);
        self.min_us = Some(self.min_us.map_or(sample_us, |least| least.min(sample_us)));
    }

    /// Adds a sample; `una` and `nxt` determine the end of the round trip. Ends any back-off.
    pub(crate) fn sample(&mut self, sample_us: u64, una: u64, nxt: u64) {
        let sample_us = sample_us.max(1);
        if self.srtt_x8_us == 0 {
            self.srtt_x8_us = sample_us << 3;
            self.deviation_x4_us = sample_us << 1;
            self.variance_us = self.deviation_x4_us.max(self.min_rto_us);
            self.deviation_peak_x4_us = self.variance_us;
            self.round_end = nxt;
        } else {
            self.smooth(sample_us, una, nxt);
        }
        let rto = Duration::from_micros((self.srtt_x8_us >> 3) + self.variance_us);
        self.rto = jiffies::rounded_up(rto).min(self.max_rto);
    }

    fn smooth(&mut self, sample_us: u64, una: u64, nxt: u64) {
        let mean = self.srtt_x8_us >> 3;
        self.srtt_x8_us = self.srtt_x8_us + sample_us - mean;
        let quarter = self.deviation_x4_us >> 2;
        if sample_us >= mean {
            self.deviation_x4_us = self.deviation_x4_us + (sample_us - mean) - quarter;
        } else {
            // A shrinking round trip must not increase the timeout: its deviation counts an eighth.
            let off = mean - sample_us;
            match off.checked_sub(quarter) {
                Some(more) => self.deviation_x4_us += more >> 3,
                None => self.deviation_x4_us -= quarter - off,
            }
        }
        if self.deviation_x4_us > self.deviation_peak_x4_us {
            self.deviation_peak_x4_us = self.deviation_x4_us;
            self.variance_us = self.variance_us.max(self.deviation_peak_x4_us);
        }
        if una > self.round_end {
            if self.deviation_peak_x4_us < self.variance_us {
                self.variance_us -= (self.variance_us - self.deviation_peak_x4_us) >> 2;
            }
            self.round_end = nxt;
            self.deviation_peak_x4_us = self.min_rto_us;
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000;

    fn estimator() -> RttEstimator {
        let [initial, least, most] = [1_000, 200, 120_000].map(Duration::from_millis);
        RttEstimator::new(initial, least, most)
    }

    #[test]
    fn the_first_sample_sets_three_times_itself_but_at_least_the_floor() {
        let mut rtt = estimator();
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(400 * MS, 1, 2);
        assert_eq!(rtt.rto(), Duration::from_millis(1_200));
        let mut rtt = estimator();
        rtt.sample(10 * MS, 1, 2);
        assert_eq!(rtt.rto(), Duration::from_millis(212), "whole jiffies");
    }

    #[test]
    fn a_steady_round_trip_settles_at_itself_plus_the_floor() {
        let mut rtt = estimator();
        for round in 0..100 {
            rtt.sample(300 * MS, round * 10 + 5, round * 10 + 10);
        }
        let rto = rtt.rto().as_millis();
        assert!((500..505).contains(&rto), "300 + 200 ms, not {rto}");
    }

    #[test]
    fn back_off_doubles_until_a_sample_or_the_limit() {
        let mut rtt = estimator();
        rtt.sample(100 * MS, 1, 2);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_millis(1_200));
        rtt.sample(100 * MS, 3, 4);
        assert!(rtt.rto() < Duration::from_millis(301));
        (0..20).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), Duration::from_secs(120));
    }
}
