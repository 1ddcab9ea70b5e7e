//! `spdy lab report`: a store as a page to look at.

use std::path::PathBuf;

use anyhow::Context;
use spdy_lab::report::experiment;
use spdy_lab::store::results::Store;

use crate::commands::{Outcome, output};
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab report` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,

    /// The file to write; `-` is stdout [default: the store's name with .html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab report lulic.db"
    "spdy lab report lulic.db --output -"
};

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let store = Store::open(&args.store)?;
    let html = experiment::render(&store.contents()?, &store.rows()?);
    let path = match &args.output {
        Some(path) if path.as_os_str() == "-" => {
            printer.bytes(html.as_bytes())?;
            return Ok(Outcome::Done);
        }
        Some(path) => path.clone(),
        None => args.store.with_extension("html"),
    };
    output::is_not(&args.store, &path)?;
    std::fs::write(&path, html).with_context(|| format!("cannot write {}", path.display()))?;
    printer.note(format_args!("report: {}", path.display()));
    Ok(Outcome::Done)
}
