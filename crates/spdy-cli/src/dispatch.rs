//! Runs the command that the command line names.

use clap::CommandFactory;

use crate::cli::{Cli, Command};
#[cfg(unix)]
use crate::commands::record;
use crate::commands::{
    accelerate, bench, completions, doctor, fetch, inspect, lab, race, replica, serve,
};
use crate::outcome::Outcome;
use crate::output::Printer;

/// Runs `command`.
///
/// # Errors
///
/// Why it failed, as a chain; [`Usage`](crate::outcome::Usage) in it makes the exit code 2.
pub(crate) fn run(command: &Command, printer: &Printer) -> anyhow::Result<Outcome> {
    match command {
        Command::Race(args) => race::run(args, printer),
        Command::Doctor(args) => doctor::run(args, printer),
        Command::Serve(args) => serve::run(args, printer),
        Command::Fetch(args) => fetch::run(args, printer),
        Command::Accelerate(args) => accelerate::run(args, printer),
        Command::Bench(args) => bench::run(args, printer),
        Command::Inspect(args) => inspect::run(args, printer),
        Command::Lab(args) => lab::run(args, printer),
        #[cfg(unix)]
        Command::Record(args) => record::run(args, printer),
        Command::Replica(args) => replica::run(args, printer),
        Command::Completions(args) => completions::run(args, &mut Cli::command(), printer),
    }
}
