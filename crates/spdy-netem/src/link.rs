//! One pipe: queue, then rate. What every packet through a bottleneck meets first.
//!
//! ```text
//! offer -> | room in the queue? | -> | serialiser | -> departure
//!             no: dropped
//! ```
//!
//! Loss, delay and jitter come after it and belong to a direction, not to a pipe: a shared pipe
//! serves two directions. The path puts them together.

use spdy_clock::Instant;

use crate::queue::{DropTail, QueueLimit};
use crate::rate::{Bitrate, Serialiser};

/// A queue and a serialiser behind it.
#[derive(Clone, Debug)]
pub struct Pipe {
    queue: DropTail,
    wire: Serialiser,
}

impl Pipe {
    /// An idle pipe.
    #[must_use]
    pub const fn new(rate: Bitrate, queue: QueueLimit) -> Self {
        Self {
            queue: DropTail::new(queue),
            wire: Serialiser::new(rate),
        }
    }

    /// When a packet of `len_bytes` offered at `now` has left; `None` if the queue was full.
    /// Calls come in order of `now`.
    pub fn offer(&mut self, now: Instant, len_bytes: usize) -> Option<Instant> {
        if !self.queue.has_room(now, len_bytes) {
            return None;
        }
        let leaves = self.wire.depart(now, len_bytes);
        self.queue.push(leaves, len_bytes);
        Some(leaves)
    }

    /// Whether a packet offered at `now` would stand behind another.
    #[must_use]
    pub const fn is_busy(&self, now: Instant) -> bool {
        self.wire.is_busy(now)
    }
}
