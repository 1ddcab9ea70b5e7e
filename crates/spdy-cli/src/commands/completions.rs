//! `spdy completions SHELL`: what a shell needs to complete our words.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::commands::Outcome;
use crate::help::examples;
use crate::printer::Printer;

/// What `spdy completions` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to speak to
    shell: Shell,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy completions bash > /etc/bash_completion.d/spdy"
    "spdy completions zsh > ~/.zfunc/_spdy"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "spdy", &mut script);
    printer.bytes(&script)?;
    Ok(Outcome::Done)
}
