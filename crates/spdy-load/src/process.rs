//! CPU and memory of a process and all its descendants, read from Linux's `/proc` (proc(5)).
//!
//! A sample sums user and system time of every thread, including those that ended, and of children that were waited for. So the
//! difference of two samples also includes processes that ended in between.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::Duration;

/// Why a process cannot be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// No process has this name.
    #[error("no process is named {0:?}")]
    NoSuchName(String),
    /// No process has this id, or it cannot be read.
    #[error("cannot read the statistics of process {pid}")]
    NoSuchId {
        /// The id.
        pid: u32,
        /// The error.
        source: io::Error,
    },
    /// There is no `/proc`.
    #[error("cannot read /proc: process statistics need Linux")]
    NoProc(#[source] io::Error),
}

/// Processes by their ids; each sample finds their descendants again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Processes {
    roots: BTreeSet<u32>,
}

/// Consumption at one moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sample {
    /// User and system time so far.
    pub cpu: Duration,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// The sum of their maximum resident memory, bytes.
    pub peak_bytes: u64,
    /// Number of processes.
    pub processes: usize,
}

impl Processes {
    /// The process `pid` and its descendants.
    ///
    /// # Errors
    ///
    /// It does not exist, or there is no `/proc`.
    pub fn by_id(pid: u32) -> Result<Self, ProcessError> {
        fs::read(format!("/proc/{pid}/stat"))
            .map_err(|source| ProcessError::NoSuchId { pid, source })?;
        Ok(Self {
            roots: BTreeSet::from([pid]),
        })
    }

    /// All processes with this name, by their command or by the file name of their first argument, and their
    /// descendants.
    ///
    /// # Errors
    ///
    /// There is no such process, or no `/proc`.
    pub fn by_name(name: &str) -> Result<Self, ProcessError> {
        let roots: BTreeSet<u32> = ids()?.filter(|pid| is_named(*pid, name)).collect();
        if roots.is_empty() {
            return Err(ProcessError::NoSuchName(name.to_owned()));
        }
        Ok(Self { roots })
    }

    /// What the processes have used so far. Processes that have ended are not included.
    ///
    /// # Errors
    ///
    /// There is no `/proc`.
    pub fn sample(&self) -> Result<Sample, ProcessError> {
        let all: Vec<Stat> = ids()?.filter_map(Stat::read).collect();
        let mut family = self.roots.clone();
        // A child may precede its parent in the list.
        loop {
            let len_before = family.len();
            let children = all.iter().filter(|stat| family.contains(&stat.parent));
            let children: Vec<u32> = children.map(|stat| stat.pid).collect();
            family.extend(children);
            if family.len() == len_before {
                break;
            }
        }
        let mut sample = Sample::default();
        for stat in all.iter().filter(|stat| family.contains(&stat.pid)) {
            let (resident, peak) = memory(stat.pid);
            sample.cpu += stat.cpu;
            sample.resident_bytes += resident;
            sample.peak_bytes += peak;
            sample.processes += 1;
        }
        Ok(sample)
    }
}

/// CPU time of this process so far; `None` without `/proc`.
#[must_use]
pub fn own_cpu() -> Option<Duration> {
    Stat::read(std::process::id()).map(|stat| stat.cpu)
}

fn ids() -> Result<impl Iterator<Item = u32>, ProcessError> {
    let entries = fs::read_dir("/proc").map_err(ProcessError::NoProc)?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

fn is_named(pid: u32, name: &str) -> bool {
    if pid == std::process::id() {
        return false;
    }
    let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if command.trim_end() == name {
        return true;
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or(&[]);
    first.rsplit(|byte| *byte == b'/').next() == Some(name.as_bytes())
}

/// The used fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stat {
    pid: u32,
    parent: u32,
    cpu: Duration,
}

impl Stat {
    /// `None` for a process that has just ended.
    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &text, ticks_per_second())
    }

    fn parse(pid: u32, text: &str, ticks_per_second: u64) -> Option<Self> {
        // The command is in parentheses and may itself contain parentheses and spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // Field 3 of proc(5) is the first here: utime, stime, cutime, cstime are 14 to 17.
        let ticks = fields.get(11..15)?.iter();
        let ticks: u64 = ticks.map(|ticks| ticks.parse::<u64>().unwrap_or(0)).sum();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            cpu: Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64),
        })
    }
}

/// Ticks per second of CPU time in `/proc`.
fn ticks_per_second() -> u64 {
    #[cfg(unix)]
    return rustix::param::clock_ticks_per_second();
    // Unused: this system has no `/proc`.
    #[cfg(not(unix))]
    1
}

/// Current and maximum resident memory, bytes.
fn memory(pid: u32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib * 1024)
    };
    (field("VmRSS:").unwrap_or(0), field("VmHWM:").unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_parsed_with_any_command_name() {
        let line = "42 (a (b) c) S 7 42 42 0 -1 4194560 9 8 7 6 100 20 3 4 20 0 1 0 55 66 77";
        let stat = Stat::parse(42, line, 100);
        let expected = Stat {
            pid: 42,
            parent: 7,
            cpu: Duration::from_millis(1270),
        };
        assert_eq!(stat, Some(expected));
        assert_eq!(Stat::parse(42, "42 (cut off) S 7", 100), None);
    }

    #[test]
    fn unknown_process_names_and_ids_are_errors() {
        let error = Processes::by_name("no-such-process").unwrap_err();
        assert_eq!(error.to_string(), "no process is named \"no-such-process\"");
        assert!(matches!(
            Processes::by_id(u32::MAX),
            Err(ProcessError::NoSuchId { .. })
        ));
    }

    #[test]
    fn a_process_is_counted_with_its_children() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let own = Processes::by_id(std::process::id())
            .unwrap()
            .sample()
            .unwrap();
        let alone = Processes::by_id(child.id()).unwrap().sample().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(own.processes >= 2, "{own:?}");
        assert_eq!(alone.processes, 1, "{alone:?}");
        assert!(own.resident_bytes > 0 && own.peak_bytes >= own.resident_bytes / 2);
    }
}
