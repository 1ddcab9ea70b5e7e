//! `spdy lab cell`: runs single cells, for job schedulers.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::str::FromStr;

use serde::Serialize;
use spdy_lab::experiment::runner::{CellLoads, Runner};
use spdy_lab::store::insert::AddOutcome;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;
use spdy_lab::store::row::Rows;
use spdy_lab::store::summary::CellSummary;

use super::load_cells::{self, RealTimeLoader};
use crate::args::parse::at_least_one;
use crate::commands::lab::experiment::{Experiment, PROGRAM};
use crate::commands::lab::store::show;
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{Printer, WARN};

/// Arguments of `spdy lab cell`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The experiment: a shipped one (lulic), or a TOML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,

    /// Cells to load: their keys, as `spdy lab cells` lists them, or their numbers in that list, from 1
    #[arg(value_name = "KEY", required_unless_present = "part")]
    keys: Vec<String>,

    /// Load every Nth cell, from the Kth on: the part of task K of N
    #[arg(short, long, value_name = "K/N", conflicts_with = "keys")]
    part: Option<Part>,

    /// Store the loads here, a file or a postgres:// URL, and skip cells that it has already
    #[arg(short, long, value_name = "STORE")]
    store: Option<Location>,

    /// Threads that load pages; the results do not depend on it [default: one a core]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZeroUsize>,

    /// Print one JSON object a load, with the columns of a store, instead of the table; with --store, one object for
    /// all
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab cell loss.toml page=portal,protocol=spdy,network=cable,loss=1%25"
    "spdy lab cell lulic 1 2 3 --jobs 1 --json"
    "spdy lab cell lulic --part 3/100 --store postgres://lab@db.example/lulic    one of 100 parts, for an engine"
};

/// One of several parts of the cells, of nearly the same size.
#[derive(Clone, Copy, Debug)]
struct Part {
    number: NonZeroUsize,
    of: NonZeroUsize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (number, of) = text.split_once('/')?;
            let (number, of) = (number.parse().ok()?, of.parse().ok()?);
            (number <= of).then_some(Self { number, of })
        };
        read().ok_or_else(|| "expected K/N with K from 1 to N, such as 3/100".to_owned())
    }
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let experiment = Experiment::open(&args.experiment)?;
    let numbers = numbers(args, &experiment)?;
    if let Some(outcome) = load_cells::enter(&experiment.plan)? {
        return Ok(outcome);
    }
    let real = RealTimeLoader::start(&experiment.plan)?;
    let runner = experiment.into_runner(printer)?;
    match &args.store {
        Some(location) => store_cells(args, location, &numbers, &runner, real, printer),
        None => print_cells(args, &numbers, &runner, real, printer),
    }
}

/// Numbers of the requested cells, each once.
fn numbers(args: &Args, experiment: &Experiment) -> anyhow::Result<Vec<usize>> {
    let plan = &experiment.plan;
    if let Some(Part { number, of }) = args.part {
        return Ok((number.get()..=plan.len()).step_by(of.get()).collect());
    }
    let mut numbers = Vec::with_capacity(args.keys.len());
    for key in &args.keys {
        let cell = plan.cell(key).ok_or_else(|| {
            let (experiment, cells) = (&args.experiment, plan.len());
            Usage(format!(
                "{experiment} has no cell {key:?}: `spdy lab cells {experiment}` lists its {cells}"
            ))
        })?;
        if !numbers.contains(&cell.number()) {
            numbers.push(cell.number());
        }
    }
    Ok(numbers)
}

/// Loads of a cell that did not get all of their page.
fn incomplete_loads(cell: &CellLoads<'_>) -> usize {
    let loads = cell.loads.iter();
    loads.filter(|load| !load.failures.is_empty()).count()
}

/// What was added to the store.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StoreReport {
    /// The store: a file, or a postgres:// URL without its password.
    store: String,
    /// Cells that were not there before.
    added: usize,
    /// Cells that were already present.
    before: usize,
    /// Added loads that are incomplete.
    failed: usize,
    /// Added runs in real time that do not count.
    invalid: usize,
}

/// Loads the cells that the store at `location` lacks, and stores each cell as soon as it is done.
fn store_cells(
    args: &Args,
    location: &Location,
    numbers: &[usize],
    runner: &Runner,
    real: RealTimeLoader,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let mut store = Store::open_or_create(location, &Manifest::of(runner, PROGRAM))?;
    let rows = Rows::new(runner, PROGRAM);
    let mut missing = Vec::new();
    for number in numbers {
        let cell = runner.plan().cell(&number.to_string());
        if !store.has(&cell.expect("the number is of a cell of the plan").key())? {
            missing.push(*number);
        }
    }
    let mut report = StoreReport {
        store: location.to_string(),
        added: 0,
        before: numbers.len() - missing.len(),
        failed: 0,
        invalid: 0,
    };
    let never = || false;
    load_cells::load(runner, real, &missing, args.jobs, never, |cell| {
        match store.add(&rows.of(&cell))? {
            AddOutcome::Inserted => report.added += 1,
            AddOutcome::AlreadyPresent => report.before += 1,
        }
        report.failed += incomplete_loads(&cell);
        report.invalid += cell.invalid();
        Ok(())
    })?;
    store.finish()?;
    if report.invalid > 0 {
        let invalid = report.invalid;
        printer.note(format_args!(
            "{WARN}{invalid} runs{WARN:#} in real time are invalid; they are stored but not counted"
        ));
    }
    if report.failed > 0 {
        let failed = report.failed;
        printer.note(format_args!(
            "{WARN}{failed} loads{WARN:#} are incomplete; they are stored"
        ));
    }
    if args.json {
        printer.json(&report)?;
    } else {
        let StoreReport { added, before, .. } = report;
        printer.line(format_args!(
            "{location}: {added} cells added, {before} already present"
        ))?;
    }
    Ok(Outcome::Done)
}

/// Loads the cells, and prints them in the requested order.
fn print_cells(
    args: &Args,
    numbers: &[usize],
    runner: &Runner,
    real: RealTimeLoader,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let rows = Rows::new(runner, PROGRAM);
    // Cells that are done before an earlier cell of the requested order.
    let mut early = BTreeMap::new();
    let (mut printed, mut failed, mut invalid, mut loads) = (0, 0, 0, 0);
    let mut summaries = Vec::new();
    let never = || false;
    load_cells::load(runner, real, numbers, args.jobs, never, |cell| {
        early.insert(cell.cell.number(), cell);
        while let Some(cell) = numbers.get(printed).and_then(|number| early.remove(number)) {
            printed += 1;
            loads += cell.loads.len();
            failed += incomplete_loads(&cell);
            invalid += cell.invalid();
            let rows = rows.of(&cell);
            if args.json {
                rows.iter().try_for_each(|row| printer.json(row))?;
            } else {
                summaries.push(CellSummary::of(&rows));
            }
        }
        Ok(())
    })?;
    if !args.json {
        show::table(&Manifest::of(runner, PROGRAM), &summaries, printer)?;
    }
    show::check_loads(loads, failed, invalid)
}
