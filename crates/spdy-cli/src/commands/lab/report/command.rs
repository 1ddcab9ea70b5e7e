//! `spdy lab report`: a store as a page to look at, and its figures as files for papers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::row::Row;
use spdy_report::experiment::{self, FigureFile, TrialWaterfalls};

use super::waterfall_args::WaterfallArgs;
use crate::commands::lab::store::open_store;
use crate::commands::lab::store::show::note_model;
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{Printer, check_output_differs};

/// Arguments of `spdy lab report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store: a file, or a postgres:// URL
    #[arg(value_name = "STORE")]
    store: Location,

    /// Output file; `-` is stdout [default: the name of the file or of the experiment with .html, unless --svg or --png
    /// is given]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write each figure to this folder as SVG with a white background, for a paper
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// Write each figure to this folder as PNG with 300 dpi at a paper's column width
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,

    #[command(flatten)]
    waterfalls: WaterfallArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab report lulic.db"
    "spdy lab report lulic.db --output -"
    "spdy lab report lulic.db --svg figures/ --png figures/"
    "spdy lab report loss.db --cell page=portal,protocol=spdy,network=cable,loss=1%25"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut store = open_store(&args.store)?;
    let (contents, rows) = (store.contents()?, store.rows()?);
    note_model(&contents, printer);
    let again = args
        .waterfalls
        .again(&args.store, &contents, &rows, printer)?;
    write_figures(args, &contents, &rows, &again, printer)?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None if args.svg.is_some() || args.png.is_some() => return Ok(Outcome::Done),
        None => match args.store.file() {
            Some(file) => file.with_extension("html"),
            None => PathBuf::from(format!("{}.html", contents.name)),
        },
    };
    let html = experiment::render(&contents, &rows, &again);
    if path.as_os_str() == "-" {
        printer.bytes(html.as_bytes())?;
        return Ok(Outcome::Done);
    }
    if let Some(store) = args.store.file() {
        check_output_differs(store, &path)?;
    }
    fs::write(&path, html).with_context(|| format!("cannot write {}", path.display()))?;
    printer.note(format_args!("report: {}", path.display()));
    Ok(Outcome::Done)
}

/// Writes each figure in each requested form.
fn write_figures(
    args: &Args,
    contents: &Manifest,
    rows: &[Row],
    again: &[TrialWaterfalls],
    printer: &Printer,
) -> anyhow::Result<()> {
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let figures = experiment::figures(contents, rows, again);
    let as_svg = |figure: &FigureFile| figure.svg.clone().into_bytes();
    let as_png = |figure: &FigureFile| spdy_report::png(&figure.svg);
    write_into(args.svg.as_deref(), "svg", &figures, as_svg, printer)?;
    write_into(args.png.as_deref(), "png", &figures, as_png, printer)
}

fn write_into(
    folder: Option<&Path>,
    ending: &'static str,
    figures: &[FigureFile],
    bytes: impl Fn(&FigureFile) -> Vec<u8>,
    printer: &Printer,
) -> anyhow::Result<()> {
    let Some(folder) = folder else {
        return Ok(());
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bar = printer.progress(figures.len() as u64, "drawing");
    for figure in figures {
        let path = folder.join(format!("{}.{ending}", figure.name));
        fs::write(&path, bytes(figure))
            .with_context(|| format!("cannot write {}", path.display()))?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    printer.note(format_args!(
        "{} figures: {}",
        figures.len(),
        folder.display()
    ));
    Ok(())
}
