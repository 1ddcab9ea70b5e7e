//! `spdy lab cells`: what an experiment consists of.

use serde::Serialize;

use super::experiment::Experiment;
use crate::commands::Outcome;
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab cells` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment: a shipped name (lulic), or a TOML file
    #[arg(value_name = "EXPERIMENT")]
    experiment: String,

    /// Print one JSON object a cell: its number, its key, the seed of each run
    #[arg(long)]
    json: bool,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab cells lulic"
    "spdy lab cells loss.toml --json"
};

#[derive(Serialize)]
struct Listed {
    number: usize,
    cell: String,
    seeds: Vec<u64>,
}

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let plan = Experiment::open(&args.experiment)?.plan;
    for cell in plan.cells() {
        if args.json {
            printer.json(&Listed {
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
