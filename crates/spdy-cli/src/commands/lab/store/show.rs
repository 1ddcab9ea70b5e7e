//! `spdy lab show`: prints the cells of a store, with their medians.

use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;
use spdy_lab::store::summary::{self, CellSummary};
use spdy_sim::model::{self, MODEL_VERSION};

use super::open_store;
use super::summary_table;
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{BOLD, DIM, Printer, WARN};

/// Arguments of `spdy lab show`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store: a file, or a postgres:// URL
    #[arg(value_name = "STORE")]
    store: Location,

    /// Print one JSON object a cell instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab show lulic.db"
    "spdy lab show lulic.db --json"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut store = open_store(&args.store)?;
    print_cells(&mut store, args.json, printer)?;
    note_model(&store.contents()?, printer);
    Ok(Outcome::Done)
}

/// Prints a note if the loads of a store have another model than this program's.
pub(crate) fn note_model(contents: &Manifest, printer: &Printer) {
    if let Some(other) = contents.model.filter(|it| *it != MODEL_VERSION) {
        let other = model::format(other);
        printer.note(format_args!(
            "{WARN}the model{WARN:#} of its loads is {other}, but this program has {MODEL_VERSION}: its results may differ"
        ));
    }
}

/// Prints the cells of `store`. Fails if a load of it did, or does not count.
pub(crate) fn print_cells(
    store: &mut Store,
    json: bool,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let cells = summary::of(store)?;
    if json {
        for cell in &cells {
            printer.json(cell)?;
        }
    } else {
        table(&store.contents()?, &cells, printer)?;
    }
    let sum = |of: fn(&CellSummary) -> usize| cells.iter().map(of).sum();
    check_loads(
        sum(|cell| cell.runs),
        sum(|cell| cell.failed),
        sum(|cell| cell.invalid),
    )
}

/// Fails for incomplete loads, and for runs in real time that do not count.
pub(crate) fn check_loads(loads: usize, failed: usize, invalid: usize) -> anyhow::Result<Outcome> {
    match (failed, invalid) {
        (0, 0) => Ok(Outcome::Done),
        (0, invalid) => anyhow::bail!(
            "{invalid} of {loads} runs are invalid: the link did not have the configured properties in any attempt"
        ),
        (failed, _) => anyhow::bail!("{failed} of {loads} loads are incomplete"),
    }
}

/// Prints the medians of `cells`, some or all of those of `contents`.
pub(crate) fn table(
    contents: &Manifest,
    cells: &[CellSummary],
    printer: &Printer,
) -> anyhow::Result<()> {
    let program = match contents.program.as_str() {
        "" => "imported".to_owned(),
        version => format!("by spdy {version}"),
    };
    let each = match contents.runs {
        1 => "1 load each".to_owned(),
        runs => format!("{runs} loads each"),
    };
    printer.line(format_args!(
        "{BOLD}{}{BOLD:#}: {} of {} cells, {each}, {program}; medians of load in ms, ratios to the first protocol",
        contents.name,
        cells.len(),
        contents.cells,
    ))?;
    let constant = summary_table::constant(cells);
    if !constant.is_empty() {
        printer.line(format_args!("{DIM}all cells{DIM:#} {constant}"))?;
    }
    printer.line(summary_table::render(cells))?;
    Ok(())
}
