//! The tree of `spdy lab` commands.

#[cfg(target_os = "linux")]
use super::browse;
#[cfg(target_os = "linux")]
use super::calibrate;
use super::report::view;
use super::run::{cell, cells};
#[cfg(target_os = "linux")]
use super::shape;
use super::store::{compare, export, import, merge, show};
use super::{report, reproduce};
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::Printer;

/// What `spdy lab` is asked.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run an experiment on all cores, and keep every load in a store
    ///
    /// A cell is kept as soon as all its runs are done. Whatever ended a run, Ctrl-C or worse, the same command goes on
    /// where it was, and ends with the same store. The exit code is 1 if it was ended early, or if any load did not
    /// get all of its page.
    #[command(after_help = super::run::EXAMPLES)]
    Run(super::run::Args),
    /// Tell the medians of each cell of a store
    #[command(after_help = show::EXAMPLES)]
    Show(show::Args),
    /// Write a store as a page to look at: one HTML file that needs no network
    ///
    /// Load times over each factor, ratios over two of them, a protocol against the other, distributions, what went over
    /// the wire, and cells that are not to be trusted.
    #[command(after_help = report::EXAMPLES)]
    Report(report::Args),
    /// Show the report of a store in a browser, while the experiment runs
    ///
    /// Serves on 127.0.0.1 alone, says where on stderr, and follows what another process (spdy lab run, or many) keeps in the store:
    /// how many cells are there, how long the rest takes, and the report of those that are. Waterfalls come when all are there.
    #[command(after_help = view::EXAMPLES)]
    View(view::Args),
    /// Say what changed between two stores, and whether it is over a budget
    ///
    /// Cells of the same key belong together; what has changed may be a page, the program or a choice. Intervals are of 95 %;
    /// a cell is the same if its ratio is surely within the margin. The exit code is 1 if, with --budget, any cell takes
    /// more than that more for certain, any load after did not get all of its page, or a cell is there no more.
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Args),
    /// Put to the test what papers said of SPDY, and say what became of it
    ///
    /// Every claim is run in virtual time with fixed seeds. A verdict follows from what was claimed and what was measured: reproduced
    /// (within the tolerance that is told), direction only, undecided (the interval reaches to both sides), contradicted, or
    /// cannot be run. What was not reproduced is run again with one thing changed at a time. No verdict makes the exit code 1.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::Args),
    /// List the cells of an experiment by their keys, in its order
    #[command(after_help = cells::EXAMPLES)]
    Cells(cells::Args),
    /// Load single cells, and tell their medians, or keep them in a store that many machines share
    ///
    /// What engines for large sweeps start: a cell that is there already is not loaded again, two that load the same one do
    /// no harm, and what is killed leaves whole cells alone. With --store, the exit code is 0 once every cell is kept;
    /// without, 1 if any load did not get all of its page.
    #[command(after_help = cell::EXAMPLES)]
    Cell(cell::Args),
    /// Bring the cells of several stores of one experiment together
    ///
    /// Files that machines without a common database have written, or a store in PostgreSQL that is to be a file. The same cell
    /// may be in several, and must be the same there.
    #[command(after_help = merge::EXAMPLES)]
    Merge(merge::Args),
    /// Make a store of a results database of Lulic 2013
    ///
    /// Read is the table results(id, bw, delay, method, site, onContentLoad, onLoad, tow, run).
    #[command(after_help = import::EXAMPLES)]
    Import(import::Args),
    /// Write every load of a store to a file
    #[command(after_help = export::EXAMPLES)]
    Export(export::Args),
    /// Hold virtual time against the kernel's TCP: the same downloads, or page loads, through both
    ///
    /// Runs whose link was not what was asked for are repeated and never counted. The exit code is 1 if the mean
    /// error is past its bar (1 % without loss, 8 % with), one connection beats six in one clock alone, a page load
    /// without loss is off by more than 3 %, or a setting has fewer runs that count than asked for. Needs what
    /// `spdy lab shape` needs; takes minutes for all settings.
    #[cfg(target_os = "linux")]
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(calibrate::Args),
    /// Load a recorded page in Chromium behind a link, and hold our own loads of the same against it
    ///
    /// At the far end of the link is the page: a server at each recorded address, under certificates of the names recorded
    /// there, and a resolver. A load counts if its link was what was asked for, nothing was asked for that was not recorded, and it fetched
    /// what most did. What it recorded is then loaded by our client in virtual time over the same network. The exit code
    /// is 1 if fewer loads count than asked for. Needs what `spdy lab shape` needs, and Chromium or Chrome.
    #[cfg(target_os = "linux")]
    #[command(after_help = browse::EXAMPLES)]
    Browse(browse::Args),
    /// Run a program behind a link: the kernel's own TCP, in real time
    ///
    /// The program finds one network, whose only way out is the link; at its far end is what --server starts, at
    /// every address (198.18.0.1 is as good as any), and nothing else: neither the machine's network nor its
    /// resolver. The exit code is the program's. What the link achieved is told on stderr when the program has
    /// ended. Needs Linux, and root or user namespaces; nothing is left behind, however it ends.
    #[cfg(target_os = "linux")]
    #[command(after_help = shape::EXAMPLES)]
    Shape(Box<shape::Args>),
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab run lulic                            Lulic's experiment of 2013, into lulic.db"
    "spdy lab run loss.toml --store loss.db"
    "spdy lab show loss.db"
    "spdy lab compare before.db after.db --budget 2%"
    "spdy lab reproduce all --corpus recordings/    what papers said of SPDY, run again"
    "spdy lab export loss.db --csv loss.csv"
    "spdy lab calibrate"
    "spdy lab shape --network dsl --server \"spdy serve portal --plain 0.0.0.0:80\" -- spdy fetch http://198.18.0.1/"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match &args.command {
        Command::Run(args) => super::run::run(args, printer),
        Command::Show(args) => show::run(args, printer),
        Command::Report(args) => report::run(args, printer),
        Command::View(args) => view::run(args, printer),
        Command::Compare(args) => compare::run(args, printer),
        Command::Reproduce(args) => reproduce::run(args, printer),
        Command::Cells(args) => cells::run(args, printer),
        Command::Cell(args) => cell::run(args, printer),
        Command::Merge(args) => merge::run(args, printer),
        Command::Import(args) => import::run(args, printer),
        Command::Export(args) => export::run(args, printer),
        #[cfg(target_os = "linux")]
        Command::Calibrate(args) => calibrate::run(args, printer),
        #[cfg(target_os = "linux")]
        Command::Browse(args) => browse::run(args, printer),
        #[cfg(target_os = "linux")]
        Command::Shape(args) => shape::run(args, printer),
    }
}
