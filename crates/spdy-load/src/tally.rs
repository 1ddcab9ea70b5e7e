//! The counters of one thread.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::fault::{Fault, FaultKind};
use crate::plan::Expect;

/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// Longer times count as this, nanoseconds: 292 years.
const LONGEST_NANOS: u64 = u64::MAX >> 1;

/// Times, each to three digits.
#[derive(Clone, Debug)]
pub struct LatencyHistogram(Histogram<u64>);

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self(
            Histogram::new(DIGITS)
                .expect("three significant digits are within the histogram's bounds"),
        )
    }
}

impl LatencyHistogram {
    pub(crate) fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(LONGEST_NANOS);
        self.0
            .record(nanos.clamp(1, LONGEST_NANOS))
            .expect("an auto-resizing histogram accepts every value up to the longest time");
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0
            .add(&other.0)
            .expect("an auto-resizing histogram accepts the values of any other");
    }

    pub(crate) fn histogram(&self) -> &Histogram<u64> {
        &self.0
    }
}

/// Errors of one kind.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Faults {
    /// Number of errors.
    pub count: u64,
    /// Description of the first.
    pub first: String,
}

/// All results except times of day and bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) latency: LatencyHistogram,
    pub(crate) set_up: LatencyHistogram,
    pub(crate) answered: u64,
    pub(crate) statuses: BTreeMap<u16, u64>,
    pub(crate) body_bytes: u64,
    pub(crate) wrong_status: u64,
    pub(crate) wrong_length: u64,
    pub(crate) faults: BTreeMap<FaultKind, Faults>,
    pub(crate) resent: u64,
    pub(crate) reconnects: u64,
    /// Requests in flight at the end.
    pub(crate) unfinished: u64,
}

impl Tally {
    pub(crate) fn answer(
        &mut self,
        latency: Duration,
        status: u16,
        body_bytes: u64,
        expect: &Expect,
    ) {
        self.answered += 1;
        self.latency.record(latency);
        *self.statuses.entry(status).or_default() += 1;
        self.body_bytes += body_bytes;
        if !expect.is_status(status) {
            self.wrong_status += 1;
        } else if !expect.is_length(body_bytes) {
            self.wrong_length += 1;
        }
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        let faults = self.faults.entry(fault.kind).or_insert(Faults {
            count: 0,
            first: fault.reason,
        });
        faults.count += 1;
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.latency.add(&other.latency);
        self.set_up.add(&other.set_up);
        self.answered += other.answered;
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.body_bytes += other.body_bytes;
        self.wrong_status += other.wrong_status;
        self.wrong_length += other.wrong_length;
        for (kind, faults) in other.faults {
            let count = faults.count;
            let total = self
                .faults
                .entry(kind)
                .or_insert(Faults { count: 0, ..faults });
            total.count += count;
        }
        self.resent += other.resent;
        self.reconnects += other.reconnects;
        self.unfinished += other.unfinished;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_any_length_is_recorded() {
        let mut times = LatencyHistogram::default();
        for time in [Duration::ZERO, Duration::from_micros(7), Duration::MAX] {
            times.record(time);
        }
        let histogram = times.histogram();
        assert_eq!(histogram.len(), 3);
        assert!(histogram.value_at_quantile(0.5).abs_diff(7_000) < 10);
        assert!(histogram.max() > LONGEST_NANOS / 1000 * 999);
    }

    #[test]
    fn merged_tallies_sum_and_keep_the_first_error() {
        let expect = Expect {
            status: None,
            body_bytes: Some(3),
        };
        let ms = Duration::from_millis;
        let mut one = Tally::default();
        one.answer(ms(1), 200, 3, &expect);
        one.answer(ms(1), 500, 3, &expect);
        one.fault(Fault::lost("first"));
        let mut two = Tally::default();
        two.answer(ms(9), 200, 4, &expect);
        two.fault(Fault::lost("second"));
        two.fault(Fault::new(FaultKind::Timeout, "third"));
        one.add(two);
        assert_eq!((one.answered, one.body_bytes), (3, 10));
        assert_eq!((one.wrong_status, one.wrong_length), (1, 1));
        assert_eq!(one.statuses, BTreeMap::from([(200, 2), (500, 1)]));
        let faults: Vec<_> = one
            .faults
            .values()
            .map(|f| (f.count, &f.first[..]))
            .collect();
        assert_eq!(faults, [(1, "third"), (2, "first")]);
        let latency = one.latency.histogram();
        assert_eq!(latency.len(), 3);
        assert!(latency.max().abs_diff(9_000_000) < 9_000);
    }
}
