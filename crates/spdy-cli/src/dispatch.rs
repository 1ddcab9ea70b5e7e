//! Runs the command that the command line names.

use clap::CommandFactory;

use crate::cli::{Cli, Command};
#[cfg(feature = "accelerate")]
use crate::commands::accelerate;
#[cfg(feature = "lab")]
use crate::commands::lab;
#[cfg(all(feature = "lab", unix))]
use crate::commands::record;
#[cfg(feature = "serve")]
use crate::commands::{bench, fetch, inspect, serve};
use crate::commands::{completions, doctor, man, race, replica};
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
        #[cfg(feature = "serve")]
        Command::Serve(args) => serve::run(args, printer),
        #[cfg(feature = "serve")]
        Command::Fetch(args) => fetch::run(args, printer),
        #[cfg(feature = "accelerate")]
        Command::Accelerate(args) => accelerate::run(args, printer),
        #[cfg(feature = "serve")]
        Command::Bench(args) => bench::run(args, printer),
        #[cfg(feature = "serve")]
        Command::Inspect(args) => inspect::run(args, printer),
        #[cfg(feature = "lab")]
        Command::Lab(args) => lab::run(args, printer),
        #[cfg(all(feature = "lab", unix))]
        Command::Record(args) => record::run(args, printer),
        Command::Replica(args) => replica::run(args, printer),
        Command::Completions(args) => completions::run(args, &mut Cli::command(), printer),
        Command::Man(args) => man::run(args, Cli::command()),
    }
}
