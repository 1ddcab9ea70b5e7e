//! The lines that wait for the file of the access log. Requests add them and never wait; the writer's thread takes them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Bytes of lines that may wait for the file. Above it, lines are dropped and counted.
pub(super) const QUEUE_BYTES: usize = 4 << 20;
/// Bytes that are written without waiting for more.
const BATCH_BYTES: usize = 64 << 10;
/// How long the first line of a batch waits for others.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);

/// Numbers of lines by outcome, and of errors.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Lines that were written to the file.
    pub(crate) written: AtomicU64,
    /// Lines that were dropped because the queue was full, or the log was turned off.
    pub(crate) dropped: AtomicU64,
    /// Attempts to open or write the file that failed.
    pub(crate) errors: AtomicU64,
}

impl Counts {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    state: Mutex<State>,
    changed: Condvar,
    pub(crate) counts: Counts,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<u8>,
    /// Bytes that the writer has taken and not yet written.
    taken_bytes: usize,
    /// The file that lines are written to.
    path: Option<PathBuf>,
    /// `path` must be opened, or closed if it is `None`.
    is_path_new: bool,
    is_stopped: bool,
}

/// What the writer does next: write `lines`, then open `path`, then end.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) lines: Vec<u8>,
    /// The file to open from now on; `Some(None)` for none.
    pub(super) path: Option<Option<PathBuf>>,
    pub(super) is_last: bool,
}

impl Lines {
    /// Adds `line`, or drops it if too many bytes wait.
    pub(super) fn add(&self, line: &[u8]) {
        let mut state = self.state.lock();
        if state.taken_bytes + state.waiting.len() + line.len() > QUEUE_BYTES {
            drop(state);
            return Counts::add(&self.counts.dropped, 1);
        }
        let before = state.waiting.len();
        state.waiting.extend_from_slice(line);
        let after = state.waiting.len();
        drop(state);
        // Not for each line: the writer is woken twice a batch.
        if before == 0 || (before < BATCH_BYTES && after >= BATCH_BYTES) {
            self.changed.notify_one();
        }
    }

    /// Lets the writer use the file at `path` after the lines that wait now.
    pub(super) fn open(&self, path: Option<PathBuf>) {
        let mut state = self.state.lock();
        (state.path, state.is_path_new) = (path, true);
        drop(state);
        self.changed.notify_one();
    }

    /// Lets the writer open its file again. False if there is none.
    pub(super) fn reopen(&self) -> bool {
        let mut state = self.state.lock();
        let has_file = state.path.is_some();
        state.is_path_new |= has_file;
        drop(state);
        self.changed.notify_one();
        has_file
    }

    /// Lets the writer end after the lines that wait now.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopped = true;
        self.changed.notify_one();
    }

    /// Waits until there is work.
    pub(super) fn wait_for_work(&self) -> Work {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.is_urgent() {
            self.changed.wait(&mut state);
        }
        let flush_at = Instant::now() + FLUSH_INTERVAL;
        while state.waiting.len() < BATCH_BYTES && !state.is_urgent() {
            if self.changed.wait_until(&mut state, flush_at).timed_out() {
                break;
            }
        }
        let lines = state.take();
        state.work(lines)
    }

    /// Takes the lines that wait now.
    pub(super) fn take(&self) -> Vec<u8> {
        self.state.lock().take()
    }

    /// Waits for `timeout`, or until something other than lines arrives.
    pub(super) fn wait_for_retry(&self, timeout: Duration) -> Work {
        let mut state = self.state.lock();
        let retry_at = Instant::now() + timeout;
        while !state.is_urgent() && !self.changed.wait_until(&mut state, retry_at).timed_out() {}
        state.work(Vec::new())
    }

    /// Records that all taken lines were written or dropped.
    pub(super) fn set_taken_written(&self) {
        self.state.lock().taken_bytes = 0;
    }
}

impl State {
    fn is_urgent(&self) -> bool {
        self.is_path_new || self.is_stopped
    }

    fn take(&mut self) -> Vec<u8> {
        let lines = std::mem::take(&mut self.waiting);
        self.taken_bytes = lines.len();
        lines
    }

    fn work(&mut self, lines: Vec<u8>) -> Work {
        let is_path_new = std::mem::take(&mut self.is_path_new);
        Work {
            lines,
            path: is_path_new.then(|| self.path.clone()),
            is_last: self.is_stopped,
        }
    }
}
