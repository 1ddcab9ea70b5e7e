//! Compresses stored texts again, as small as Brotli can, and converts stored images to WebP. That takes seconds for a large body, so a
//! separate thread does it for one body at a time, and pauses as long as it has worked. It does so for bodies that were requested again
//! after they were stored.

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
use crate::cache::encoded_bodies::{EncodedBodies, Representation};
use crate::images::convert::{ImageConversion, ImageFormat, to_webp};
use crate::images::limits::MAX_IMAGE_BYTES;

/// The longest text that is compressed again, bytes. It takes about 16 s.
pub(super) const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// The longest body that is a job, bytes.
const MAX_BODY_BYTES: u64 = MAX_TEXT_BYTES as u64;
const _: () = assert!(MAX_IMAGE_BYTES == MAX_BODY_BYTES);
/// Maximum bytes of stored bodies that wait. They stay in memory until then. Above it, another body becomes a job when it is requested
/// again.
const MAX_WAITING_BYTES: u64 = 8 * 1024 * 1024;
/// Minimum weight of a waiting body, bytes.
const MIN_JOB_BYTES: u64 = 64 * 1024;
/// A text is kept if it saves this part of the bytes: one in 32.
const MIN_SAVED_PART_OF_TEXT: u64 = 32;
/// An image is kept if it saves this part of the bytes: one in 8. It takes memory beside the stored image, which other clients still need,
/// and images without loss that save less save little.
const MIN_SAVED_PART_OF_IMAGE: u64 = 8;

/// How a body is made smaller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Recompression {
    /// A text with this coding, by Brotli.
    Text(Coding),
    /// An image of this format, as WebP.
    Image(ImageFormat),
}

impl Recompression {
    /// The kind of the result.
    pub(crate) fn result(self) -> Representation {
        match self {
            Self::Text(_) => Representation::Coded(Coding::Brotli),
            Self::Image(_) => Representation::WebP,
        }
    }

    /// The part of the bytes that a result must save.
    fn min_saved_part(self) -> u64 {
        match self {
            Self::Text(_) => MIN_SAVED_PART_OF_TEXT,
            Self::Image(_) => MIN_SAVED_PART_OF_IMAGE,
        }
    }
}

/// Which bodies are made smaller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecompressedKinds {
    pub(crate) texts: bool,
    pub(crate) images: ImageConversion,
}

/// A body to make smaller.
#[derive(Debug)]
pub(super) struct RecompressionJob {
    pub(super) key: Key,
    pub(super) body: Body,
    pub(super) recompression: Recompression,
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

    /// Whether the body will be made smaller.
    pub(super) fn add(&self, job: RecompressionJob) -> bool {
        if job.body.len() > MAX_BODY_BYTES {
            return false;
        }
        let bytes = weight(&job);
        let room = MAX_WAITING_BYTES - bytes;
        let add = |waiting: u64| (waiting <= room).then_some(waiting + bytes);
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        self.waiting_bytes.fetch_update(set, get, add).is_ok() && self.jobs.send(job).is_ok()
    }
}

/// What `job` counts against the limit.
fn weight(job: &RecompressionJob) -> u64 {
    job.body.len().clamp(MIN_JOB_BYTES, MAX_BODY_BYTES)
}

fn run(waiting: &Receiver<RecompressionJob>, waiting_bytes: &AtomicU64) {
    while let Ok(job) = waiting.recv() {
        waiting_bytes.fetch_sub(weight(&job), Ordering::Relaxed);
        let is_needed = job.results.strong_count() > 0 && job.body.is_shared();
        if !is_needed {
            continue; // the proxy has ended, or the response was purged or replaced
        }
        let began = Instant::now();
        let small = catch_unwind(AssertUnwindSafe(|| recompress(&job)));
        if small.is_err() {
            tracing::error!(key = ?job.key, "the compression of a stored body panicked");
        }
        if let Some(results) = job.results.upgrade() {
            let representation = job.recompression.result();
            let small = small.unwrap_or_default();
            results.insert_recompressed(&job.key, &job.body, representation, small);
        }
        drop(job);
        thread::sleep(began.elapsed());
    }
}

/// The smaller body of `job`, if it saves enough.
fn recompress(job: &RecompressionJob) -> Option<Body> {
    let small = match job.recompression {
        Recompression::Text(coding) => encode_smallest(&decoded(&job.body, coding)?),
        Recompression::Image(format) => {
            let pieces = job.body.chunks().flatten();
            to_webp(&pieces.copied().collect::<Vec<u8>>(), format)?
        }
    };
    let most = job.served_len - job.served_len / job.recompression.min_saved_part();
    (small.len() as u64 <= most).then(|| Body::copy_of(&small))
}

/// The text of `body`, which has `coding`.
fn decoded(body: &Body, coding: Coding) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(coding, MAX_TEXT_BYTES);
    let mut text = Vec::new();
    for piece in body.chunks() {
        text.extend(decoder.write(piece).ok()?);
    }
    text.extend(decoder.finish().ok()?);
    Some(text)
}
