//! Counts the header bytes of a connection on the wire.

use std::sync::atomic::{AtomicU64, Ordering};

use spdy_session::observe::Direction;

/// Header bytes on the wire, from the client's view.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeaderBytes {
    /// Of requests.
    pub sent: u64,
    /// Of responses.
    pub received: u64,
}

/// The counters of one connection.
#[derive(Debug, Default)]
pub struct HeaderByteCounters {
    sent: AtomicU64,
    received: AtomicU64,
}

impl HeaderByteCounters {
    /// Counts `bytes` of a header block in `direction`.
    pub fn add(&self, direction: Direction, bytes: usize) {
        let counter = match direction {
            Direction::Sent => &self.sent,
            Direction::Received => &self.received,
        };
        counter.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The bytes so far.
    pub fn read(&self) -> HeaderBytes {
        HeaderBytes {
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
        }
    }
}
