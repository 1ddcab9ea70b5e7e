//! `spdy replica draw`: draws when each response of a recorded page was on the wire.

use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_page::open::ImportOptions;
use spdy_page::replica::Replica;

use crate::args::open_replica;
use crate::outcome::{Outcome, Usage};
use crate::output::{check_output_differs, encode_picture, parse_picture_path};

/// Arguments of `spdy replica draw`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Recordings with times (of `spdy record`, or HAR), in the order of the picture, labelled by file name
    #[arg(value_name = "REPLICA", required = true)]
    replicas: Vec<String>,

    /// Output file; its name decides the format: .svg or .png
    #[arg(short, long, value_name = "FILE", value_parser = parse_picture_path)]
    output: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut recorded = Vec::with_capacity(args.replicas.len());
    for name in &args.replicas {
        check_output_differs(Path::new(name), &args.output)?;
        let replica = open_replica(name, &ImportOptions::default())?.replica;
        if !has_times(&replica) {
            let message = format!(
                "{name} has no times: expected a page recorded by `spdy record` or a browser"
            );
            return Err(Usage(message).into());
        }
        recorded.push((label(name), replica));
    }
    let svg = spdy_report::recordings(&recorded, env!("CARGO_PKG_VERSION"))
        .expect("all replicas have times");
    let picture = encode_picture(svg, &args.output);
    std::fs::write(&args.output, picture)
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    Ok(Outcome::Done)
}

fn has_times(replica: &Replica) -> bool {
    let mut exchanges = replica.exchanges.iter();
    exchanges.any(|exchange| exchange.started.is_some() && exchange.wait.is_some())
}

/// The name of the file without its endings.
fn label(name: &str) -> String {
    let file = Path::new(name).file_name().unwrap_or_default();
    let file = file.to_string_lossy();
    file.split('.').next().unwrap_or_default().to_owned()
}
