//! `spdy lab calibrate --pages`: compares whole page loads in virtual and in real time.

use std::sync::Arc;

use serde::Serialize;
use spdy_lab::calibrate::compare::CellResult;
use spdy_lab::calibrate::page_cell::{PageCell, PageLoadSummary};
use spdy_lab::stats::median;
use spdy_netem::profile::Era;
use spdy_page::builtin;
use spdy_page::open::ImportOptions;
use spdy_sim::load::Page;
use spdy_sim::options::Options;
use spdy_sim::race::RaceNetwork;

use super::args::Args;
use super::environment::{Environment, load_average};
use super::tables::{error_cell, error_table, ms_cell, print_exceeded_limits, runs_cell};
use crate::args::{networks, open_replica};
use crate::outcome::{Outcome, Usage};
use crate::output::{Cell, DIM, Printer, Table};

/// Networks without loss, from the slowest to the farthest. Over `fibre` a round trip takes no longer than some tens of the
/// kernel's wake-ups do, which virtual time has none of.
const NETWORKS: [&str; 5] = ["dsl", "cable", "3g", "lte", "satellite"];

/// Page loads in virtual and in real time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PageCalibration {
    /// The machine, and the options of the runs.
    conditions: Environment,
    /// Errors of all loads.
    summary: PageLoadSummary,
    /// Each page over each network by each protocol.
    loads: Vec<CellResult<PageCell>>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let load_before = load_average();
    let results = args.compare(&cells(args)?, printer)?;
    let calibration = PageCalibration {
        conditions: Environment::since(load_before, args),
        summary: PageLoadSummary::of(&results),
        loads: results,
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

fn cells(args: &Args) -> anyhow::Result<Vec<PageCell>> {
    let shipped = builtin::NAMES.map(str::to_owned).to_vec();
    let requested = args.pages.as_ref().filter(|pages| !pages.is_empty());
    let mut pages = Vec::new();
    for name in requested.unwrap_or(&shipped) {
        let opened = open_replica(name, &ImportOptions::default())?;
        pages.push(Arc::new(Page::new(opened.replica)));
    }
    let default = NETWORKS.map(str::to_owned).to_vec();
    let requested = if args.networks.is_empty() {
        &default
    } else {
        &args.networks
    };
    let networks = networks(requested)?;
    networks.iter().try_for_each(check_kernel_tcp)?;
    let options = Options::default();
    Ok(PageCell::all(&pages, &networks, &args.protocols, &options))
}

/// In real time TCP is the kernel's.
pub(crate) fn check_kernel_tcp(network: &RaceNetwork) -> Result<(), Usage> {
    let profile = &network.profile;
    if profile.era == Era::Today && profile.initial_window.is_none() {
        return Ok(());
    }
    Err(Usage(format!(
        "--network {}: remove `tcp` and `iw`, because the kernel's TCP is used",
        network.name
    )))
}

impl PageCalibration {
    fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let words = ["page", "network", "protocol"].map(Cell::word);
        let times = ["virtual ms", "real ms", "error", "computed ms"];
        let figures = times.into_iter().chain(["runs", "repeated"]);
        let mut table = Table::new(words.into_iter().chain(figures.map(Cell::number)));
        for result in &self.loads {
            let load = &result.subject;
            table.row([
                Cell::word(load.replica()),
                Cell::word(&load.network.name),
                Cell::word(load.protocol),
                ms_cell(result.virtual_figure()),
                ms_cell(result.real_figure()),
                error_cell(result.error()),
                ms_cell(median(result.computed_ms.iter().copied())),
                runs_cell(result),
                Cell::number(result.repeated),
            ]);
        }
        printer.line(table)?;
        printer.line("")?;
        let PageLoadSummary {
            loss_free,
            lossy,
            unmeasured,
            repeated,
            exceeded_limits,
        } = &self.summary;
        let sums = [("loads, no loss", *loss_free), ("loads, loss", *lossy)];
        printer.line(error_table(&sums))?;
        printer.line(format_args!(
            "{DIM}{repeated} runs repeated, {unmeasured} loads not measured; {}{DIM:#}",
            self.conditions
        ))?;
        print_exceeded_limits(exceeded_limits, printer)
    }
}
