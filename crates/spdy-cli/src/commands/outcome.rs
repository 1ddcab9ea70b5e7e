//! How a command ends, and the one place that picks it.

use crate::cli::Command;
#[cfg(unix)]
use crate::commands::record;
use crate::commands::{
    accelerate, bench, completions, doctor, fetch, inspect, lab, race, replica, serve,
};
use crate::printer::Printer;

/// How a command ended that has printed its results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1. The results already show why: findings of a check, a URL that failed.
    Failed,
    /// As the program ended that was run for the caller.
    Code(u8),
}

/// The command line asked for something that does not exist: exit code 2.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs `command`.
///
/// # Errors
///
/// Why it failed, as a chain; [`Usage`] in it makes the exit code 2.
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
        Command::Completions(args) => completions::run(args, printer),
    }
}
