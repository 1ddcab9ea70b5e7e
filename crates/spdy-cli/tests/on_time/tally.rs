//! Which attempts count, and how many of them must be right.
//!
//! A quantity is measured until two of at most three valid attempts agree: two right ones pass, two wrong ones fail. An
//! attempt is valid if the machine kept up: the link's packets were on time and the programs at its ends did not wait for
//! a core, by the program's own limits (docs/reference/link-measurements.md). A wrong rate or a load that is not whole makes no attempt
//! invalid.
//!
//! If the time runs out before that, the quantity was not measured. On a machine that is busy with other processes this is no fault of
//! the program: the test passes and prints a line to stderr. On a free machine the test fails, because then the program itself is late.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Valid attempts of which that many decide.
const DECIDE: usize = 2;
/// Longest time for the attempts of one test; an attempt that has begun ends.
const TIME: Duration = Duration::from_secs(240);
/// A machine is busy if other processes use at least this part of the time of all cores.
const BUSY: f64 = 0.1;

/// The result of one attempt to measure one quantity.
#[derive(Debug)]
pub(crate) enum Attempt {
    /// Valid, and within the bound.
    Right,
    /// Valid, and not: how far off.
    Wrong(String),
    /// The machine did not keep up: how.
    Invalid(String),
}

#[derive(Debug, Default)]
struct Attempts {
    right: usize,
    wrong: Vec<String>,
    invalid: Vec<String>,
}

impl Attempts {
    fn is_open(&self) -> bool {
        self.right < DECIDE && self.wrong.len() < DECIDE
    }
}

/// The attempts of a test.
#[derive(Debug)]
pub(crate) struct Tally {
    began: Instant,
    machine: Option<Machine>,
    quantities: BTreeMap<String, Attempts>,
}

impl Tally {
    /// Of these quantities.
    pub(crate) fn of<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let open = |name: N| (name.into(), Attempts::default());
        Self {
            began: Instant::now(),
            machine: Machine::now(),
            quantities: names.into_iter().map(open).collect(),
        }
    }

    /// Takes an attempt at `name`; those after its decision change nothing.
    pub(crate) fn note(&mut self, name: &str, attempt: Attempt) {
        let attempts = self.quantities.get_mut(name);
        let attempts = attempts.unwrap_or_else(|| panic!("{name} is no quantity of this test"));
        if attempts.is_open() {
            match attempt {
                Attempt::Right => attempts.right += 1,
                Attempt::Wrong(how) => attempts.wrong.push(how),
                Attempt::Invalid(why) => attempts.invalid.push(why),
            }
        }
    }

    /// Whether `name` needs another attempt, and there is time for one.
    pub(crate) fn is_open(&self, name: &str) -> bool {
        self.began.elapsed() < TIME && self.quantities[name].is_open()
    }

    /// Whether any quantity does.
    pub(crate) fn any_is_open(&self) -> bool {
        let mut names = self.quantities.keys();
        names.any(|name| self.is_open(name))
    }

    /// Fails if a quantity is wrong, or was not measured on a machine that is free.
    pub(crate) fn judge(self) {
        let machine = self.machine.zip(Machine::now());
        // A machine whose load is unknown counts as busy.
        let others = machine.map_or(1.0, |(before, now)| now.others_since(&before));
        match self.verdict(others) {
            Ok(None) => {}
            // Past what keeps the output of tests that pass.
            Ok(Some(why)) => drop(writeln!(std::io::stderr(), "{why}")),
            Err(why) => panic!("{why}"),
        }
    }

    /// A report of what was not measured, where other processes used the part `others` of the machine; or why the test fails.
    fn verdict(&self, others: f64) -> Result<Option<String>, String> {
        let those = |is_so: fn(&Attempts) -> bool| -> Vec<_> {
            self.quantities.iter().filter(|(_, it)| is_so(it)).collect()
        };
        let wrong = those(|it| it.wrong.len() >= DECIDE);
        if !wrong.is_empty() {
            return Err(format!("wrong in {DECIDE} valid attempts: {wrong:#?}"));
        }
        let open = those(Attempts::is_open);
        if open.is_empty() {
            return Ok(None);
        }
        let seconds = self.began.elapsed().as_secs();
        let why = format!(
            "not measured: fewer than {DECIDE} valid attempts agree after {seconds} s (other processes used {:.0} % of the machine): {open:#?}",
            others * 100.0
        );
        match others >= BUSY {
            true => Ok(Some(why)),
            false => Err(why),
        }
    }
}

/// What a machine's cores did so far, and our part in it, in ticks.
#[derive(Clone, Copy, Debug)]
struct Machine {
    all: u64,
    idle: u64,
    ours: u64,
}

impl Machine {
    /// `None` where the system does not report it.
    fn now() -> Option<Self> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let own = std::fs::read_to_string("/proc/self/stat").ok()?;
        Self::parse(&stat, &own)
    }

    /// By the first line of `stat`: user nice system idle iowait irq softirq steal; and the fields utime, stime, cutime and
    /// cstime of `own` (proc(5)).
    fn parse(stat: &str, own: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Option<Vec<u64>> = line
            .split_whitespace()
            .take(8)
            .map(|it| it.parse().ok())
            .collect();
        let ticks = ticks.filter(|ticks| ticks.len() == 8)?;
        // A name may have blanks, and ends with the last bracket.
        let (_, fields) = own.rsplit_once(')')?;
        let ours = fields.split_whitespace().skip(11).take(4);
        let ours: Option<Vec<u64>> = ours.map(|it| it.parse().ok()).collect();
        Some(Self {
            all: ticks.iter().sum(),
            idle: ticks[3] + ticks[4],
            ours: ours?.iter().sum(),
        })
    }

    /// The part of all cores' time since `before` that other processes used.
    fn others_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        let idle = self.idle.saturating_sub(before.idle);
        let ours = self.ours.saturating_sub(before.ours);
        all.saturating_sub(idle + ours) as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(attempts: Vec<Attempt>) -> Tally {
        let mut tally = Tally::of(["it"]);
        attempts.into_iter().for_each(|it| tally.note("it", it));
        tally
    }

    fn wrong() -> Attempt {
        Attempt::Wrong("off".to_owned())
    }

    #[test]
    fn two_of_three_valid_attempts_decide() {
        let late = || Attempt::Invalid("late".to_owned());
        let open = tally(vec![Attempt::Right, late(), wrong(), late()]);
        assert!(open.any_is_open());
        let right = tally(vec![wrong(), Attempt::Right, Attempt::Right, wrong()]);
        assert!(!right.any_is_open());
        assert_eq!(right.verdict(0.0), Ok(None));
        let twice_wrong = tally(vec![wrong(), Attempt::Right, wrong(), Attempt::Right]);
        assert!(!twice_wrong.any_is_open() && twice_wrong.verdict(0.9).is_err());
    }

    #[test]
    fn what_was_not_measured_fails_only_where_the_machine_was_free() {
        let once_right = tally(vec![Attempt::Right]);
        assert!(once_right.verdict(0.05).is_err());
        let note = once_right.verdict(0.5).expect("the machine was busy");
        assert!(note.is_some_and(|why| why.contains("not measured") && why.contains("50 %")));
    }

    #[test]
    fn foreign_cpu_time_is_neither_idle_nor_own() {
        let own = |ticks: u64| format!("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 {ticks} 1 2 3 0 0");
        let at = |stat: &str, ticks| Machine::parse(stat, &own(ticks)).expect("it can be read");
        let before = at("cpu  0 0 0 0 0 0 0 0 0 0\n", 0);
        let after = at("cpu  30 0 10 50 0 0 0 10 0 0\n", 20);
        assert!(
            (after.others_since(&before) - 0.3).abs() < 1e-9,
            "{after:?}"
        );
    }
}
