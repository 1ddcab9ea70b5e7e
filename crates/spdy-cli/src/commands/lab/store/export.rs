//! `spdy lab export`: writes a store as CSV or Parquet for other programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_lab::store::csv;
use spdy_lab::store::error::ExportError;
use spdy_lab::store::location::Location;
use spdy_lab::store::open::Store;

use super::open_store;
use crate::help::examples;
use crate::outcome::Outcome;
#[cfg(not(feature = "parquet"))]
use crate::outcome::Usage;
use crate::output::{Printer, check_output_differs};

/// Arguments of `spdy lab export`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store: a file, or a postgres:// URL
    #[arg(value_name = "STORE")]
    store: Location,

    #[command(flatten)]
    output: ExportFileArgs,
}

/// The format and the output file.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct ExportFileArgs {
    /// Write CSV to this file, one line a load; `-` is stdout
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,

    /// Write Parquet to this file; `-` is stdout
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab export lulic.db --csv lulic.csv"
    "spdy lab export lulic.db --csv - | head"
    "spdy lab export postgres://lab@db.example/loss --parquet loss.parquet"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match (&args.output.csv, &args.output.parquet) {
        (Some(path), _) => export(args, path, printer, |store, out| csv::write(store, out)),
        #[cfg(feature = "parquet")]
        (None, Some(path)) => export(args, path, printer, |store, out| {
            spdy_lab::store::parquet::write(store, out)
        }),
        #[cfg(not(feature = "parquet"))]
        (None, Some(_)) => Err(Usage(
            "this program was built without Parquet: build it with its default features, or with `--features parquet`".to_owned(),
        )
        .into()),
        (None, None) => unreachable!("clap requires one of them"),
    }
}

/// The destination of the export.
type Out<'a> = BufWriter<Box<dyn Write + Send + 'a>>;

/// Opens the store and the file at `path`, and calls `write`.
fn export(
    args: &Args,
    path: &Path,
    printer: &Printer,
    write: impl Fn(&mut Store, &mut Out<'_>) -> Result<usize, ExportError>,
) -> anyhow::Result<Outcome> {
    let mut store = open_store(&args.store)?;
    if path.as_os_str() == "-" {
        let mut out = Stdout {
            printer,
            closed: None,
        };
        let written = write(&mut store, &mut BufWriter::new(Box::new(&mut out)));
        // The error of stdout is more specific than the error of the writer.
        return match (out.closed, written) {
            (Some(error), _) => Err(error),
            (None, written) => Ok(written.map(|_| Outcome::Done)?),
        };
    }
    if let Some(store) = args.store.file() {
        check_output_differs(store, path)?;
    }
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let loads = write(&mut store, &mut BufWriter::new(Box::new(file)))?;
    printer.line(format_args!("{}: {loads} loads", path.display()))?;
    Ok(Outcome::Done)
}

/// The printer as a writer.
struct Stdout<'a> {
    printer: &'a Printer,
    /// The error that closed it.
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
