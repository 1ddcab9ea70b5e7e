//! `spdy lab report`: a store as a page to look at, and its figures as files for papers.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_lab::experiment::plan::Plan;
use spdy_lab::report;
use spdy_lab::report::experiment::{self, FigureFile, TrialWaterfalls};
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;
use spdy_lab::store::row::Row;

use super::experiment::Experiment;
use super::show::note_model;
use crate::commands::{Outcome, Usage, output};
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab report` is asked.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The store: a file, or a postgres:// URL
    #[arg(value_name = "STORE")]
    store: Location,

    /// The file to write; `-` is stdout [default: the name of the file, or of the experiment, with .html, unless --svg or --png is given]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write each figure into this folder as SVG, on white, to be set in a paper
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// Write each figure into this folder as PNG, 300 dots an inch in a column of a paper
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,

    #[command(flatten)]
    waterfalls: WaterfallArgs,
}

/// Where waterfalls come from: their loads are loaded again.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Waterfalls")]
pub(super) struct WaterfallArgs {
    /// Show the trial of this cell, by its key [default: for each page the one in the middle of all factors]
    #[arg(long, value_name = "KEY")]
    pub(super) cell: Option<String>,

    /// Where the paths of pages start [default: beside the store, if it is a file]
    #[arg(long, value_name = "DIR")]
    pages: Option<PathBuf>,
}

pub(super) const EXAMPLES: &str = examples! {
    "spdy lab report lulic.db"
    "spdy lab report lulic.db --output -"
    "spdy lab report lulic.db --svg figures/ --png figures/"
    "spdy lab report loss.db --cell page=portal,protocol=spdy,network=cable,loss=1%25"
};

pub(super) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut store = Store::open(&args.store)?;
    let (contents, rows) = (store.contents()?, store.rows()?);
    note_model(&contents, printer);
    let again = args
        .waterfalls
        .again(&args.store, &contents, &rows, printer)?;
    write_figures(args, &rows, &again, printer)?;
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
        output::check_output_differs(store, &path)?;
    }
    fs::write(&path, html).with_context(|| format!("cannot write {}", path.display()))?;
    printer.note(format_args!("report: {}", path.display()));
    Ok(Outcome::Done)
}

impl WaterfallArgs {
    /// Finds fault with a cell that `plan` has not: it will never be there.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), Usage> {
        match &self.cell {
            Some(key) if !plan.cells().any(|cell| cell.key() == *key) => {
                let name = plan.name();
                Err(Usage(format!(
                    "the plan {name} has no cell {key:?}; spdy lab cells lists its {}",
                    plan.len()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Loads the cells for the waterfalls again. Only a missing cell is an error: a report without waterfalls is valid.
    pub(super) fn again(
        &self,
        store: &Location,
        contents: &Manifest,
        rows: &[Row],
        printer: &Printer,
    ) -> anyhow::Result<Vec<TrialWaterfalls>> {
        if let Some(key) = &self.cell {
            let is_it = |row: &Row| row.value("cell").as_str() == Some(key);
            if !rows.iter().any(is_it) {
                let why = format!(
                    "{store} has no cell {key:?}; spdy lab show {store} --json lists their keys"
                );
                return Err(Usage(why).into());
            }
        }
        if contents.plan.is_empty() {
            return Ok(TrialWaterfalls::none(
                "Imported results say nothing of single resources.",
            ));
        }
        let beside = store.file().and_then(Path::parent).unwrap_or(Path::new(""));
        let folder = self.pages.as_deref().unwrap_or(beside);
        let runner = Experiment::stored(&contents.plan, folder)
            .and_then(|experiment| experiment.into_runner(printer));
        Ok(match runner {
            Ok(runner) => experiment::again(&runner, rows, self.cell.as_deref()),
            Err(error) => {
                TrialWaterfalls::none(&format!("{error:#}; --pages says where paths start."))
            }
        })
    }
}

/// Writes each figure in each form that was asked for.
fn write_figures(
    args: &Args,
    rows: &[Row],
    again: &[TrialWaterfalls],
    printer: &Printer,
) -> anyhow::Result<()> {
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let figures = experiment::figures(rows, again);
    let as_svg = |figure: &FigureFile| figure.svg.clone().into_bytes();
    let as_png = |figure: &FigureFile| report::png(&figure.svg);
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
