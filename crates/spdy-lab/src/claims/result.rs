//! The result of a claim, and the factors that explain a difference.

use serde::Serialize;

use crate::claims::claim::{Claim, ClaimedResult, Paper, Test};
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::ClaimRunner;
use crate::claims::verdict::Verdict;

/// The result of one claim.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimResult {
    /// The paper.
    pub paper: Paper,
    /// Name of the claim.
    pub name: &'static str,
    /// The claim in one sentence.
    pub what: &'static str,
    /// Its conditions.
    pub conditions: &'static str,
    /// The unit of its figures.
    pub unit: Unit,
    /// The claimed result, as data.
    pub expected: ClaimedResult,
    /// The claimed result, in words.
    pub claimed: String,
    /// The measured result; `None` if it was not measured.
    pub measured: Option<MeasuredResult>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was not measured.
    pub reason: Option<String>,
    /// Results with one factor changed, those with the largest effect first; only for claims that were not reproduced.
    pub shifts: Vec<Shift>,
}

/// The effect of one factor.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shift {
    /// The factor and its new value.
    pub factor: &'static str,
    /// The measured result; of several levels only the first and the last.
    pub measured: MeasuredResult,
    /// Change of the last figure, in the unit of the claim.
    pub by: f64,
}

impl ClaimResult {
    /// Tests `claim`.
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
        let verdict = Verdict::of(&claim.expected, &measured);
        finding.verdict = verdict.with_pages(pages);
        let headline = measured.headline();
        finding.measured = Some(measured);
        if verdict == Verdict::Reproduced || bench.quick {
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
