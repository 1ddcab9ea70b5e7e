//! `spdy lab ...`: a file for each of its commands.

#[cfg(target_os = "linux")]
mod shape;

use crate::commands::Outcome;
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy lab` is asked.
#[derive(Debug, clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Run a program behind a link: the kernel's own TCP, in real time
    ///
    /// The program finds one network, whose only way out is the link; at its far end is what --server starts, at
    /// every address (198.18.0.1 is as good as any), and nothing else: neither the machine's network nor its
    /// resolver. The exit code is the program's. What the link achieved is told on stderr when the program has
    /// ended. Needs Linux, and root or user namespaces; nothing is left behind, however it ends.
    #[cfg(target_os = "linux")]
    #[command(after_help = shape::EXAMPLES)]
    Shape(shape::Args),
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab shape --network dsl --server \"spdy serve portal --plain 0.0.0.0:80\" -- spdy fetch http://198.18.0.1/"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match &args.command {
        #[cfg(target_os = "linux")]
        Command::Shape(args) => shape::run(args, printer),
    }
}
