//! CPU time of a thread or a process, and the time that it waited for a core.

use std::fs;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::path::Path;
use std::process::{self, Child};
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

    /// The times of all threads of `child` so far, which must be a child of this process; `None` if the system does not report them.
    #[must_use]
    pub fn of_child(child: &Child) -> Option<Self> {
        // Without a /proc of this pid namespace, the number is that of another process.
        let own = fs::read_link("/proc/self").ok()?;
        (own == Path::new(&process::id().to_string())).then_some(())?;
        let threads = fs::read_dir(format!("/proc/{}/task", child.id())).ok()?;
        let times = threads.map(|thread| {
            let path = thread.ok()?.path().join("schedstat");
            // A thread that has just ended has no file.
            fs::read_to_string(path).map_or(Some(Self::default()), |text| Self::parse(&text))
        });
        times.sum()
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

impl Sum for CpuTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), Add::add)
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

    #[test]
    fn a_child_has_the_times_of_its_threads_until_it_is_waited_for() {
        let mut child = process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("start `sleep`");
        let times = CpuTime::of_child(&child);
        child.kill().expect("it runs");
        child.wait().expect("it is a child");
        assert_eq!(times.is_some(), CpuTime::of_this_thread().is_some());
        assert_eq!(CpuTime::of_child(&child), None);
    }
}
