//! An examination as text: how the page loads, what would help, and what it costs elsewhere.

use std::fmt::Write as _;

use spdy_lab::doctor::examination::{Examination, Finding};

use crate::printer::{BAD, BOLD, DIM, GOOD};
use crate::table::{Cell, Table};

/// All of it, with at most `most` of the remedies that help.
pub(crate) fn render(examination: &Examination, most: usize) -> String {
    let Examination {
        replica,
        network,
        protocol,
        now,
        ..
    } = examination;
    let mut text = format!(
        "{BOLD}{replica}{BOLD:#} over {network} by {protocol}: load {:.0} ms, DOMContentLoaded {:.0} ms, {:.0} connections\n",
        now.load_ms, now.dom_content_loaded_ms, now.connections
    );
    let (remedies, elsewhere): (Vec<_>, Vec<_>) = examination
        .findings
        .iter()
        .partition(|finding| Examination::is_of_page(finding));
    let helps = examination.helping();
    let mut table = Table::new([
        Cell::number("saves ms"),
        Cell::number("of load"),
        Cell::number("saves DCL ms"),
        Cell::word("by (resources)"),
    ]);
    for finding in helps.iter().take(most) {
        row(&mut table, examination, finding);
    }
    let tried = remedies.len();
    let broken = remedies.iter().filter(|finding| !finding.is_whole).count();
    if !helps.is_empty() {
        let _ = write!(text, "\n{table}\n");
    }
    let more = helps.len().saturating_sub(most);
    let left = if more > 0 {
        format!(", of which {more} are not shown")
    } else {
        String::new()
    };
    let lost = if broken > 0 {
        format!("; {broken} broke the page and count for nothing")
    } else {
        String::new()
    };
    let _ = write!(
        text,
        "{DIM}{tried} changes were tried, one at a time: {} save 1 % or more{left}{lost}. Savings do not add up.{DIM:#}\n\n",
        helps.len()
    );
    let mut table = Table::new([
        Cell::number("load ms"),
        Cell::number("more ms"),
        Cell::number("DCL ms"),
        Cell::word("elsewhere"),
    ]);
    for finding in elsewhere {
        table.row([
            Cell::number(format_args!("{:.0}", finding.then.load_ms)),
            signed(-finding.saved_load_ms, -finding.saved_load_ms),
            Cell::number(format_args!("{:.0}", finding.then.dom_content_loaded_ms)),
            Cell::word(examination.describe(finding)),
        ]);
    }
    let _ = write!(text, "{table}");
    text
}

fn row(table: &mut Table, examination: &Examination, finding: &Finding) {
    let share = finding.saved_load_ms / examination.now.load_ms;
    table.row([
        signed(finding.saved_load_ms, -finding.saved_load_ms),
        Cell::number(format_args!("{:.0} %", share * 100.0)),
        signed(
            finding.saved_dom_content_loaded_ms,
            -finding.saved_dom_content_loaded_ms,
        ),
        Cell::word(examination.describe(finding)),
    ]);
}

/// `ms` with its colour: good if `cost` is under nothing.
fn signed(ms: f64, cost: f64) -> Cell {
    let style = if cost <= -0.5 {
        GOOD
    } else if cost >= 0.5 {
        BAD
    } else {
        DIM
    };
    Cell::number(format_args!("{:.0}", if ms.abs() < 0.5 { 0.0 } else { ms })).styled(style)
}

/// The `most` changes of each examination that save most, beside the load that they would help.
pub(crate) fn brief(examinations: &[Examination], most: usize) -> String {
    let mut table = Table::new([
        Cell::word("what would help"),
        Cell::word("network"),
        Cell::word("protocol"),
        Cell::number("saves ms"),
        Cell::number("of load"),
        Cell::word("by (resources)"),
    ]);
    for examination in examinations {
        let Examination {
            replica,
            network,
            protocol,
            now,
            ..
        } = examination;
        let helping = examination.helping();
        let mut told = [&replica[..], network, protocol];
        for finding in helping.iter().take(most) {
            let share = finding.saved_load_ms / now.load_ms;
            table.row(told.map(Cell::word).into_iter().chain([
                signed(finding.saved_load_ms, -finding.saved_load_ms),
                Cell::number(format_args!("{:.0} %", share * 100.0)),
                Cell::word(examination.describe(finding)),
            ]));
            told = [""; 3];
        }
        if helping.is_empty() {
            let nothing = ["–", "–", "nothing that was tried saves 1 %"].map(Cell::word);
            table.row(told.map(Cell::word).into_iter().chain(nothing));
        }
    }
    format!(
        "{table}\n{DIM}Each change was tried by itself, by the protocol that was fastest; savings do not add up. spdy doctor tells of all of them.{DIM:#}"
    )
}
