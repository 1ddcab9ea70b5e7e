//! Packets per second of a 1 MB download in virtual time: loss-free, and with 1 % loss.

#[path = "../tests/it/support/mod.rs"]
mod support;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spdy_clock::Instant;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::PathConfig;
use spdy_netem::tcp::{Tcp, TcpConfig};
use support::{Apps, MS, World, at_ms};

const ANSWER_BYTES: usize = 1_000_000;

static ANSWER: [u8; ANSWER_BYTES] = [7; ANSWER_BYTES];

/// The server writes at once; the bytes are not checked.
#[derive(Default)]
struct Bulk {
    written: usize,
    read: usize,
}

impl Apps for Bulk {
    fn client(&mut self, now: Instant, tcp: &mut Tcp) {
        while tcp.readable_bytes() > 0 {
            self.read += tcp.read(now, usize::MAX).len();
        }
    }

    fn server(&mut self, now: Instant, tcp: &mut Tcp) {
        if tcp.send_capacity() > 0 {
            self.written += tcp.write(now, &ANSWER[self.written..]);
        }
    }

    fn is_done(&self) -> bool {
        self.read == ANSWER_BYTES
    }
}

fn run(path: &PathConfig) -> World {
    let mut world = World::new(path, 7, TcpConfig::today(), TcpConfig::today());
    let mut apps = Bulk::default();
    world.run(&mut apps, at_ms(600_000));
    assert_eq!(apps.read, ANSWER_BYTES);
    world
}

fn downloads(criterion: &mut Criterion) {
    let clean = PathConfig::new(1_000_000, 5_000_000, 28 * MS);
    let one_percent = Probability::from_ppb(10_000_000).expect("1 % is a probability");
    let lossy = PathConfig {
        loss_down: LossModel::bernoulli(one_percent),
        ..clean.clone()
    };
    let mut group = criterion.benchmark_group("tcp/1 MB");
    for (name, path) in [("clean", clean), ("1 % loss", lossy)] {
        let packets = run(&path).trace.len() as u64;
        group.throughput(Throughput::Elements(packets));
        group.bench_function(name, |b| b.iter(|| black_box(run(&path))));
    }
    group.finish();
}

criterion_group!(benches, downloads);
criterion_main!(benches);
