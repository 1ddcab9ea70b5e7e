//! `spdy completions SHELL`: prints the completions of the program for a shell.

use clap::Command;
use clap_complete::Shell;

use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::Printer;

/// Arguments of `spdy completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to print the script for
    shell: Shell,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy completions bash > /etc/bash_completion.d/spdy"
    "spdy completions zsh > ~/.zfunc/_spdy"
};

/// Prints completions for `command`, the whole program.
pub(crate) fn run(
    args: &Args,
    command: &mut Command,
    printer: &Printer,
) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "spdy", &mut script);
    printer.bytes(&script)?;
    Ok(Outcome::Done)
}
