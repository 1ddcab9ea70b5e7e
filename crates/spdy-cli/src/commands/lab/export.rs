//! `spdy lab export`: a store for other programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use spdy_lab::store::csv;
use spdy_lab::store::location::Location;
use spdy_lab::store::results::Store;

use crate::commands::{Outcome, output};
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab export` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store: a file, or a postgres:// URL
    #[arg(value_name = "STORE")]
    store: Location,

    /// Write CSV to this file, a line a load; - is stdout
    #[arg(long, value_name = "FILE", required = true)]
    csv: PathBuf,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab export lulic.db --csv lulic.csv"
    "spdy lab export lulic.db --csv - | head"
};

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut store = Store::open(&args.store)?;
    if args.csv.as_os_str() == "-" {
        let mut out = Stdout {
            printer,
            closed: None,
        };
        let written = csv::write(&mut store, &mut BufWriter::new(&mut out));
        // Why stdout takes no more says more than that it does not.
        return match (out.closed, written) {
            (Some(error), _) => Err(error),
            (None, written) => Ok(written.map(|_| Outcome::Done)?),
        };
    }
    if let Some(store) = args.store.file() {
        output::is_not(store, &args.csv)?;
    }
    let file =
        File::create(&args.csv).with_context(|| format!("cannot write {}", args.csv.display()))?;
    let loads = csv::write(&mut store, &mut BufWriter::new(file))?;
    printer.line(format_args!("{}: {loads} loads", args.csv.display()))?;
    Ok(Outcome::Done)
}

/// The program's voice as something to write to.
struct Stdout<'a> {
    printer: &'a Printer,
    /// Why it takes no more.
    closed: Option<anyhow::Error>,
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.printer.bytes(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                self.closed = Some(error);
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // every write is flushed
    }
}
