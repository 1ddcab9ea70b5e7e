//! `spdy lab compare`: what changed between two stores.

use std::cmp::Ordering;

use spdy_lab::stats::{Difference, MIN_RUNS};
use spdy_lab::store::compare::{CellComparison, Measure, StoreComparison};
use spdy_lab::store::location::Location;
use spdy_sim::model;

use super::open_store;
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{BAD, BOLD, Cell, DIM, GOOD, Printer, Table, WARN, escape};

/// Cells in the table; those with the largest difference come first.
const SHOWN_CELLS: usize = 20;

/// Arguments of `spdy lab compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store before the change
    #[arg(value_name = "BEFORE")]
    before: Location,

    /// The store after the change
    #[arg(value_name = "AFTER")]
    after: Location,

    /// Value to compare: load, dcl (DOMContentLoaded), tow (time on the wire), bytes, packets, connections
    #[arg(short, long, value_name = "NAME", default_value = "load", value_parser = measure)]
    measure: Measure,

    /// Difference that does not matter, in percent of the value before
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    margin: f64,

    /// Fail if a cell surely increases by more than this
    #[arg(short, long, value_name = "PERCENT", value_parser = percent)]
    budget: Option<f64>,

    /// Print everything as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab compare before.db after.db"
    "spdy lab compare before.db after.db --budget 2%    a gate for CI: exit code 1 if any cell is slower by more"
    "spdy lab compare before.db after.db --measure bytes --json"
};

fn measure(name: &str) -> Result<Measure, String> {
    let found = Measure::ALL
        .into_iter()
        .find(|measure| measure.name() == name);
    found.ok_or_else(|| {
        let names = Measure::ALL.map(Measure::name).join(", ");
        format!("expected one of {names}")
    })
}

/// Parses `2%`, `2` or `0.5 %` as a fraction of 1.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage from 0 to 1000, such as 2%".to_owned()),
    }
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let (mut before, mut after) = (open_store(&args.before)?, open_store(&args.after)?);
    let compared = StoreComparison::of(&mut before, &mut after, args.measure, args.margin)?;
    if args.json {
        printer.json(&compared)?;
    } else {
        print(&compared, args, printer)?;
    }
    if let (Some(before), Some(after)) = (compared.model_before, compared.model_after)
        && before != after
    {
        let [before, after] = [before, after].map(model::format);
        printer.note(format_args!(
            "{WARN}the model{WARN:#} is {before} before and {after} after: differences may come from it"
        ));
    }
    let missing = [
        ("only before", &compared.only_before),
        ("only after", &compared.only_after),
        (
            "not compared, because a value is missing or 0",
            &compared.not_compared,
        ),
    ];
    for (what, cells) in missing {
        if let [first, ..] = cells.as_slice() {
            let (count, first) = (cells.len(), escape(first));
            printer.note(format_args!(
                "{WARN}{count} cells{WARN:#} are {what}: {first} ..."
            ));
        }
    }
    check_budget(&compared, args, printer)
}

/// Prints the table and its summary.
fn print(compared: &StoreComparison, args: &Args, printer: &Printer) -> anyhow::Result<()> {
    let count = |difference| compared.count(difference);
    let (more, less) = (count(Difference::More), count(Difference::Less));
    let [word_more, word_less] = words(args.measure);
    let (same, undecided) = (count(Difference::Same), count(Difference::Undecided));
    let mut differ: Vec<_> = compared
        .cells
        .iter()
        .filter(|cell| cell.comparison.difference != Difference::Same)
        .collect();
    let far = |cell: &CellComparison| cell.comparison.ratio.value.ln().abs();
    differ.sort_by(|a, b| far(b).partial_cmp(&far(a)).unwrap_or(Ordering::Equal));
    if !differ.is_empty() {
        printer.line(table(
            &differ[..differ.len().min(SHOWN_CELLS)],
            args.measure,
        ))?;
    }
    if let hidden @ 1.. = differ.len().saturating_sub(SHOWN_CELLS) {
        printer.line(format_args!(
            "{DIM}and {hidden} more cells that differ{DIM:#}"
        ))?;
    }
    let margin = args.margin * 100.0;
    printer.line(format_args!(
        "{BOLD}{}{BOLD:#} of {} cells: {more} {word_more}, {less} {word_less}, {same} the same within {margin} %, {undecided} undecided",
        args.measure.name(),
        compared.cells.len(),
    ))?;
    if let Some(overall) = compared.overall {
        printer.line(format_args!(
            "overall ratio after/before {:.3} ({:.3} to {:.3})",
            overall.value, overall.low, overall.high
        ))?;
    }
    Ok(())
}

/// The words for more and less of `measure`.
fn words(measure: Measure) -> [&'static str; 2] {
    match measure {
        Measure::Load | Measure::DomContentLoaded | Measure::TimeOnWire => ["slower", "faster"],
        Measure::Bytes | Measure::Packets | Measure::Connections => ["more", "less"],
    }
}

fn table(cells: &[&CellComparison], measure: Measure) -> Table {
    let unit = measure.unit();
    let head = |name: &str| match unit {
        "" => Cell::number(name),
        unit => Cell::number(format_args!("{name} {unit}")),
    };
    let [word_more, word_less] = words(measure);
    let words = ["", "cell"].map(Cell::word);
    let mut table = Table::new(
        [head("before"), head("after")]
            .into_iter()
            .chain(["ratio", "95 %"].map(Cell::number))
            .chain(words),
    );
    for cell in cells {
        let comparison = &cell.comparison;
        let (word, style) = match comparison.difference {
            Difference::More => (word_more, BAD),
            Difference::Less => (word_less, GOOD),
            Difference::Undecided | Difference::Same => ("undecided", DIM),
        };
        let heaps = match (&cell.modes_before, &cell.modes_after) {
            (None, None) => "",
            _ => " (two modes: see its runs)",
        };
        let ratio = &comparison.ratio;
        table.row([
            Cell::number(format_args!("{:.0}", cell.before)),
            Cell::number(format_args!("{:.0}", cell.after)),
            Cell::number(format_args!("{:.3}", ratio.value)).styled(style),
            Cell::number(format_args!("{:.3}-{:.3}", ratio.low, ratio.high)),
            Cell::word(word).styled(style),
            Cell::word(format_args!("{}{heaps}", cell.cell)),
        ]);
    }
    table
}

/// Checks that all cells are within the budget.
fn check_budget(
    compared: &StoreComparison,
    args: &Args,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let Some(budget) = args.budget else {
        return Ok(Outcome::Done);
    };
    let undecided = compared.over(budget, Difference::Undecided).count();
    if undecided > 0 {
        printer.note(format_args!(
            "{WARN}{undecided} cells{WARN:#} are over the budget and undecided: use more runs, at least {MIN_RUNS}"
        ));
    }
    let over = || compared.over(budget, Difference::More);
    if let Some(worst) = over().max_by(|a, b| {
        a.comparison
            .ratio
            .value
            .total_cmp(&b.comparison.ratio.value)
    }) {
        let count = over().count();
        let more = (worst.comparison.ratio.value - 1.0) * 100.0;
        anyhow::bail!(
            "{count} cells take more than {} % more {}; the worst takes {more:.1} % more: {}",
            budget * 100.0,
            args.measure.name(),
            escape(&worst.cell)
        );
    }
    let failed: usize = compared.cells.iter().map(|cell| cell.failed_after).sum();
    if failed > 0 {
        anyhow::bail!("{failed} loads after are incomplete");
    }
    let not_compared = compared.only_before.len() + compared.not_compared.len();
    if not_compared > 0 || compared.cells.is_empty() {
        anyhow::bail!(
            "cannot compare {not_compared} cells of before; {} cells were compared",
            compared.cells.len()
        );
    }
    Ok(Outcome::Done)
}
