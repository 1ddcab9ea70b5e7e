//! What a load costs the processor: each shipped page by each protocol, on one thread.
//!
//! ```text
//! cargo run --release -p spdy-lab --example cost
//! ```

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Instant;

use spdy_lab::options::RaceProtocol;
use spdy_lab::race::{Race, RaceNetwork};
use spdy_page::builtin;

/// Loads of each kind; the fastest half is what is told, since other work on the machine only adds.
const RUNS: u32 = 20;

fn main() -> std::io::Result<()> {
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=100ms").expect("a network by hand");
    let mut out = std::io::stdout().lock();
    for replica in [builtin::flags(), builtin::portal()] {
        let mut sum = 0.0;
        for protocol in RaceProtocol::ALL {
            let mut race = Race::new(vec![replica.clone()], vec![network.clone()]);
            race.protocols = vec![protocol];
            race.runs = RUNS;
            race.threads = NonZeroUsize::new(1);
            let (mut walls, mut packets, mut begun) = (Vec::new(), 0, Instant::now());
            race.run(|progress| {
                walls.push(begun.elapsed().as_secs_f64() * 1e3);
                packets = progress.load.packets_up + progress.load.packets_down;
                begun = Instant::now();
            });
            walls.sort_by(f64::total_cmp);
            let half = &walls[..walls.len() / 2];
            let ms = half.iter().sum::<f64>() / half.len() as f64;
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
            sum / RaceProtocol::ALL.len() as f64
        )?;
    }
    Ok(())
}
