//! Compresses stored texts again, as small as Brotli can. That takes seconds for a large script, so a thread of its own does it, one text
//! after the other, and rests as long as it has worked. It does so for texts that were requested again after they were stored.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Instant;
use std::{io, thread};

use spdy_cache::body::Body;
use spdy_cache::key::Key;

use crate::body::content_coding::Coding;
use crate::body::decoder::Decoder;
use crate::body::encoder::encode_smallest;
use crate::cache::encoded_bodies::EncodedBodies;

/// The longest text that is compressed again, bytes. It takes about 16 s.
pub(super) const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// The most bytes of stored texts that wait. They are held until then. Another text is compressed when it is requested again.
const MAX_WAITING_BYTES: u64 = 8 * 1024 * 1024;
/// What a waiting text counts at least, bytes.
const MIN_JOB_BYTES: u64 = 64 * 1024;
/// A result is kept if it saves this part of the bytes: one in 32.
const MIN_SAVED_PART: u64 = 32;

/// A text to compress.
#[derive(Debug)]
pub(super) struct RecompressionJob {
    pub(super) key: Key,
    pub(super) body: Body,
    /// The coding of the body.
    pub(super) coding: Coding,
    /// The length of what clients get until then, bytes.
    pub(super) served_len: u64,
    pub(super) results: Weak<EncodedBodies>,
}

/// Sends jobs to the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Recompressor {
    jobs: Sender<RecompressionJob>,
    waiting_bytes: Arc<AtomicU64>,
}

impl Recompressor {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, waiting) = channel();
        let waiting_bytes = Arc::new(AtomicU64::new(0));
        let bytes = waiting_bytes.clone();
        let run = move || run(&waiting, &bytes);
        thread::Builder::new()
            .name("recompress".into())
            .spawn(run)?;
        Ok(Self {
            jobs,
            waiting_bytes,
        })
    }

    /// Whether the text will be compressed.
    pub(super) fn add(&self, job: RecompressionJob) -> bool {
        let bytes = weight(&job);
        let room = MAX_WAITING_BYTES - bytes;
        let add = |waiting: u64| (waiting <= room).then_some(waiting + bytes);
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        self.waiting_bytes.fetch_update(set, get, add).is_ok() && self.jobs.send(job).is_ok()
    }
}

/// What `job` counts against the limit.
fn weight(job: &RecompressionJob) -> u64 {
    job.body.len().clamp(MIN_JOB_BYTES, MAX_TEXT_BYTES as u64)
}

fn run(waiting: &Receiver<RecompressionJob>, waiting_bytes: &AtomicU64) {
    while let Ok(job) = waiting.recv() {
        waiting_bytes.fetch_sub(weight(&job), Ordering::Relaxed);
        let is_of_use = job.results.strong_count() > 0 && job.body.is_shared();
        if !is_of_use {
            continue; // the proxy has ended, or the response was purged or replaced
        }
        let began = Instant::now();
        let small = catch_unwind(AssertUnwindSafe(|| compress(&job)));
        if small.is_err() {
            tracing::error!(key = ?job.key, "the compression of a stored text panicked");
        }
        if let Some(results) = job.results.upgrade() {
            results.insert_recompressed(&job.key, &job.body, small.unwrap_or_default());
        }
        drop(job);
        thread::sleep(began.elapsed());
    }
}

/// The body of `job` under Brotli, if it saves enough.
fn compress(job: &RecompressionJob) -> Option<Body> {
    let mut decoder = Decoder::new(job.coding, MAX_TEXT_BYTES);
    let mut text = Vec::new();
    for piece in job.body.chunks() {
        text.extend(decoder.write(piece).ok()?);
    }
    text.extend(decoder.finish().ok()?);
    let small = encode_smallest(&text);
    let most = job.served_len - job.served_len / MIN_SAVED_PART;
    (small.len() as u64 <= most).then(|| Body::copy_of(&small))
}
