//! scratch
mod support;
use spdy_clock::Instant;
use spdy_netem::*;
use support::*;
#[test]
fn scratch() {
    for (bps, rtt, n) in [
        (2_000_000, 100, 1_000),
        (2_000_000, 100, 30_000),
        (10_000_000, 200, 1_000_000),
        (250_000, 500, 1_000_000),
    ] {
        let mut world = World::today(&PathConfig::new(bps, bps, MS * rtt));
        let mut apps = Download::new(100, n).closing();
        world.run(&mut apps, Instant::from_millis(600_000));
        println!(
            "{bps} {rtt} {n}: {:?} {:?} {:?}\n{:?}\n{:?}",
            apps.done_at.map(|a| a.to_string()),
            apps.both_closed,
            apps.wrong,
            world.client.stats(),
            world.server.stats()
        );
        if n <= 30_000 {
            for s in &world.trace {
                println!(
                    "{} {:?} seq {} ack {} len {} ip {} {:?} win {}",
                    s.at,
                    s.way,
                    s.segment.seq,
                    s.segment.ack,
                    s.segment.payload.len(),
                    s.segment.ip_len_bytes(),
                    s.segment.flags,
                    s.segment.window_bytes
                );
            }
        }
    }
}
