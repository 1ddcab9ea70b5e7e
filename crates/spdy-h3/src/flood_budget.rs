//! Flood limits of an HTTP/3 client, per ten seconds, like those of `spdy-session`: frames and streams that cost more than they
//! carry.
//!
//! ```text
//!   frames and chunks that carry nothing     1,000 in 10 s          one more ends the connection, as abuse
//!   aborted streams                            100 in 10 s, and over half of those that were opened
//! ```

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};

use crate::code::Code;
use crate::fault::Fault;

/// Length of the period for which events are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Limit of frames that carry nothing in a window: empty frames, frames of unknown types, and all frames except SETTINGS on the
/// control stream. Each stream of an unknown type counts as one.
const MAX_EMPTY_FRAMES: u32 = 1000;
/// Limit of QPACK instructions in a window, and how many more each opened stream allows: a request may insert each of its fields.
const MAX_QPACK_INSTRUCTIONS: u32 = 1000;
const QPACK_INSTRUCTIONS_PER_STREAM: u32 = 64;
/// Limit of streams in a window that were cancelled, or that we had to reset, before their responses were complete (rapid reset,
/// CVE-2023-44487; made you reset, CVE-2025-8671).
const MAX_ABORTED_STREAMS: u32 = 100;

/// The counts of one client. Clones share them.
#[derive(Clone)]
pub(crate) struct FloodBudget {
    spent: Arc<Mutex<FloodCounts>>,
    runtime: SharedRuntime,
    hits: LimitHits,
}

#[derive(Debug, Default)]
struct FloodCounts {
    since: Instant,
    empty: u32,
    opened: u32,
    aborted: u32,
    qpack: u32,
}

impl std::fmt::Debug for FloodBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spent.fmt(f)
    }
}

impl FloodBudget {
    pub(crate) fn new(runtime: SharedRuntime, hits: LimitHits) -> Self {
        Self {
            spent: Arc::default(),
            runtime,
            hits,
        }
    }

    /// The counts of the current window.
    fn lock(&self) -> MutexGuard<'_, FloodCounts> {
        let now = self.runtime.now();
        let mut spent = self.spent.lock();
        if now - spent.since >= WINDOW {
            *spent = FloodCounts {
                since: now,
                ..FloodCounts::default()
            };
        }
        spent
    }

    /// Counts a frame or chunk that carries nothing.
    pub(crate) fn empty_frame(&self) -> Result<(), Fault> {
        let mut spent = self.lock();
        spent.empty += 1;
        match spent.empty > MAX_EMPTY_FRAMES {
            true => {
                self.hits.count(ConnectionLimit::FloodEmptyFrames);
                Err(flood(MAX_EMPTY_FRAMES, "empty frames"))
            }
            false => Ok(()),
        }
    }

    /// Counts instructions of the peer's QPACK encoder and decoder.
    pub(crate) fn qpack_instructions(&self, count: u32) -> Result<(), Fault> {
        let mut spent = self.lock();
        spent.qpack = spent.qpack.saturating_add(count);
        let by_streams = spent.opened.saturating_mul(QPACK_INSTRUCTIONS_PER_STREAM);
        let most = by_streams.saturating_add(MAX_QPACK_INSTRUCTIONS);
        match spent.qpack > most {
            true => {
                self.hits.count(ConnectionLimit::FloodEmptyFrames);
                Err(flood(most, "QPACK instructions"))
            }
            false => Ok(()),
        }
    }

    /// Counts an opened stream.
    pub(crate) fn opened_stream(&self) {
        self.lock().opened += 1;
    }

    /// Counts an aborted stream.
    pub(crate) fn aborted_stream(&self) -> Result<(), Fault> {
        let mut spent = self.lock();
        spent.aborted += 1;
        match spent.aborted > MAX_ABORTED_STREAMS && spent.aborted > spent.opened / 2 {
            true => {
                self.hits.count(ConnectionLimit::FloodAbortedStreams);
                Err(flood(
                    MAX_ABORTED_STREAMS,
                    "streams reset before their response",
                ))
            }
            false => Ok(()),
        }
    }
}

fn flood(limit: u32, what: &str) -> Fault {
    let reason = format!("more than {limit} {what} in {WINDOW:?}");
    Fault::Connection(Code::EXCESSIVE_LOAD, reason)
}
