//! Races every recording in some folders over all four protocols, and prints one line of results for each.
//!
//! ```text
//! cargo run --release -p spdy-sim --example corpus -- FOLDER...
//! ```
//!
//! Exits with 1 if a load of an imported recording did not end.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use spdy_sim::load::Load;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::{Race, RaceNetwork};

fn main() -> std::io::Result<ExitCode> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in std::env::args_os().skip(1) {
        for entry in std::fs::read_dir(folder)? {
            files.push(entry?.path());
        }
    }
    files.sort();
    let mut out = std::io::stdout().lock();
    if files.is_empty() {
        writeln!(
            out,
            "no recordings: name folders that hold .har, .warc or .json files, each also .gz"
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=100ms").expect("a network by hand");
    writeln!(
        out,
        "{:<44} {:>5} {:>5} {:>9} {:>9} {:>9} {:>9} {:>7} {:>6}",
        "recording", "reqs", "conns", "http ms", "https", "spdy", "h2", "failed", "wall s"
    )?;
    let mut all_ended = true;
    for file in files {
        let name = file
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let opened = match spdy_page::open::open(&file.to_string_lossy()) {
            Ok(opened) => opened,
            Err(reason) => {
                writeln!(out, "{name:<44} not imported: {reason}")?;
                continue;
            }
        };
        let begun = Instant::now();
        let loads = Race::new(vec![opened.replica], vec![network.clone()]).run(|_| ());
        let wall = begun.elapsed().as_secs_f64();
        let ms = |protocol: RaceProtocol| {
            loads
                .iter()
                .find(|load| load.protocol == protocol.name())
                .map_or(0.0, |load| load.load_ms)
        };
        let [http, https, spdy, h2] = RaceProtocol::DEFAULTS.map(ms);
        let failed: usize = loads.iter().map(|load| load.failures.len()).sum();
        let (requests, connections) = (loads[0].requests, loads[0].connections);
        writeln!(
            out,
            "{name:<44} {requests:>5} {connections:>5} {http:>9.1} {https:>9.1} {spdy:>9.1} {h2:>9.1} {failed:>7} {wall:>6.2}"
        )?;
        all_ended &= report_failures(&mut out, &loads)?;
    }
    Ok(if all_ended {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints the first failures, each cause once. Returns `false` if a load did not end.
fn report_failures(out: &mut impl Write, loads: &[Load]) -> std::io::Result<bool> {
    let mut seen: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for load in loads {
        for failure in &load.failures {
            seen.entry(failure).or_default().push(&load.protocol);
        }
    }
    for (failure, protocols) in seen.iter().take(4) {
        writeln!(out, "    {}: {failure}", protocols.join(", "))?;
    }
    Ok(!seen
        .keys()
        .any(|failure| failure.starts_with("the load did not end")))
}
