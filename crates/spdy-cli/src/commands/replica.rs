//! `spdy replica`.

use crate::commands::Outcome;
use crate::printer::Printer;

/// What `spdy replica` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) const EXAMPLES: &str = "\
Examples:
  spdy replica --help

Exit codes:
  0  done
  1  failed: the reason is on stderr
  2  usage: the command line was not understood";

pub(crate) fn run(_args: &Args, _printer: &Printer) -> anyhow::Result<Outcome> {
    anyhow::bail!("spdy replica is not built yet")
}
