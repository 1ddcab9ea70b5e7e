//! Downloads over a link with a trace.

use std::time::Duration;

use spdy_netem::path::{Direction, PathConfig};
use spdy_netem::queue::QueueConfig;
use spdy_netem::trace::Trace;
use spdy_netem::wire::LinkRate;

use crate::support::{Download, MS, World, at_ms};

/// 8 opportunities in 10 ms, then none for 10 ms: 4.8 Mbit/s.
fn bursty() -> Trace {
    let lines = (1..=8).map(|ms| format!("{ms}\n")).collect::<String>();
    Trace::parse("bursty", &format!("{lines}20\n")).expect("the trace is valid")
}

fn path(queue: QueueConfig) -> PathConfig {
    PathConfig {
        down: LinkRate::Trace(bursty()),
        queue,
        ..PathConfig::new(5_000_000, 1, 40 * MS)
    }
}

fn download(queue: QueueConfig, bytes: usize) -> (World, Duration) {
    let mut world = World::today(&path(queue));
    let mut apps = Download::new(300, bytes);
    world.run(&mut apps, at_ms(600_000));
    assert_eq!(apps.wrong, None);
    let done = apps.done_at.expect("the download ends");
    (world, done - spdy_clock::Instant::ZERO)
}

#[test]
fn a_long_download_has_the_mean_rate_of_the_trace() {
    for queue in [QueueConfig::DEFAULT, QueueConfig::FqCoDel] {
        let (world, took) = download(queue, 10_000_000);
        // 4 of the 1,504 bytes are mahimahi's header.
        let bps = bursty().mean_bps() as f64 * 1_500.0 / 1_504.0;
        let bits: usize = (world.sent(Direction::Down))
            .filter(|seen| seen.arrives.is_some())
            .map(|seen| seen.segment.ip_len_bytes() * 8)
            .sum();
        let share = bits as f64 / took.as_secs_f64() / bps;
        assert!((0.98..=1.0).contains(&share), "{queue}: {share}");
    }
}

#[test]
fn packets_leave_only_at_opportunities() {
    let (world, _) = download(QueueConfig::CoDel, 300_000);
    // The trace begins with the SYN, at 0.
    for seen in world.sent(Direction::Down) {
        let Some(arrives) = seen.arrives else {
            continue;
        };
        let left = (arrives - seen.at).as_nanos();
        assert!(left >= 20_000_000, "half of the round trip");
        let at_ms = (arrives.as_nanos() - 20_000_000) / 1_000_000 % 20;
        let is_whole = arrives.as_nanos() % 1_000_000 == 0;
        assert!(is_whole && (at_ms <= 8), "left at {at_ms} ms");
    }
}

#[test]
fn the_same_download_repeats_to_the_nanosecond() {
    for queue in [
        QueueConfig::DEFAULT,
        QueueConfig::CoDel,
        QueueConfig::FqCoDel,
    ] {
        let hash = || download(queue, 500_000).0.trace_hash();
        assert_eq!(hash(), hash(), "{queue}");
    }
}
