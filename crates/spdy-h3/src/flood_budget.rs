//! What a client of HTTP/3 does that costs more than it brings, by the ten seconds: as `spdy-session`'s budgets.
//!
//! ```text
//!   frames and chunks that carry nothing     1,000 in 10 s          one more ends the connection, as abuse
//!   streams that came to nothing               100 in 10 s, and over half of those that were opened
//! ```

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_net_core::limit::{ConnectionLimit, LimitHits};

use crate::code::Code;
use crate::fault::Fault;

/// Over how long is counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Frames that carry nothing in a window: empty or of unknown types, all but SETTINGS on the control stream; and as
/// much of QPACK's streams as comes at once, and streams of unknown types.
const MAX_EMPTY_FRAMES: u32 = 1000;
/// Streams in a window that were given up, or that we had to reset, before their answers were complete (rapid reset,
/// CVE-2023-44487; made you reset, CVE-2025-8671).
const MAX_ABORTED_STREAMS: u32 = 100;

/// What one client has spent. Clones count together.
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

    /// What is spent in the present window.
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

    /// Something came that carries nothing.
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

    /// A stream was opened.
    pub(crate) fn opened_stream(&self) {
        self.lock().opened += 1;
    }

    /// A stream came to nothing.
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
