//! `spdy accelerate schema`: the JSON Schema of the configuration, for editors and checks.

use schemars::schema_for;
use spdy_proxy::config::Config;

use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::Printer;

/// Arguments of `spdy accelerate schema`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate schema > accelerate.schema.json"
};

pub(crate) fn run(_: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let mut text = serde_json::to_vec_pretty(&schema_for!(Config))?;
    text.push(b'\n');
    printer.bytes(&text)?;
    Ok(Outcome::Done)
}
