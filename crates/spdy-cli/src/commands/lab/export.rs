//! `spdy lab export`: a store for other programs.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::Context;
use spdy_lab::store::csv;
use spdy_lab::store::results::Store;

use crate::commands::Outcome;
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab export` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,

    /// Write CSV to this file, a line a load; - is stdout
    #[arg(long, value_name = "FILE", required = true)]
    csv: PathBuf,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab export lulic.db --csv lulic.csv"
    "spdy lab export lulic.db --csv - | head"
};

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let store = Store::open(&args.store)?;
    if args.csv.as_os_str() == "-" {
        let mut text = Vec::new();
        csv::write(&store, &mut text)?;
        printer.bytes(&text)?;
        return Ok(Outcome::Done);
    }
    let file =
        File::create(&args.csv).with_context(|| format!("cannot write {}", args.csv.display()))?;
    let loads = csv::write(&store, &mut BufWriter::new(file))?;
    printer.line(format_args!("{}: {loads} loads", args.csv.display()))?;
    Ok(Outcome::Done)
}
