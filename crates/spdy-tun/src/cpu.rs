//! CPU time of a thread or a process, and the time that it waited for a core.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
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

/// The times of each thread of a child process since its start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChildCpuTimes(BTreeMap<OsString, CpuTime>);

impl ChildCpuTimes {
    /// The times of `child` so far, which must be a child of this process; `None` if the system does not report them.
    #[must_use]
    pub fn of(child: &Child) -> Option<Self> {
        // Without a /proc of this pid namespace, the number is that of another process.
        let own = fs::read_link("/proc/self").ok()?;
        (own == Path::new(&process::id().to_string())).then_some(())?;
        let mut times = BTreeMap::new();
        for thread in fs::read_dir(format!("/proc/{}/task", child.id())).ok()? {
            let thread = thread.ok()?;
            // A thread that has just ended has no file.
            if let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) {
                times.insert(thread.file_name(), CpuTime::parse(&text)?);
            }
        }
        Some(Self(times))
    }

    /// The time in which its threads ran since `earlier`, and the wait of the thread that waited longest.
    ///
    /// The waits of all threads together would count compilers and garbage collectors, which delay no response.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> CpuTime {
        let mut total = CpuTime::default();
        for (thread, &after) in &self.0 {
            let before = earlier.0.get(thread).copied().unwrap_or_default();
            let CpuTime { ran, waited } = after - before;
            total.ran += ran;
            total.waited = total.waited.max(waited);
        }
        total
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
    fn a_child_has_times_until_it_is_waited_for() {
        let mut child = process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("start `sleep`");
        let times = ChildCpuTimes::of(&child);
        child.kill().expect("it runs");
        child.wait().expect("it is a child");
        assert_eq!(times.is_some(), CpuTime::of_this_thread().is_some());
        assert_eq!(ChildCpuTimes::of(&child), None);
    }

    #[test]
    fn threads_run_in_total_and_wait_in_parallel() {
        let times = |threads: &[(&str, u64, u64)]| {
            let times = threads.iter().map(|&(thread, ran, waited)| {
                let [ran, waited] = [ran, waited].map(Duration::from_millis);
                (OsString::from(thread), CpuTime { ran, waited })
            });
            ChildCpuTimes(times.collect())
        };
        let before = times(&[("1", 10, 5), ("2", 7, 1), ("3", 9, 9)]);
        let after = times(&[("1", 14, 6), ("2", 7, 1), ("4", 2, 3)]);
        let [ran, waited] = [6, 3].map(Duration::from_millis);
        assert_eq!(after.since(&before), CpuTime { ran, waited });
    }
}
