//! `spdy lab run`: loads the cells that a store does not have yet, on all cores.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spdy_lab::experiment::runner::Runner;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;
use spdy_lab::store::row::Rows;
use spdy_service::signals;

use super::load_cells::{self, RealTimeLoader};
use crate::args::parse::at_least_one;
use crate::commands::lab::experiment::{Experiment, PROGRAM};
use crate::commands::lab::store::show;
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{Printer, WARN};

/// Arguments of `spdy lab run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The experiment: a shipped one (lulic), or a TOML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,

    /// Store for the loads: a file, or a postgres:// URL [default: the experiment's name with .db]
    #[arg(short, long, value_name = "STORE")]
    store: Option<Location>,

    /// Threads that load pages; the results do not depend on it [default: one a core]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZeroUsize>,

    /// Print one JSON object a cell instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab run lulic"
    "spdy lab run loss.toml --store loss.db --jobs 4"
    "spdy lab run loss.toml --json"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let experiment = Experiment::open(&args.experiment)?;
    if let Some(outcome) = load_cells::enter(&experiment.plan)? {
        return Ok(outcome);
    }
    // Signals are caught before pages are opened, which may take long.
    let stop = stop_at_signal(printer)?;
    experiment.warn_ineffective(printer);
    let real = RealTimeLoader::start(&experiment.plan)?;
    let by_name = || Location::File(format!("{}.db", experiment.plan.name()).into());
    let location = args.store.clone().unwrap_or_else(by_name);
    let runner = experiment.into_runner(printer)?;
    let mut store = Store::open_or_create(&location, &Manifest::of(&runner, PROGRAM))?;
    let missing = missing(&runner, &mut store)?;
    let (cells, runs) = (runner.plan().len(), runner.plan().runs());
    if missing.len() < cells {
        let there = cells - missing.len();
        printer.note(format_args!(
            "{location}: {there} of {cells} cells are already present"
        ));
    }
    let remaining = load(
        &runner, real, &mut store, &missing, &stop, args.jobs, printer,
    )?;
    if remaining > 0 {
        printer.note(format_args!(
            "{WARN}stopped early{WARN:#}: {} of {cells} cells of {runs} loads are in {location}; run the same command to continue",
            cells - remaining
        ));
        return Ok(Outcome::Failed);
    }
    store.finish()?;
    show::print_cells(&mut store, args.json, printer)
}

/// Numbers of the cells that `store` has not.
fn missing(runner: &Runner, store: &mut Store) -> anyhow::Result<Vec<usize>> {
    let finished = store.finished()?;
    let cells = runner.plan().cells();
    Ok(cells
        .filter(|cell| !finished.contains(&cell.key()))
        .map(|cell| cell.number())
        .collect())
}

/// Loads the cells of these numbers and stores them, until all are done or a signal stops it. Returns how many
/// remain.
fn load(
    runner: &Runner,
    real: RealTimeLoader,
    store: &mut Store,
    numbers: &[usize],
    stop: &AtomicBool,
    jobs: Option<NonZeroUsize>,
    printer: &Printer,
) -> anyhow::Result<usize> {
    let rows = Rows::new(runner, PROGRAM);
    let runs = u64::from(runner.plan().runs());
    let bar = printer.progress(numbers.len() as u64 * runs, "loading");
    let mut remaining = numbers.len();
    let stops = || stop.load(Ordering::Relaxed);
    let result = load_cells::load(runner, real, numbers, jobs, stops, |cell| {
        store.add(&rows.of(&cell))?;
        bar.inc(runs);
        remaining -= 1;
        Ok(())
    });
    bar.finish_and_clear();
    result.map(|()| remaining)
}

/// A flag that the first signal to stop sets; the second one ends the program at once. What is half written then, SQLite takes back
/// when the store is opened next.
fn stop_at_signal(printer: &Printer) -> anyhow::Result<Arc<AtomicBool>> {
    let printer = printer.clone();
    signals::stop_flag(move || {
        printer.note(format_args!(
            "{WARN}stopping{WARN:#}: incomplete cells are dropped; press Ctrl-C again to stop at once"
        ));
    })
}
