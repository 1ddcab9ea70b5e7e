//! The table of `docs/measurements/claims.md`.

use std::fmt::Write as _;

use crate::claims::claim::Paper;
use crate::claims::result::ClaimResult;
use crate::claims::verdict::Verdict;

/// Formats `findings` as Markdown: a table for each paper, followed by explanations of claims that were not reproduced.
#[must_use]
pub fn markdown(findings: &[ClaimResult]) -> String {
    let mut out = String::new();
    for paper in Paper::ALL {
        let of: Vec<_> = findings.iter().filter(|it| it.paper == paper).collect();
        if of.is_empty() {
            continue;
        }
        let _ = write!(
            out,
            "### {}\n\n| claim | conditions | claimed | measured | 95 % | verdict |\n| --- | --- | --- | --- | --- | --- |\n",
            paper.name()
        );
        for finding in &of {
            let _ = writeln!(out, "{}", markdown_row(finding));
        }
        out.push('\n');
        for finding in of.iter().filter(|it| !it.shifts.is_empty()) {
            let _ = writeln!(out, "- {}", explanation(finding));
        }
        if of.iter().any(|it| !it.shifts.is_empty()) {
            out.push('\n');
        }
    }
    out
}

/// The table row of `finding`.
#[must_use]
pub fn markdown_row(finding: &ClaimResult) -> String {
    let (measured, interval) = figures(finding);
    format!(
        "| **{}**: {} | {} | {} | {measured} | {interval} | {} |",
        finding.name,
        finding.what,
        finding.conditions,
        finding.claimed,
        verdict(finding)
    )
}

fn figures(finding: &ClaimResult) -> (String, String) {
    match &finding.measured {
        None => ("–".to_owned(), "–".to_owned()),
        Some(measured) => {
            let mut figure = measured.describe(finding.unit);
            if measured.left_out > 0 {
                let _ = write!(figure, " ({} pairs left out)", measured.left_out);
            }
            (figure, measured.intervals(finding.unit))
        }
    }
}

fn verdict(finding: &ClaimResult) -> String {
    match (&finding.reason, finding.verdict) {
        (Some(reason), verdict) => format!("{}: {reason}", verdict.label()),
        (None, Verdict::Reproduced) => "**reproduced**".to_owned(),
        (None, verdict) => verdict.label().to_owned(),
    }
}

/// One line: the figure, and the figure with each factor changed.
fn explanation(finding: &ClaimResult) -> String {
    let unit = finding.unit;
    let shifts = finding
        .shifts
        .iter()
        .map(|shift| format!("{}: {}", shift.factor, shift.measured.describe(unit)));
    let measured = finding.measured.as_ref();
    let ends = measured.map_or_else(String::new, |measured| match &measured.points[..] {
        [first, .., last] => format!(
            "{}, {}",
            unit.format(first.estimate.value),
            unit.format(last.estimate.value)
        ),
        _ => measured.describe(unit),
    });
    format!(
        "**{}**, {ends}; one factor changed at a time: {}.",
        finding.name,
        shifts.collect::<Vec<_>>().join("; ")
    )
}
