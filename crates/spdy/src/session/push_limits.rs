//! The pushes that wait for a request to claim them: their limits, counters and order. `client/unclaimed_pushes.rs` decides which request claims one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::stream_id::StreamId;

/// How much may wait to be claimed; for [`Builder::claim_pushes`](crate::client::Builder::claim_pushes).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PushLimits {
    /// Pushes that wait, or whose DATA still comes (announced by SETTINGS_MAX_CONCURRENT_STREAMS); one more is refused. Default 100.
    pub streams: u32,
    /// Bytes of DATA of all that wait; the push that brings one more is cancelled. Default 4 MiB. More than
    /// half of the session's window is never used.
    pub bytes: usize,
    /// Receive window of one push while it waits, 65,536 bytes at least, which is the default (SPDY/3 and
    /// later).
    pub window_bytes: u32,
    /// A push that is not claimed for so long is cancelled. Default 60 s: a page requests what it needs soon. (Chromium waited 300 s.)
    pub claim_timeout: Duration,
}

impl Default for PushLimits {
    fn default() -> Self {
        Self {
            streams: 100,
            bytes: 4 * 1024 * 1024,
            window_bytes: 65_536,
            claim_timeout: Duration::from_secs(60),
        }
    }
}

/// What became of the pushes of a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PushStats {
    /// Taken in, to wait.
    pub accepted: u64,
    /// Claimed by a request.
    pub claimed: u64,
    /// Refused at once: another origin, requested already, pushed already, or one too many.
    pub refused: u64,
    /// Cancelled: not claimed in time, or too many bytes.
    pub cancelled: u64,
}

/// A response that was pushed: in its extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PushInfo {
    /// The stream of the push.
    pub id: StreamId,
    /// The stream of the request that it came beside.
    pub associated_to: StreamId,
}

/// The pushes that wait.
#[derive(Debug)]
pub(crate) struct UnclaimedPushes {
    pub(crate) limits: PushLimits,
    /// Keys of their entries.
    pub(crate) by_url: BTreeMap<String, usize>,
    /// The same in the order in which they came, with when each is too old.
    pub(crate) order: VecDeque<(Instant, usize)>,
    /// DATA of all of them, bytes.
    pub(crate) bytes: usize,
    pub(crate) stats: PushStats,
}

impl UnclaimedPushes {
    pub(crate) fn new(limits: PushLimits) -> Self {
        Self {
            limits,
            by_url: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            stats: PushStats::default(),
        }
    }

    /// True if the push of the entry `key` waits.
    pub(crate) fn holds(&self, key: usize) -> bool {
        self.order.iter().any(|(_, waiting)| *waiting == key)
    }
}
