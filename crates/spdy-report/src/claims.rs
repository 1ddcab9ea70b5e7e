//! The HTML page of papers' claims that were tested again: what was published, what was measured, and the verdict.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use spdy_lab::claims::{ClaimResult, Paper, Verdict};

use crate::filter_form::{FilterGroup, FilterOption, hiding_rule, write_form};
use crate::page::open_page;
use crate::tables::{close, open};
use crate::text::FullText;

/// Verdicts by their place in the list of all, with the number of claims.
type VerdictCounts = BTreeMap<usize, (Verdict, usize)>;

/// Renders `results` as one HTML document without scripts and external resources, with a table for each paper and a filter by verdict.
///
/// `notes` are shown at the top as names and values: conditions, seed, version.
#[must_use]
pub fn claims(results: &[ClaimResult], notes: &[(String, String)]) -> String {
    let mut out = String::new();
    write_page(&mut out, results, notes).expect("a String takes every write");
    out
}

fn write_page(
    out: &mut String,
    results: &[ClaimResult],
    notes: &[(String, String)],
) -> fmt::Result {
    let papers: Vec<(Paper, Vec<&ClaimResult>)> = Paper::ALL
        .into_iter()
        .map(|paper| {
            let of_paper = results.iter().filter(|result| result.paper == paper);
            (paper, of_paper.collect::<Vec<_>>())
        })
        .filter(|(_, of_paper)| !of_paper.is_empty())
        .collect();
    let names: Vec<_> = papers.iter().map(|(paper, _)| paper.name()).collect();
    let title = format!("Claims: {}", names.join(", "));
    let about = format!(
        "{} claims of papers on SPDY, tested again. Intervals are of 95 %; exact is a figure without randomness. The verdict follows from \
         the published value with its tolerance, and from our interval.",
        results.len()
    );
    let counts = counts(results);
    let mut rules: String = counts
        .keys()
        .map(|place| hiding_rule(&id(*place)))
        .collect();
    for (paper, of_paper) in &papers {
        rules.push_str(&section_rule(*paper, of_paper));
    }
    open_page(out, &title, &about, notes, &rules)?;
    write_filter(out, &counts)?;
    for (paper, of_paper) in &papers {
        write!(
            out,
            "<section class=\"paper-{name}\"><h2>{name}</h2><p>{}</p>",
            FullText(paper.citation()),
            name = paper.name(),
        )?;
        write_table(out, paper.name(), of_paper)?;
        write!(out, "</section>")?;
    }
    writeln!(out, "</main></body></html>")
}

fn counts(results: &[ClaimResult]) -> VerdictCounts {
    let mut counts = VerdictCounts::new();
    for result in results {
        let count = counts
            .entry(place(result.verdict))
            .or_insert((result.verdict, 0));
        count.1 += 1;
    }
    counts
}

/// Verdicts are sorted as they are declared.
const fn place(verdict: Verdict) -> usize {
    verdict as usize
}

fn id(place: usize) -> String {
    format!("verdict-{place}")
}

/// Hides the section of a paper while none of its verdicts is selected.
fn section_rule(paper: Paper, results: &[&ClaimResult]) -> String {
    let mut places: Vec<_> = results.iter().map(|result| place(result.verdict)).collect();
    places.sort_unstable();
    places.dedup();
    let unchecked = places
        .iter()
        .map(|place| format!(":has(#{}:not(:checked))", id(*place)));
    let unchecked: String = unchecked.collect();
    format!("body{unchecked} .paper-{}{{display:none}}", paper.name())
}

fn write_filter(out: &mut String, counts: &VerdictCounts) -> fmt::Result {
    let option = |(place, (verdict, count)): (&usize, &(Verdict, usize))| FilterOption {
        id: id(*place),
        value: format!("verdict={verdict}"),
        label: format!("{verdict} ({count})"),
    };
    let group = FilterGroup {
        name: "verdict".to_owned(),
        options: counts.iter().map(option).collect(),
    };
    write_form(
        out,
        "Only claims with the selected verdicts are shown.",
        &[group],
    )?;
    write!(out, "<dl class=\"meanings\">")?;
    for (verdict, _) in counts.values() {
        write!(
            out,
            "<div><dt>{}</dt><dd>{}</dd></div>",
            VerdictTag(*verdict),
            FullText(verdict.explanation())
        )?;
    }
    write!(out, "</dl>")
}

fn write_table(out: &mut String, name: &str, results: &[&ClaimResult]) -> fmt::Result {
    let head = [
        "claim",
        "verdict",
        "published",
        "ours",
        "95 % interval",
        "conditions",
        "explanation",
    ];
    open(out, &format!("Claims of {name}"), &head)?;
    for result in results {
        let (ours, interval) = match &result.measured {
            None => ("–".to_owned(), "–".to_owned()),
            Some(measured) => {
                let mut ours = measured.describe(result.unit);
                if measured.left_out > 0 {
                    ours.push_str(&format!(
                        " ({} of {} pairs of loads are left out: incomplete)",
                        measured.left_out, measured.loads
                    ));
                }
                (ours, measured.intervals(result.unit))
            }
        };
        write!(
            out,
            "<tr class=\"{}\"><th scope=\"row\" class=\"prose\"><b>{}</b>: {}</th><td class=\"word\">{}</td><td class=\"prose\">{}</td>\
             <td class=\"prose\">{}</td><td class=\"prose\">{}</td><td class=\"prose long\">{}</td><td class=\"prose long\">{}</td></tr>",
            id(place(result.verdict)),
            FullText(result.name),
            FullText(result.what),
            VerdictTag(result.verdict),
            FullText(&result.claimed),
            FullText(&ours),
            FullText(&interval),
            FullText(result.conditions),
            FullText(&explanation(result)),
        )?;
    }
    close(out)
}

/// Why a claim was not tested, and the figure with one factor changed at a time.
fn explanation(result: &ClaimResult) -> String {
    let mut parts: Vec<String> = result.reason.iter().cloned().collect();
    parts.extend(result.shifts.iter().map(|shift| {
        let figure = shift.measured.describe(result.unit);
        format!("with {}: {figure}", shift.factor)
    }));
    parts.join("; ")
}

/// A verdict with its colour, which the style sheet chooses by the name.
struct VerdictTag(Verdict);

impl fmt::Display for VerdictTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.to_string();
        let name = FullText(&name);
        write!(f, "<b class=\"verdict\" data-verdict=\"{name}\">{name}</b>")
    }
}

#[cfg(test)]
mod tests {
    use spdy_lab::claims::{ClaimRunner, LoadMemo, all};

    use super::*;

    fn results() -> Vec<ClaimResult> {
        let runner = ClaimRunner {
            runs: 1,
            threads: None,
            corpus: None,
            quick: true,
            on_loads: &|_| {},
            memo: LoadMemo::default(),
        };
        // Claims about a corpus cannot be run without one, and cost nothing.
        let claims = all().filter(|claim| matches!(claim.paper, Paper::Whitepaper | Paper::Unm));
        claims
            .map(|claim| ClaimResult::of(claim, &runner))
            .collect()
    }

    #[test]
    fn each_claim_has_a_row_with_published_value_and_verdict() {
        let results = results();
        let page = claims(&results, &[("seed".to_owned(), "1".to_owned())]);
        assert!(page.contains("<dt>seed</dt><dd>1</dd>"));
        for result in &results {
            let row = format!(
                "<b>{}</b>: {}",
                FullText(result.name),
                FullText(result.what)
            );
            let (_, row) = page.split_once(&row).unwrap_or_else(|| panic!("no {row}"));
            let row = row.split("</tr>").next().unwrap_or_default();
            for text in [
                &result.claimed,
                &result.verdict.to_string(),
                result.conditions,
            ]
            .map(|text| FullText(text).to_string())
            {
                assert!(row.contains(&text), "no {text} in {row}");
            }
            assert!(page.contains(&FullText(result.paper.citation()).to_string()));
        }
        assert!(!page.contains("<script"));
    }

    #[test]
    fn the_filter_has_a_checkbox_with_a_count_for_each_verdict() {
        let results = results();
        let page = claims(&results, &[]);
        let counts = counts(&results);
        assert_eq!(page.matches("type=\"checkbox\"").count(), counts.len());
        for (place, (verdict, count)) in counts {
            let label = format!("checked>{verdict} ({count})</label>");
            assert!(page.contains(&label), "no {label}");
            let rows = page
                .matches(&format!("<tr class=\"verdict-{place}\">"))
                .count();
            assert_eq!(rows, count, "{verdict}");
            assert!(page.contains(&FullText(verdict.explanation()).to_string()));
        }
    }
}
