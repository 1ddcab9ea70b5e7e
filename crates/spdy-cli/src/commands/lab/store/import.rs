//! `spdy lab import`: Lulic's results as a store.

use std::path::PathBuf;

use spdy_lab::store::import;
use spdy_lab::store::location::Location;

use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::Printer;

/// Arguments of `spdy lab import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The paper's database
    #[arg(value_name = "RESULTS.db")]
    results: PathBuf,

    /// Store to create, a file or a postgres:// URL; it must not exist yet
    #[arg(short, long, value_name = "STORE")]
    store: Location,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab import results.db --store lulic-2013.db"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let rows = import::import(&args.results, &args.store)?;
    printer.line(format_args!("{}: {rows} loads", args.store))?;
    Ok(Outcome::Done)
}
