//! `spdy lab calibrate`: virtual time against the kernel's own TCP.

use serde::Serialize;
use spdy_lab::calibrate::compare::{CellResult, DownloadSummary, SixVsOne};
use spdy_lab::calibrate::download_cell::DownloadCell;
use spdy_tun::namespaces::{self, CtrlCPolicy, ProcessRole};

use super::args::Args;
use super::environment::{Environment, load_average};
use super::tables::{error_cell, error_table, ms_cell, print_exceeded_limits, runs_cell};
use super::{link, pages};
use crate::outcome::Outcome;
use crate::output::{Cell, DIM, Printer, Table};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match namespaces::enter(CtrlCPolicy::EndAll)? {
        ProcessRole::Outer(status) => Ok(Outcome::Code(namespaces::exit_code(status))),
        ProcessRole::Command(_) => anyhow::bail!("unexpected process role: expected no command"),
        ProcessRole::Inner(_) if args.pages.is_some() => pages::run(args, printer),
        ProcessRole::Inner(_) => match args.link {
            Some(link) => link::run(link, args.json, printer),
            None => calibrate(args, printer),
        },
    }
}

fn calibrate(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let load_before = load_average();
    let results = args.compare(&args.cells.cells(), printer)?;
    let calibration = Calibration {
        conditions: Environment::since(load_before, args),
        summary: DownloadSummary::of(&results),
        cells: results,
    };
    if args.json {
        printer.json(&calibration)?;
    } else {
        calibration.print(printer)?;
    }
    Ok(Outcome::done_if(
        calibration.summary.exceeded_limits.is_empty(),
    ))
}

/// Downloads in virtual and in real time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Calibration {
    /// The machine, and the options of the runs.
    conditions: Environment,
    /// Errors of all cells.
    summary: DownloadSummary,
    /// Each cell: a link, and a download over it.
    cells: Vec<CellResult<DownloadCell>>,
}

impl Calibration {
    fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let words = ["kbps", "ms", "loss %", "manner", "objects", "bytes"];
        let figures = ["virtual ms", "real ms", "error", "runs", "repeated"];
        let mut table = Table::new(words.into_iter().chain(figures).map(Cell::number));
        for result in &self.cells {
            table.row(row(result));
        }
        printer.line(table)?;
        printer.line("")?;
        printer.line(self.sums())?;
        let DownloadSummary {
            pairs,
            pairs_that_agree,
            unmeasured,
            repeated,
            exceeded_limits,
            ..
        } = &self.summary;
        if !pairs.is_empty() {
            let count = pairs.len();
            let mean_distance = pairs.iter().map(SixVsOne::distance).sum::<f64>() / count as f64;
            printer.line(format_args!(
                "one connection against six: {pairs_that_agree} of {count} pairs agree; their ratios differ by {mean_distance:.3} on average"
            ))?;
        }
        printer.line(format_args!(
            "{DIM}{repeated} runs repeated, {unmeasured} settings not measured; {}{DIM:#}",
            self.conditions
        ))?;
        print_exceeded_limits(exceeded_limits, printer)
    }

    fn sums(&self) -> Table {
        let summary = &self.summary;
        error_table(&[
            ("single, no loss", summary.loss_free),
            ("single, loss", summary.lossy),
            ("six or one, no loss", summary.several_loss_free),
            ("six or one, loss", summary.several_lossy),
        ])
    }
}

fn row(result: &CellResult<DownloadCell>) -> Vec<Cell> {
    let DownloadCell {
        bps,
        rtt_ms,
        loss_permille,
        manner,
        objects,
        bytes,
    } = result.subject;
    vec![
        Cell::number(bps / 1_000),
        Cell::number(rtt_ms),
        Cell::number(f64::from(loss_permille) / 10.0),
        Cell::number(manner),
        Cell::number(objects),
        Cell::number(bytes),
        ms_cell(result.virtual_figure()),
        ms_cell(result.real_figure()),
        error_cell(result.error()),
        runs_cell(result),
        Cell::number(result.repeated),
    ]
}
