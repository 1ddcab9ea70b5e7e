//! Packets per second of a 1 MB download in virtual time: loss-free, and with 1 % loss.

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::PathConfig;
use spdy_netem::tcp::TcpConfig;
use support::{Download, MS, World, at_ms};

const ANSWER_BYTES: usize = 1_000_000;

fn run(path: &PathConfig) -> World {
    let mut world = World::new(path, 7, TcpConfig::today(), TcpConfig::today());
    let mut apps = Download::new(300, ANSWER_BYTES);
    world.run(&mut apps, at_ms(600_000));
    assert_eq!(apps.received, ANSWER_BYTES);
    world
}

fn downloads(c: &mut Criterion) {
    let clean = PathConfig::new(1_000_000, 5_000_000, 28 * MS);
    let one_percent = Probability::from_ppb(10_000_000).expect("below 100 %");
    let lossy = PathConfig {
        loss_down: LossModel::bernoulli(one_percent),
        ..clean.clone()
    };
    let mut group = c.benchmark_group("tcp/1 MB");
    for (name, path) in [("clean", clean), ("1 % loss", lossy)] {
        let packets = run(&path).trace.len() as u64;
        group.throughput(Throughput::Elements(packets));
        group.bench_function(name, |b| b.iter(|| black_box(run(&path))));
    }
    group.finish();
}

criterion_group!(benches, downloads);
criterion_main!(benches);
