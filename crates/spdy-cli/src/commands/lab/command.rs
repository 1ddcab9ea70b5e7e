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

/// Arguments of `spdy lab`.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run an experiment on all cores, and store every load
    ///
    /// A cell is stored when all its runs are done. After an interruption (Ctrl-C or a crash), the same command
    /// continues with the remaining cells and produces the same store. The exit code is 1 if the run was interrupted,
    /// or if any load is incomplete.
    #[command(after_help = super::run::EXAMPLES)]
    Run(super::run::Args),
    /// Print the medians of each cell of a store
    #[command(after_help = show::EXAMPLES)]
    Show(show::Args),
    /// Write the results in a store as one HTML file that needs no network
    ///
    /// The report has load times over each factor, ratios over pairs of factors, protocols against each other,
    /// distributions, packets and bytes on the wire, and cells with doubtful results.
    #[command(after_help = report::EXAMPLES)]
    Report(report::Args),
    /// Show the report of a store in a browser while the experiment runs
    ///
    /// Serves on 127.0.0.1 only and prints the address to stderr. The page follows the store while other processes
    /// (such as `spdy lab run`) fill it: the number of cells, the remaining time, and the report so far. Waterfalls are
    /// added when all cells are there.
    #[command(after_help = view::EXAMPLES)]
    View(view::Args),
    /// Compare two stores, and fail if a cell exceeds a budget
    ///
    /// Cells with the same key are compared; a page, the program or an option may have changed. Intervals have a
    /// confidence of 95 %. A cell is unchanged if the interval of its ratio is within the margin. With --budget, the
    /// exit code is 1 if a cell surely exceeds it, a load in AFTER is incomplete, or a cell is missing there.
    #[command(after_help = compare::EXAMPLES)]
    Compare(compare::Args),
    /// Test claims of papers about SPDY, and print a verdict for each
    ///
    /// Every claim is tested in virtual time with fixed seeds. The verdict compares the claim with the measurement:
    /// reproduced (within the stated tolerance), direction only, undecided (the interval includes both sides),
    /// contradicted, or cannot be run. Claims that were not reproduced are tested again with one change at a time. The
    /// exit code does not depend on the verdicts.
    #[command(after_help = reproduce::EXAMPLES)]
    Reproduce(reproduce::Args),
    /// List the keys of an experiment's cells, in their order
    #[command(after_help = cells::EXAMPLES)]
    Cells(cells::Args),
    /// Load single cells, and print their medians or add them to a shared store
    ///
    /// For engines that distribute large sweeps. A cell that is stored already is not loaded again. Two processes may
    /// load the same cell, and a process may be killed: stored cells are always complete. With --store, the exit code
    /// is 0 when every cell is stored. Without --store, it is 1 if any load is incomplete.
    #[command(after_help = cell::EXAMPLES)]
    Cell(cell::Args),
    /// Merge stores of one experiment into one store
    ///
    /// The parts are files of machines without a common database, or PostgreSQL stores to be converted to a file. A
    /// cell that several parts have must have the same results in all of them.
    #[command(after_help = merge::EXAMPLES)]
    Merge(merge::Args),
    /// Convert a results database of Lulic 2013 to a store
    ///
    /// It reads the table results(id, bw, delay, method, site, onContentLoad, onLoad, tow, run).
    #[command(after_help = import::EXAMPLES)]
    Import(import::Args),
    /// Write every load of a store to a CSV or Parquet file
    #[command(after_help = export::EXAMPLES)]
    Export(export::Args),
    /// Compare virtual time with the kernel's TCP, by the same downloads or page loads
    ///
    /// Runs whose link did not have the requested properties are repeated and not counted. The exit code is 1 if the
    /// mean error exceeds its bar (1 % without loss, 8 % with loss), one connection is faster than six in only one of
    /// the clocks, a page load without loss differs by more than 3 %, or a setting has too few runs that count. Has the
    /// requirements of `spdy lab shape`; all settings take minutes.
    #[cfg(target_os = "linux")]
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(calibrate::Args),
    /// Load a recorded page in Chromium behind an emulated link, and compare it with virtual time
    ///
    /// At the far end of the link, a server at each recorded address serves the page, with certificates for the
    /// recorded names, and a resolver answers for them. A load counts if its link had the requested properties, it
    /// requested nothing that was not recorded, and it fetched the same as most loads. The recording of that load is
    /// then loaded in virtual time over the same network. The exit code is 1 if too few loads count. Has the
    /// requirements of `spdy lab shape`, and needs Chromium or Chrome.
    #[cfg(target_os = "linux")]
    #[command(after_help = browse::EXAMPLES)]
    Browse(browse::Args),
    /// Run a program behind an emulated link, with the kernel's TCP, in real time
    ///
    /// The program has one network, whose only way out is the link. At the far end, the program of --server is
    /// reachable at every address, such as 198.18.0.1. The machine's network and its resolver are not reachable. The
    /// exit code is the program's. When the program ends, the measured properties of the link are printed to stderr.
    /// Needs Linux, and root or user namespaces; all changes to the system are undone.
    #[cfg(target_os = "linux")]
    #[command(after_help = shape::EXAMPLES)]
    Shape(Box<shape::Args>),
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab run lulic                            Lulic's experiment of 2013, into lulic.db"
    "spdy lab run loss.toml --store loss.db"
    "spdy lab show loss.db"
    "spdy lab compare before.db after.db --budget 2%"
    "spdy lab reproduce all --corpus recordings/    claims of papers, tested"
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
