//! `spdy man DIR`: writes the man pages of the program.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;

use crate::help::examples;
use crate::outcome::Outcome;

/// Arguments of `spdy man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the pages, which is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy man ~/.local/share/man/man1      then man spdy-race"
};

/// Writes the pages of `command`, the whole program: `spdy.1`, and one for each subcommand.
pub(crate) fn run(args: &Args, command: Command) -> anyhow::Result<Outcome> {
    let folder = args.folder.display();
    fs::create_dir_all(&args.folder).with_context(|| format!("cannot create {folder}"))?;
    clap_mangen::generate_to(command.disable_help_subcommand(true), &args.folder)
        .with_context(|| format!("cannot write man pages to {folder}"))?;
    Ok(Outcome::Done)
}
