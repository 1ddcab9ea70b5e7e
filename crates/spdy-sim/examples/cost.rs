//! CPU time of a load: each shipped page by each protocol, on one thread.
//!
//! ```text
//! cargo run --release -p spdy-sim --example cost
//! ```

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Instant;

use spdy_page::builtin;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::{Race, RaceNetwork};

/// Loads of one batch.
const RUNS: u32 = 20;
/// Batches of each kind. The fastest is printed, because other work on the machine can only slow a batch down.
const BATCHES: u32 = 5;

fn main() -> std::io::Result<()> {
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=100ms").expect("a network by hand");
    let mut out = std::io::stdout().lock();
    for replica in [builtin::flags(), builtin::portal()] {
        let mut sum = 0.0;
        for protocol in RaceProtocol::DEFAULTS {
            let mut race = Race::new(vec![replica.clone()], vec![network.clone()]);
            race.protocols = vec![protocol];
            race.runs = RUNS;
            race.threads = NonZeroUsize::new(1);
            let (mut ms, mut packets) = (f64::INFINITY, 0);
            for _ in 0..BATCHES {
                let begun = Instant::now();
                race.run(|progress| {
                    packets = progress.load.packets_up + progress.load.packets_down;
                });
                ms = ms.min(begun.elapsed().as_secs_f64() * 1e3 / f64::from(RUNS));
            }
            sum += ms;
            writeln!(
                out,
                "{:<8} {protocol:<6} {ms:>7.2} ms a load, {packets} packets",
                replica.name
            )?;
        }
        writeln!(
            out,
            "{:<8} mean   {:>7.2} ms a load",
            replica.name,
            sum / RaceProtocol::DEFAULTS.len() as f64
        )?;
    }
    Ok(())
}
