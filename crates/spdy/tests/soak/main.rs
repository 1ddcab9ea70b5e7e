//! Requests by the thousand, among resets, cut connections and readers that stand still: no byte lost or
//! wrong, and nothing left over. `it/robustness/chaos.rs` tests whether cancelled streams leave credit behind; here
//! every byte is checked, on both sides, and connections break.
//!
//! ```text
//!   client: asks, uploads, reads on, pauses, leaves       server: checks the upload, answers, breaks off
//!                     |  rough: late now and then, cut after some bytes  |
//!                     `--------------- loopback, or a wire --------------'
//! ```
//!
//! A request may fail only if something that was done to it explains it. The whole of it, 100,000 requests
//! over sockets, is `cargo test --release -p spdy --test soak -- --ignored --nocapture`; `SOAK_SEED` and
//! `SOAK_REQUESTS` choose another. In debug some thousand run, in sockets and in virtual time.
//!
//! A test program of its own, because it reads the memory use of its process, and because `make bench` runs it alone.

mod body;
mod exchange;
mod plan;
mod random;
mod rough;
mod run;
mod tally;
#[path = "../it/support/virtual_world.rs"]
mod virtual_world;

use std::sync::Arc;
use std::time::Duration;

use spdy::{Metrics, SharedRuntime, TokioRuntime};

use crate::random::TestRandom;
use crate::run::{Loopback, Run, Wire};
use crate::virtual_world::{VirtualTime, World};

/// KiB of this process that are in memory, if the system reports it.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A run that takes longer hangs.
const RUN_TIMEOUT: Duration = Duration::from_secs(1200);

async fn soak_sockets(requests: u64, seed: u64) -> Arc<Run<Loopback>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("loopback");
    let run = Arc::new(Run {
        dial: Loopback(tokio::sync::Mutex::new(listener)),
        runtime: SharedRuntime::new(TokioRuntime::start()),
        metrics: Metrics::new(),
        tally: Arc::default(),
        requests,
    });
    let tasks = tokio::runtime::Handle::current().metrics();
    let tasks_before = tasks.num_alive_tasks();
    let mut random = TestRandom(seed);
    let workers: Vec<_> = (0..8)
        .map(|_| tokio::spawn(run.clone().worker(random.fork())))
        .collect();
    // A stream that is left over holds its session, and with it a worker.
    let all = futures_util::future::join_all(workers);
    let all = tokio::time::timeout(RUN_TIMEOUT, all).await;
    let all = all.unwrap_or_else(|_| panic!("seed {seed}: the run hangs: {}", run.tally));
    for worker in all {
        worker.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    // Connections that were closed are read for a second more.
    for _ in 0..1000 {
        if tasks.num_alive_tasks() == tasks_before && run.is_over() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        tasks.num_alive_tasks(),
        tasks_before,
        "seed {seed}: tasks are still running"
    );
    run.judge(seed);
    run
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn soak_over_sockets_loses_no_byte_and_no_stream() {
    soak_sockets(3_000, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes several minutes: make bench runs it in release mode"]
#[allow(clippy::print_stdout, reason = "the test prints its measurements")]
async fn a_hundred_thousand_requests() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seed = number("SOAK_SEED").unwrap_or(1);
    let requests = number("SOAK_REQUESTS").unwrap_or(100_000);
    // The first run fills what allocators keep; the second must not hold more.
    soak_sockets(requests / 10, seed).await;
    let memory_before = resident_kib();
    let start = std::time::Instant::now();
    let run = soak_sockets(requests, seed).await;
    println!("seed {seed}: {}", run.tally);
    println!(
        "{:.1} s; resident before {memory_before:?} KiB, after {:?} KiB",
        start.elapsed().as_secs_f64(),
        resident_kib()
    );
}

#[test]
fn soak_in_virtual_time_loses_no_byte_and_no_stream() {
    for seed in 1..=3 {
        let world = Arc::<World>::default();
        let run = Arc::new(Run {
            dial: Wire(world.clone()),
            runtime: SharedRuntime::new(VirtualTime(world.clone())),
            metrics: Metrics::new(),
            tally: Arc::default(),
            requests: 600,
        });
        let mut random = TestRandom(seed);
        for _ in 0..4 {
            run.runtime
                .spawn(Box::pin(run.clone().worker(random.fork())));
        }
        world.run();
        run.judge(seed);
    }
}
