//! Decides which attempts are valid, and how many of them must be right.
//!
//! A quantity is measured until two of at most three valid attempts agree: two right ones pass, two wrong ones fail. An attempt is
//! valid if the machine was fast enough: the link's packets were on time and the programs at its ends did not wait for a core, by
//! the program's own limits (docs/reference/link-measurements.md). A wrong rate or an incomplete load does not make an attempt
//! invalid.
//!
//! If the time runs out before that, the quantity was not measured. If other processes keep the machine busy, this is not the
//! program's fault: the test passes and prints a line to stderr. On a free machine the test fails, because then the program itself
//! is late.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Number of agreeing valid attempts that decide.
const DECIDE: usize = 2;
/// Maximum time for the attempts of one test; an attempt that has started is completed.
const TIME: Duration = Duration::from_secs(240);
/// A machine is busy if other processes use at least this fraction of the time of all cores.
const BUSY: f64 = 0.1;

/// The result of one attempt to measure one quantity.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Valid, and within the bound.
    Right,
    /// Valid, but out of bounds, with the error.
    Wrong(String),
    /// The machine was too slow, with the reason.
    Invalid(String),
}

#[derive(Debug, Default)]
struct Attempts {
    right_count: usize,
    failures: Vec<String>,
    invalid: Vec<String>,
}

impl Attempts {
    fn is_open(&self) -> bool {
        self.right_count < DECIDE && self.failures.len() < DECIDE
    }
}

/// The attempts of a test.
#[derive(Debug)]
pub(crate) struct Tally {
    start: Instant,
    machine: Option<Machine>,
    quantities: BTreeMap<String, Attempts>,
}

impl Tally {
    /// A tally of these quantities.
    pub(crate) fn new<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let open = |name: N| (name.into(), Attempts::default());
        Self {
            start: Instant::now(),
            machine: Machine::now(),
            quantities: names.into_iter().map(open).collect(),
        }
    }

    /// Records an attempt at `name`. Attempts after its decision have no effect.
    pub(crate) fn record(&mut self, name: &str, attempt: Attempt) {
        let attempts = self.quantities.get_mut(name);
        let attempts = attempts.unwrap_or_else(|| panic!("unknown quantity {name}"));
        if attempts.is_open() {
            match attempt {
                Attempt::Right => attempts.right_count += 1,
                Attempt::Wrong(how) => attempts.failures.push(how),
                Attempt::Invalid(reason) => attempts.invalid.push(reason),
            }
        }
    }

    /// Whether `name` needs another attempt, and there is time for one.
    pub(crate) fn is_open(&self, name: &str) -> bool {
        self.start.elapsed() < TIME && self.quantities[name].is_open()
    }

    /// Whether any quantity needs another attempt.
    pub(crate) fn has_open_quantities(&self) -> bool {
        let mut names = self.quantities.keys();
        names.any(|name| self.is_open(name))
    }

    /// Fails if a quantity is wrong, or was not measured on a free machine.
    pub(crate) fn judge(self) {
        let machine = self.machine.zip(Machine::now());
        // A machine whose load is unknown counts as busy.
        let other_use = machine.map_or(1.0, |(earlier, now)| now.other_use_since(&earlier));
        match self.verdict(other_use) {
            Ok(None) => {}
            // Written directly, because the output of passing tests is captured.
            Ok(Some(reason)) => drop(writeln!(std::io::stderr(), "{reason}")),
            Err(reason) => panic!("{reason}"),
        }
    }

    /// `Ok` with a report of the quantities that were not measured, because other processes used the fraction `other_use` of the
    /// machine. `Err` with the reason why the test fails.
    fn verdict(&self, other_use: f64) -> Result<Option<String>, String> {
        let matching = |predicate: fn(&Attempts) -> bool| -> Vec<_> {
            self.quantities
                .iter()
                .filter(|(_, attempts)| predicate(attempts))
                .collect()
        };
        let wrong_quantities = matching(|attempts| attempts.failures.len() >= DECIDE);
        if !wrong_quantities.is_empty() {
            return Err(format!(
                "wrong in {DECIDE} valid attempts: {wrong_quantities:#?}"
            ));
        }
        let open = matching(Attempts::is_open);
        if open.is_empty() {
            return Ok(None);
        }
        let seconds = self.start.elapsed().as_secs();
        let reason = format!(
            "not measured: fewer than {DECIDE} valid attempts agree after {seconds} s (other processes used {:.0} % of the machine): {open:#?}",
            other_use * 100.0
        );
        match other_use >= BUSY {
            true => Ok(Some(reason)),
            false => Err(reason),
        }
    }
}

/// CPU time of all cores, and of this process, in ticks.
#[derive(Clone, Copy, Debug)]
struct Machine {
    all: u64,
    idle: u64,
    own_ticks: u64,
}

impl Machine {
    /// `None` if the system does not report it.
    fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&stat, &own)
    }

    /// Parses the first line of `stat` (user nice system idle iowait irq softirq steal), and utime, stime, cutime and cstime of
    /// `own_stat` (proc(5)).
    fn parse(stat: &str, own_stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Option<Vec<u64>> = line
            .split_whitespace()
            .take(8)
            .map(|ticks| ticks.parse().ok())
            .collect();
        let ticks = ticks.filter(|ticks| ticks.len() == 8)?;
        // A process name may contain spaces; it ends at the last bracket.
        let (_, fields) = own_stat.rsplit_once(')')?;
        let own_ticks = fields.split_whitespace().skip(11).take(4);
        let own_ticks: Option<Vec<u64>> = own_ticks.map(|ticks| ticks.parse().ok()).collect();
        Some(Self {
            all: ticks.iter().sum(),
            idle: ticks[3] + ticks[4],
            own_ticks: own_ticks?.iter().sum(),
        })
    }

    /// The fraction of all cores' time since `earlier` that other processes used.
    fn other_use_since(&self, earlier: &Self) -> f64 {
        let all = self.all.saturating_sub(earlier.all).max(1);
        let idle = self.idle.saturating_sub(earlier.idle);
        let own_ticks = self.own_ticks.saturating_sub(earlier.own_ticks);
        all.saturating_sub(idle + own_ticks) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(attempts: Vec<Attempt>) -> Tally {
        let mut tally = Tally::new(["it"]);
        attempts
            .into_iter()
            .for_each(|attempt| tally.record("it", attempt));
        tally
    }

    fn wrong_attempt() -> Attempt {
        Attempt::Wrong("off".to_owned())
    }

    #[test]
    fn two_of_three_valid_attempts_decide() {
        let late = || Attempt::Invalid("late".to_owned());
        let open = tally(vec![Attempt::Right, late(), wrong_attempt(), late()]);
        assert!(open.has_open_quantities());
        let half_right = tally(vec![
            wrong_attempt(),
            Attempt::Right,
            Attempt::Right,
            wrong_attempt(),
        ]);
        assert!(!half_right.has_open_quantities());
        assert_eq!(half_right.verdict(0.0), Ok(None));
        let twice_wrong = tally(vec![
            wrong_attempt(),
            Attempt::Right,
            wrong_attempt(),
            Attempt::Right,
        ]);
        assert!(!twice_wrong.has_open_quantities() && twice_wrong.verdict(0.9).is_err());
    }

    #[test]
    fn an_unmeasured_quantity_fails_only_on_a_free_machine() {
        let once_right = tally(vec![Attempt::Right]);
        assert!(once_right.verdict(0.05).is_err());
        let note = once_right.verdict(0.5).expect("the machine was busy");
        assert!(
            note.is_some_and(|reason| reason.contains("not measured") && reason.contains("50 %"))
        );
    }

    #[test]
    fn foreign_cpu_time_is_neither_idle_nor_own() {
        let process_stat =
            |ticks: u64| format!("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 {ticks} 1 2 3 0 0");
        let at = |stat: &str, ticks| {
            Machine::parse(stat, &process_stat(ticks)).expect("valid statistics")
        };
        let earlier = at("cpu  0 0 0 0 0 0 0 0 0 0\n", 0);
        let later = at("cpu  30 0 10 50 0 0 0 10 0 0\n", 20);
        assert!(
            (later.other_use_since(&earlier) - 0.3).abs() < 1e-9,
            "{later:?}"
        );
    }
}
