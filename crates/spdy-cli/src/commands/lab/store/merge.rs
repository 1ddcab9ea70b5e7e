//! `spdy lab merge`: merges stores of parts of one experiment.

use serde::Serialize;
use spdy_lab::store::location::Location;
use spdy_lab::store::merge::{MergeCounts, merge};

use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{Printer, check_output_differs};

/// Arguments of `spdy lab merge`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stores of one experiment: files, or postgres:// URLs
    #[arg(value_name = "PART", required = true)]
    parts: Vec<Location>,

    /// Target store, a file or a postgres:// URL; it is created if necessary
    #[arg(short, long, value_name = "STORE")]
    store: Location,

    /// Print one JSON object a part
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab merge part-*.db --store loss.db"
    "spdy lab merge postgres://lab@db.example/loss --store loss.db"
};

/// The cells that a part added.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct MergeLine {
    /// The store that was merged.
    part: String,
    /// Cells that the part added.
    added: usize,
    /// Cells of the part that were already present.
    before: usize,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    for part in &args.parts {
        if let (Some(part), Some(store)) = (part.file(), args.store.file()) {
            check_output_differs(part, store)?;
        }
    }
    for part in &args.parts {
        let MergeCounts { new, before } = merge(part, &args.store)?;
        if args.json {
            printer.json(&MergeLine {
                part: part.to_string(),
                added: new,
                before,
            })?;
        } else {
            printer.line(format_args!(
                "{part}: {new} cells added, {before} already present"
            ))?;
        }
    }
    Ok(Outcome::Done)
}
