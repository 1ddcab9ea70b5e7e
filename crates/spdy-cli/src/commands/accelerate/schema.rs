//! `spdy accelerate schema`: the JSON Schema of the configuration, for editors and checks.

use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::Printer;

/// Made by a test (`crate::reference`): the code that makes it would be four times as large. If the file is missing, create an empty
/// one, and run `make reference`.
const SCHEMA: &str =
    include_str!("../../../../../docs/reference/configuration/configuration.schema.json");

/// Arguments of `spdy accelerate schema`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate schema > accelerate.schema.json"
};

pub(crate) fn run(_: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    printer.bytes(SCHEMA.as_bytes())?;
    Ok(Outcome::Done)
}
