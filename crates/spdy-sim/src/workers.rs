//! Runs many independent jobs on all cores. Results arrive in the order of completion.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Stack of a thread that loads pages: futures of an unoptimised build nest deeply.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Calls `work` for each number below `total` on `threads` threads (`None`: one per core). Calls `on_done` with each result, until it
/// returns `Break`. Work in progress is then finished, and its result dropped.
///
/// # Panics
///
/// If `work` panics.
pub fn each<T: Send>(
    total: usize,
    threads: Option<NonZeroUsize>,
    work: impl Fn(usize) -> T + Sync,
    mut on_done: impl FnMut(usize, T) -> ControlFlow<()>,
) {
    let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = threads.unwrap_or_else(cores).get().min(total);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            let (work, next) = (&work, &next);
            let worker = move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is gone once `on_done` has returned `Break`.
                    if number >= total || sender.send((number, work(number))).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new()
                .name("load".to_owned())
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, worker)
                .expect("cannot start a thread");
        }
        drop(sender);
        for (number, result) in receiver {
            if on_done(number, result).is_break() {
                return; // this drops the receiver, which ends the threads
            }
        }
    });
}
