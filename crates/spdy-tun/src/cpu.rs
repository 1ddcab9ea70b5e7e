//! CPU time of a thread, and the time that it waited for a core.

use std::fs;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Times of a thread since its start, or between two instants (schedstat of proc(5)).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CpuTime {
    /// Time in which it ran.
    pub ran: Duration,
    /// Time in which it was runnable but did not run.
    pub waited: Duration,
}

impl CpuTime {
    /// The times of the current thread so far; `None` if the system does not report them.
    #[must_use]
    pub fn of_this_thread() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    /// Parses nanoseconds on a core, nanoseconds in the run queue, and the number of time slices.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse);
        let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(Self {
            ran: Duration::from_nanos(ran),
            waited: Duration::from_nanos(waited),
        })
    }
}

impl Sub for CpuTime {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

impl Add for CpuTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ran: self.ran + other.ran,
            waited: self.waited + other.waited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_what_ran_and_the_second_what_waited() {
        let nanos = Duration::from_nanos;
        let (ran, waited) = (nanos(7_000_001), nanos(1_000_002));
        assert_eq!(
            CpuTime::parse("7000001 1000002 33\n"),
            Some(CpuTime { ran, waited })
        );
        assert_eq!(CpuTime::parse("7000001"), None);
    }
}
