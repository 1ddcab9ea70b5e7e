//! Compresses stored texts again, as small as Brotli can. That takes seconds for a large script, so a thread of its own does it, one body
//! after the other, for bodies that were requested again after they were stored.

use std::sync::Weak;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::{io, thread};

use spdy_cache::body::Body;
use spdy_cache::key::Key;

use crate::body::content_coding::Coding;
use crate::body::decoder::Decoder;
use crate::body::encoder::encode_smallest;
use crate::cache::encoded_bodies::EncodedBodies;

/// The most bodies that wait. Another is dropped, and compressed when it is requested again.
const MAX_WAITING: usize = 64;
/// The longest text that is compressed again, bytes. It takes about 16 s.
pub(super) const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// A result is kept if it saves this part of the bytes: one in 32.
const MIN_SAVED_PART: u64 = 32;

/// A body to compress.
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

/// The entrance of the thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Recompressor(SyncSender<RecompressionJob>);

impl Recompressor {
    /// Starts the thread.
    pub(super) fn start() -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(MAX_WAITING);
        let run = move || run(&waiting);
        thread::Builder::new()
            .name("recompress".into())
            .spawn(run)?;
        Ok(Self(jobs))
    }

    /// Whether the body will be compressed.
    pub(super) fn add(&self, job: RecompressionJob) -> bool {
        match self.0.try_send(job) {
            Ok(()) => true,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
        }
    }
}

fn run(waiting: &Receiver<RecompressionJob>) {
    while let Ok(job) = waiting.recv() {
        let small = compress(&job);
        if let Some(results) = job.results.upgrade() {
            results.insert_recompressed(&job.key, &job.body, small);
        }
    }
}

/// The body of `job` under Brotli, if that is worth it.
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
