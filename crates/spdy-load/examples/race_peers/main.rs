//! Races the project's server against its peers on loopback, in one run: `scripts/race-peers`.
//!
//! ```text
//!  servers.rs     starts all servers on free ports, and ends them in every case
//!  course.rs      contestants and loads: lanes (plain, TLS) x loads x files
//!  heat.rs        rounds A B C A B C ..., and the medians of each
//!  table.rs       a table for people, or one JSON object per row
//!  generators.rs  instead of a race: validates the load generator
//! ```
//!
//! All contestants serve the same files from memory or from the page cache, and are loaded by the same generator (`spdy_load`, one
//! thread), one at a time. The CPU time of the servers is compared, which a generator on the same machine does not change.

mod course;
mod generators;
mod heat;
mod servers;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::course::{Cell, File, Load};
use crate::servers::{Grid, Site};

/// Race `spdy serve` against Netty, nginx, nghttpd and others, and print ratios.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// The program `spdy`, built for release
    #[arg(long, value_name = "FILE", default_value = "target/dist/spdy")]
    spdy: PathBuf,

    /// The folder of the peers' drivers
    #[arg(long, value_name = "DIR", default_value = "interop")]
    interop: PathBuf,

    /// Rounds; medians are printed
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Seconds of each round that are measured
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    seconds: f64,

    /// Seconds of warm-up in each round
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5)]
    warm_up: f64,

    /// Seconds of load for each server of a virtual machine before the first round of each cell
    #[arg(long, value_name = "SECONDS", default_value_t = 15.0)]
    jit: f64,

    /// Also node-spdy, spdystream, OkHttp, Jetty and Undertow
    #[arg(long)]
    all: bool,

    /// Only these lanes
    #[arg(long, value_delimiter = ',', default_value = "plain,tls")]
    lanes: Vec<course::TransportKind>,

    /// Only files of this many bytes
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "BYTES",
        default_value = "128,10240"
    )]
    files: Vec<usize>,

    /// Only these peers, by the start of their names
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,

    /// Instead of a race: compare our load generator with h2load and wrk against nginx
    #[arg(long, conflicts_with = "json")]
    generators: bool,

    /// Print one JSON object per row
    #[arg(long)]
    json: bool,
}

impl Args {
    /// True if the peer `name` takes part over `transport`.
    fn includes(&self, name: &str, transport: course::TransportKind) -> bool {
        let usual = ["netty", "nginx", "nghttpd"];
        let is_selected = match self.only.is_empty() {
            true => self.all || usual.contains(&name),
            false => self.only.iter().any(|only| name.starts_with(only)),
        };
        is_selected && self.lanes.contains(&transport)
    }

    fn round(&self) -> heat::Round {
        heat::Round {
            seconds: Duration::from_secs_f64(self.seconds),
            warm_up: Duration::from_secs_f64(self.warm_up),
            jit: Duration::from_secs_f64(self.jit),
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("the runtime can be created");
    let outcome = runtime.block_on(async {
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
                .expect("a signal handler can be installed");
        // Dropping the race ends every server and removes every file.
        tokio::select! {
            outcome = race(&args) => outcome,
            _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
            _ = terminate.recv() => Err("terminated".to_owned()),
        }
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            table::print_note(&message);
            ExitCode::FAILURE
        }
    }
}

/// Runs the race; `false` if a response was wrong.
async fn race(args: &Args) -> Result<bool, String> {
    let files: Vec<File> = args.files.iter().map(|bytes| File::of(*bytes)).collect();
    let site = Site::make(&files)?;
    let grid = Grid::start(args, &site)?;
    if args.generators {
        generators::compare(args, &grid, &files[0])?;
        return Ok(true);
    }
    let mut right = true;
    for cell in Cell::all(&args.lanes, &Load::ALL, &files) {
        let heat = heat::run(&cell, &grid, args.rounds, args.round()).await?;
        right &= heat.is_right();
        table::print_cell(&cell, &heat, args.json);
    }
    Ok(right)
}
