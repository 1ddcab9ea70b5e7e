//! The unclaimed pushes of a session: their limits, counters and order. `client/unclaimed_pushes.rs` decides which request claims
//! one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::stream_id::StreamId;

/// Limits of unclaimed pushes; for [`Builder::claim_pushes`](crate::client::Builder::claim_pushes).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PushLimits {
    /// Pushes that are unclaimed, or whose DATA is incomplete (announced by SETTINGS_MAX_CONCURRENT_STREAMS); one more is refused.
    /// Default 100.
    pub streams: u32,
    /// Bytes of DATA of all unclaimed pushes; the push that exceeds it is cancelled. Default 4 MiB. At most half of the session's
    /// window is used.
    pub bytes: usize,
    /// Receive window of one unclaimed push, at least 65,536 bytes, which is the default (SPDY/3 and later).
    pub window_bytes: u32,
    /// A push that is not claimed for this long is cancelled. Default 60 s: a page soon requests what it needs. (Chromium waited
    /// 300 s.)
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

/// Counts of the pushes of a session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PushStats {
    /// Accepted, to be claimed.
    pub accepted: u64,
    /// Claimed by a request.
    pub claimed: u64,
    /// Refused at once: another origin, already requested, already pushed, or over the limit.
    pub refused: u64,
    /// Cancelled: not claimed in time, or too many bytes.
    pub cancelled: u64,
}

/// Information about a pushed response, in its extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct PushInfo {
    /// The stream of the push.
    pub id: StreamId,
    /// The stream of the associated request.
    pub associated_to: StreamId,
}

/// The unclaimed pushes.
#[derive(Debug)]
pub(crate) struct UnclaimedPushes {
    pub(crate) limits: PushLimits,
    /// Keys of their entries, by URL.
    pub(crate) by_url: BTreeMap<String, usize>,
    /// The keys in order of arrival, with the time at which each expires.
    pub(crate) order: VecDeque<(Instant, usize)>,
    /// Bytes of DATA of all of them.
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

    /// True if the push of the entry `key` is unclaimed.
    pub(crate) fn holds(&self, key: usize) -> bool {
        self.order.iter().any(|(_, waiting)| *waiting == key)
    }
}
