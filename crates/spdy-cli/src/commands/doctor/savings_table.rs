//! An examination as tables: how the page loads, what each change saves, and what it costs over other networks and protocols.

use std::fmt::Write as _;

use spdy_lab::doctor::examination::{Examination, RemedyResult, SavedTime};

use crate::output::{BAD, BOLD, Cell, DIM, GOOD, Table};

/// Formats the examination, with at most `most` of the remedies that help.
pub(crate) fn render(examination: &Examination, most: usize) -> String {
    let Examination {
        replica,
        network,
        protocol,
        now,
        ..
    } = examination;
    let medians = match examination.runs {
        1 => String::new(),
        runs => format!(" (medians of {runs} loads)"),
    };
    let mut text = format!(
        "{BOLD}{replica}{BOLD:#} over {network} by {protocol}: load {:.0} ms, DOMContentLoaded {:.0} ms, {:.0} connections{medians}\n",
        now.load_ms, now.dom_content_loaded_ms, now.connections
    );
    let (remedies, other_conditions): (Vec<_>, Vec<_>) = examination
        .findings
        .iter()
        .partition(|finding| Examination::is_of_page(finding));
    let helps = examination.helpful();
    let has_chance = helps.iter().any(|finding| !finding.load.is_exact);
    let mut table = Table::new(remedy_heads(has_chance));
    for finding in helps.iter().take(most) {
        row(&mut table, examination, finding, has_chance);
    }
    let tried = remedies.len();
    let broken = remedies.iter().filter(|finding| !finding.is_whole).count();
    if !helps.is_empty() {
        let _ = write!(text, "\n{table}\n");
    }
    let more = helps.len().saturating_sub(most);
    let not_shown = if more > 0 {
        format!(" ({more} not shown)")
    } else {
        String::new()
    };
    let lost = if broken > 0 {
        format!("; {broken} broke the page and are not counted")
    } else {
        String::new()
    };
    let undecided = match examination.undecided() {
        0 => String::new(),
        count => format!("; {count} are undecided and need more --runs"),
    };
    let _ = write!(
        text,
        "{DIM}{tried} changes were tried, one at a time: {} save 1 % or more{not_shown}{undecided}{lost}. Savings do not add up.{DIM:#}\n\n",
        helps.len()
    );
    let has_chance = other_conditions
        .iter()
        .any(|finding| !finding.load.is_exact);
    let mut table = Table::new(other_conditions_heads(has_chance));
    for finding in other_conditions {
        let more = SavedTime {
            median_ms: -finding.load.median_ms,
            low_ms: -finding.load.high_ms,
            high_ms: -finding.load.low_ms,
            ..finding.load
        };
        let mut cells = vec![
            Cell::number(format_args!("{:.0}", finding.then.load_ms)),
            certain_saving(&more, more.median_ms),
        ];
        cells.extend(has_chance.then(|| interval(&more)));
        cells.push(Cell::number(format_args!(
            "{:.0}",
            finding.then.dom_content_loaded_ms
        )));
        cells.push(Cell::word(examination.describe(finding)));
        table.row(cells);
    }
    let _ = write!(text, "{table}");
    if has_chance {
        let _ = write!(text, "\n{DIM}{CHANCE_NOTE}{DIM:#}");
    }
    text
}

/// What a dash and an interval mean.
const CHANCE_NOTE: &str = "Intervals are 95 % intervals over runs with the same seeds. A dash: the interval includes 0, so the \
    difference may be random.";

/// Heads of the table of remedies; intervals only where there is chance.
fn remedy_heads(has_chance: bool) -> Vec<Cell> {
    let interval = || has_chance.then(|| Cell::number("95 %"));
    let mut heads = vec![Cell::number("saves ms")];
    heads.extend(interval());
    heads.extend(["of load", "saves DCL ms"].map(Cell::number));
    heads.extend(interval());
    heads.push(Cell::word("by (resources)"));
    heads
}

/// Heads of the table of other protocols and networks.
fn other_conditions_heads(has_chance: bool) -> Vec<Cell> {
    let mut heads = vec![Cell::number("load ms"), Cell::number("more ms")];
    heads.extend(has_chance.then(|| Cell::number("95 %")));
    heads.extend([Cell::number("DCL ms"), Cell::word("other conditions")]);
    heads
}

fn row(table: &mut Table, examination: &Examination, finding: &RemedyResult, has_chance: bool) {
    let (load, parsed) = (&finding.load, &finding.dom_content_loaded);
    let mut cells = vec![certain_saving(load, -load.median_ms)];
    cells.extend(has_chance.then(|| interval(load)));
    cells.push(part(examination, load));
    cells.push(certain_saving(parsed, -parsed.median_ms));
    cells.extend(has_chance.then(|| interval(parsed)));
    cells.push(Cell::word(examination.describe(finding)));
    table.row(cells);
}

/// The part of load that is certainly saved.
fn part(examination: &Examination, saved: &SavedTime) -> Cell {
    Cell::number(match saved.certain_ms() {
        Some(ms) => format!("{:.0} %", ms / examination.now.load_ms * 100.0),
        None => "–".to_owned(),
    })
}

/// The difference if there is one, coloured by its `cost`; without chance also 0.
fn certain_saving(saved: &SavedTime, cost: f64) -> Cell {
    match saved.is_certain || saved.is_exact {
        true => signed(saved.median_ms, cost),
        false => Cell::number("–").styled(DIM),
    }
}

fn interval(saved: &SavedTime) -> Cell {
    let interval = saved.interval();
    Cell::number(interval.unwrap_or_else(|| "exact".to_owned())).styled(DIM)
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

/// The `most` changes of each examination that save most, with the load that each would help.
pub(crate) fn brief(examinations: &[Examination], most: usize) -> String {
    let mut table = Table::new([
        Cell::word("what would help"),
        Cell::word("network"),
        Cell::word("protocol"),
        Cell::number("saves ms"),
        Cell::number("95 %"),
        Cell::number("of load"),
        Cell::word("by (resources)"),
    ]);
    for examination in examinations {
        let Examination {
            replica,
            network,
            protocol,
            ..
        } = examination;
        let helping = examination.helpful();
        let mut labels = [&replica[..], network, protocol];
        for finding in helping.iter().take(most) {
            let load = &finding.load;
            table.row(labels.map(Cell::word).into_iter().chain([
                certain_saving(load, -load.median_ms),
                interval(load),
                part(examination, load),
                Cell::word(examination.describe(finding)),
            ]));
            labels = [""; 3];
        }
        if helping.is_empty() {
            let nothing = ["–", "–", "–", "no change saves 1 %"].map(Cell::word);
            table.row(labels.map(Cell::word).into_iter().chain(nothing));
        }
    }
    format!(
        "{table}\n{DIM}Each change was tried alone, over the fastest protocol; savings do not add up. `spdy doctor` reports all \
         changes. 95 %: the interval of the saved time.{DIM:#}"
    )
}
