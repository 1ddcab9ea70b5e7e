//! A claim put to the test, and what explains it where it failed.

use serde::Serialize;

use crate::claims::claim::{Claim, ClaimedResult, Paper, Test};
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::ClaimRunner;
use crate::claims::verdict::Verdict;

/// What became of one claim.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimResult {
    /// Where it was published.
    pub paper: Paper,
    /// Name of the claim.
    pub name: &'static str,
    /// The sentence.
    pub what: &'static str,
    /// Under which conditions.
    pub conditions: &'static str,
    /// What its figures count.
    pub unit: Unit,
    /// What was claimed, as data.
    pub expected: ClaimedResult,
    /// What was claimed, in words.
    pub claimed: String,
    /// What came out; `None` if it was not run.
    pub measured: Option<MeasuredResult>,
    /// What follows.
    pub verdict: Verdict,
    /// Why it was not run.
    pub reason: Option<String>,
    /// The same with one factor changed, those that move it furthest first; only of what was not reproduced.
    pub shifts: Vec<Shift>,
}

/// What one factor does.
#[derive(Clone, Debug, Serialize)]
pub struct Shift {
    /// What was changed, and to what.
    pub factor: &'static str,
    /// What came out: of a row of levels, the first and the last.
    pub measured: MeasuredResult,
    /// How far the last figure moved.
    pub by: f64,
}

impl ClaimResult {
    /// Puts `claim` to the test.
    ///
    /// # Panics
    ///
    /// If a load panics, which is a fault of this program.
    #[must_use]
    pub fn of(claim: &Claim, bench: &ClaimRunner<'_>) -> Self {
        let mut finding = Self {
            paper: claim.paper,
            name: claim.name,
            what: claim.what,
            conditions: claim.conditions,
            unit: claim.unit,
            claimed: claim.expected.describe(claim.unit),
            expected: claim.expected,
            measured: None,
            verdict: Verdict::CannotBeRun,
            reason: None,
            shifts: Vec::new(),
        };
        let (pages, setting, measure, factors) = match &claim.test {
            Test::CannotRun(reason) => {
                finding.reason = Some((*reason).to_owned());
                return finding;
            }
            Test::Run {
                pages,
                setting,
                measure,
                factors,
            } => (pages, setting(), measure, *factors),
        };
        let measured = match measure(bench, pages, &setting) {
            Ok(measured) => measured,
            Err(reason) => {
                finding.reason = Some(reason);
                return finding;
            }
        };
        finding.verdict = Verdict::of(&claim.expected, &measured);
        let headline = measured.headline();
        finding.measured = Some(measured);
        if finding.verdict == Verdict::Reproduced || bench.quick {
            return finding;
        }
        for factor in factors {
            let mut changed = setting.clone();
            (factor.change)(&mut changed);
            changed.ends_only = true;
            if let Ok(measured) = measure(bench, pages, &changed) {
                let by = measured.headline() - headline;
                finding.shifts.push(Shift {
                    factor: factor.name,
                    measured,
                    by,
                });
            }
        }
        let far = |shift: &Shift| shift.by.abs();
        finding.shifts.sort_by(|a, b| far(b).total_cmp(&far(a)));
        finding
    }
}
