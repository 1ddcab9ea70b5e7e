//! `spdy lab cell`: single cells, for whoever hands them out.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use spdy_lab::store::row::Rows;

use super::PROGRAM;
use super::experiment::Experiment;
use crate::commands::{Outcome, Usage};
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab cell` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment: a shipped name (lulic), or a TOML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,

    /// Cells, by their keys as `spdy lab cells` lists them, or by their numbers in that list, from 1
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,

    /// Threads to load pages on; changes no result [default: one a core]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab cell loss.toml page=portal,protocol=spdy,network=cable,loss=1%25"
    "spdy lab cell lulic 1 2 3 --jobs 1"
};

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let experiment = Experiment::open(&args.experiment)?;
    let mut numbers = Vec::with_capacity(args.keys.len());
    for key in &args.keys {
        let cell = experiment.plan.cell(key);
        let cell = cell.ok_or_else(|| {
            Usage(format!(
                "{} has no cell {key:?}; `spdy lab cells {}` lists its {}",
                args.experiment,
                args.experiment,
                experiment.plan.len()
            ))
        })?;
        if !numbers.contains(&cell.number()) {
            numbers.push(cell.number());
        }
    }
    let runner = experiment.into_runner(printer)?;
    let rows = Rows::new(&runner, PROGRAM);
    // Done before one that was asked for before them.
    let mut early = BTreeMap::new();
    let (mut told, mut broken, mut loads) = (0, 0, 0);
    let mut said = Ok(());
    runner.run(
        &numbers,
        args.jobs,
        || false,
        |cell| {
            said = cell.map_err(anyhow::Error::new).and_then(|cell| {
                early.insert(cell.cell.number(), cell);
                while let Some(cell) = numbers.get(told).and_then(|number| early.remove(number)) {
                    told += 1;
                    loads += cell.loads.len();
                    broken += cell
                        .loads
                        .iter()
                        .filter(|load| !load.failures.is_empty())
                        .count();
                    for row in rows.of(&cell) {
                        printer.json(&row)?;
                    }
                }
                Ok(())
            });
            if said.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        },
    );
    said?;
    match broken {
        0 => Ok(Outcome::Done),
        count => anyhow::bail!("{count} of {loads} loads are not whole"),
    }
}
