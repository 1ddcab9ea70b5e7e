//! `spdy lab cells`: lists the cells of an experiment.

use std::collections::BTreeSet;

use serde::Serialize;
use spdy_lab::store::error::StoreError;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;

use crate::commands::lab::experiment::{Experiment, PROGRAM};
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::Printer;

/// Arguments of `spdy lab cells`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The experiment: a shipped one (lulic), or a TOML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,

    /// List only cells that this store, a file or a postgres:// URL, does not have yet
    #[arg(short, long, value_name = "STORE")]
    store: Option<Location>,

    /// Print one JSON object a cell: its number, its key and the seed of each run
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab cells lulic"
    "spdy lab cells loss.toml --json"
    "spdy lab cells loss.toml --store loss.db    the remaining cells"
};

/// A cell of an experiment.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CellLine {
    /// Number of the cell in the experiment, from 1.
    number: usize,
    /// Key of the cell.
    cell: String,
    /// The seed of each run.
    seeds: Vec<u64>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let experiment = Experiment::open(&args.experiment)?;
    experiment.warn_ineffective(printer);
    let plan = experiment.plan.clone();
    let there = match &args.store {
        Some(location) => {
            let runner = experiment.into_runner(printer)?;
            there(location, &Manifest::of(&runner, PROGRAM))?
        }
        None => BTreeSet::new(),
    };
    for cell in plan.cells().filter(|cell| !there.contains(&cell.key())) {
        if args.json {
            printer.json(&CellLine {
                number: cell.number(),
                cell: cell.key(),
                seeds: (1..=plan.runs()).map(|run| cell.seed(run)).collect(),
            })?;
        } else {
            printer.line(cell.key())?;
        }
    }
    Ok(Outcome::Done)
}

/// Keys that the store at `location` has; none where there is no store yet.
fn there(location: &Location, contents: &Manifest) -> anyhow::Result<BTreeSet<String>> {
    match Store::open(location) {
        Ok(mut store) => {
            store.check_is_of(contents)?;
            Ok(store.keys()?.into_iter().collect())
        }
        Err(StoreError::Missing { .. }) => Ok(BTreeSet::new()),
        Err(error) => Err(error.into()),
    }
}
