//! Every limit that a peer can reach, by name, and how often it was reached.
//!
//! ```text
//! config::Config                  Limit              Stats::limits
//! control_payload_bytes: 128 KiB  ControlPayload ..  control_payload_bytes 3
//! ```
//!
//! A limit has the name of the configuration field that sets it, in logs and in metrics, so that a reader knows which value to
//! check. A limit is counted when it changed the behaviour of the session: a stream was refused or reset, reading stopped, or the
//! session ended. Below a limit there is no count and no cost.

use std::fmt;

use spdy_frame::error::{BlockError, FrameError, InflateError};

/// Declares each limit once: variant, name, and documentation.
macro_rules! limits {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// A limit of [`Config`](crate::config::Config), or of a struct in it.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Limit {
            $($(#[$doc])+ $variant,)+
        }

        impl Limit {
            /// All of them, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The field's name, with a prefix if the field alone is ambiguous. Names are stable, because dashboards use them.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

limits! {
    // concurrent resources of a peer
    /// Streams of the peer that are open at once; one more is refused.
    ConcurrentStreams = "max_concurrent_streams",
    /// DATA past a stream's window, `initial_window_bytes`; the stream is reset.
    StreamWindow = "initial_window_bytes",
    /// DATA past the session's window; the session ends.
    SessionWindow = "session_window_bytes",
    /// Ended streams that their owner still works on; new streams are refused.
    EndedStreamsInWork = "ended_streams_in_work",
    /// Streams that the owner has not accepted yet, up to the limit of concurrent streams; one more is refused.
    UntakenStreams = "untaken_streams",
    /// Discarded DATA of one stream; above it the stream gets no credit.
    DiscardedBytes = "discarded_bytes",
    /// Events that the owner has not polled; reading stops.
    EventQueue = "event_queue",
    /// Queued RST_STREAM frames; reading stops, and at twice as many the session ends.
    ControlQueue = "control_queue_frames",
    /// Queued PING echoes; the session ends.
    PingEchoes = "ping_echoes",
    /// Pushes that no request has claimed yet; one more is refused. Enforced by the owner.
    UnclaimedPushes = "unclaimed_pushes",
    /// Bytes of DATA of all unclaimed pushes; the push is cancelled. Enforced by the owner.
    UnclaimedBytes = "unclaimed_push_bytes",

    // maximum sizes
    /// Payload of a control frame; the session ends.
    ControlPayload = "control_payload_bytes",
    /// Entries of a SETTINGS frame; the rest is ignored.
    SettingsEntries = "settings_entries",
    /// Inflated bytes of a header block; the stream is lost.
    BlockPlainBytes = "block_plain_bytes",
    /// Inflated bytes of a header block, stored or not; the session ends.
    BlockInflatedBytes = "block_inflated_bytes",
    /// Pairs and additional values in a header block; the stream is lost.
    BlockPairs = "block_pairs",
    /// Bytes of a header name; the stream is lost.
    BlockNameBytes = "block_name_bytes",
    /// Bytes of a header value; the stream is lost.
    BlockValueBytes = "block_value_bytes",
    /// HEADERS frames on one stream; it is reset.
    HeadersPerStream = "headers_per_stream",
    /// Inflated bytes of all header blocks on one stream; it is reset.
    HeaderBytesPerStream = "header_bytes_per_stream",

    // maximum rates, in `FloodLimits::window`; the session ends
    /// Frames that carry nothing.
    EmptyFrames = "flood_empty_frames",
    /// SETTINGS frames.
    SettingsFrames = "flood_settings_frames",
    /// PING frames that are not the answer to ours.
    PingFrames = "flood_ping_frames",
    /// Streams refused because a limit was reached.
    RefusedStreams = "flood_refused_streams",
    /// Streams reset before they were answered.
    AbortedStreams = "flood_aborted_streams",
    /// Frames for unknown streams.
    StrayFrames = "flood_stray_frames",
    /// Header blocks that were malformed or over a limit.
    RefusedBlocks = "flood_refused_blocks",
    /// Bytes that header blocks were inflated to.
    InflatedBytes = "flood_inflated_bytes",

    // timeouts
    /// An unfinished control frame; the session ends.
    FrameTimeout = "frame_timeout",
    /// Queued DATA of which nothing can be sent; the session ends.
    WriteTimeout = "write_timeout",
    /// `write_timeout` on a stream that has no credit of its own; the stream is reset.
    StreamWriteTimeout = "stream_write_timeout",
    /// A discarded stream that does not end; it is reset.
    DiscardTimeout = "discard_timeout",
    /// A push that no request claims; it is cancelled. Enforced by the owner.
    UnclaimedTimeout = "unclaimed_push_timeout",
    /// A session without open streams; it ends in order.
    IdleTimeout = "idle_timeout",
    /// A session that sends and receives nothing, with or without streams; it ends.
    SilenceTimeout = "silence_timeout",
    /// Silence after a PING; the session ends.
    KeepaliveTimeout = "keepalive_timeout",
    /// Streams still open after `shutdown`; the session ends without them.
    DrainTimeout = "drain_timeout",
    /// Reading stopped because of queued RST_STREAM frames; the session ends.
    ControlQueueTimeout = "control_queue_timeout",
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Limit {
    /// True for timeouts, false for numbers and rates. Timeouts are common: peers that vanish cause them every day.
    #[must_use]
    pub const fn is_deadline(self) -> bool {
        matches!(
            self,
            Self::FrameTimeout
                | Self::WriteTimeout
                | Self::StreamWriteTimeout
                | Self::DiscardTimeout
                | Self::UnclaimedTimeout
                | Self::IdleTimeout
                | Self::SilenceTimeout
                | Self::KeepaliveTimeout
                | Self::DrainTimeout
                | Self::ControlQueueTimeout
        )
    }

    /// The limit that a frame exceeded, if that is the error.
    #[must_use]
    pub fn of_frame(error: &FrameError) -> Option<Self> {
        matches!(error, FrameError::TooLarge { .. }).then_some(Self::ControlPayload)
    }

    /// The limit that a header block exceeded during inflation, if that is the error.
    #[must_use]
    pub fn of_inflate(error: &InflateError) -> Option<Self> {
        matches!(error, InflateError::TooLong { .. }).then_some(Self::BlockInflatedBytes)
    }

    /// The limit that a header block exceeded, if that is the error.
    #[must_use]
    pub fn of_block(error: &BlockError) -> Option<Self> {
        match error {
            BlockError::TooLong { .. } => Some(Self::BlockPlainBytes),
            BlockError::TooManyPairs { .. } => Some(Self::BlockPairs),
            BlockError::NameTooLong { .. } => Some(Self::BlockNameBytes),
            BlockError::ValueTooLong { .. } => Some(Self::BlockValueBytes),
            _ => None,
        }
    }
}

/// How often each limit was reached, by one session or by many together.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Hits([u32; Limit::ALL.len()]);

impl Hits {
    /// All counts are 0.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; Limit::ALL.len()])
    }

    /// How often `limit` was reached, up to 2^32 - 1.
    #[must_use]
    pub const fn of(&self, limit: Limit) -> u32 {
        self.0[limit as usize]
    }

    /// Counts one more hit of `limit`.
    pub fn count(&mut self, limit: Limit) {
        let hits = &mut self.0[limit as usize];
        *hits = hits.saturating_add(1);
    }

    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// The limits that were reached, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u32)> + '_ {
        let all = Limit::ALL.iter().zip(self.0);
        all.filter(|(_, hits)| *hits > 0)
            .map(|(limit, hits)| (*limit, hits))
    }

    /// True if no limit was reached.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl Default for Hits {
    fn default() -> Self {
        Self::new()
    }
}

/// `flood_empty_frames 1, max_concurrent_streams 12`: the limits that were reached, or `none`.
impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (nth, (limit, hits)) in self.iter().enumerate() {
            let comma = if nth > 0 { ", " } else { "" };
            write!(f, "{comma}{limit} {hits}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snake_case_and_unique() {
        let mut names: Vec<_> = Limit::ALL.iter().map(|limit| limit.name()).collect();
        for name in &names {
            let is_snake_case = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
            assert!(name.bytes().all(is_snake_case), "{name}");
        }
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn deadlines_are_the_limits_that_are_named_timeout() {
        for limit in Limit::ALL {
            assert_eq!(limit.is_deadline(), limit.name().ends_with("_timeout"));
        }
    }

    #[test]
    fn limit_hits_are_printed_by_name_and_summed() {
        let mut hits = Hits::new();
        assert_eq!((hits.is_empty(), hits.to_string()), (true, "none".into()));
        hits.count(Limit::PingEchoes);
        let mut sum = hits;
        sum.count(Limit::ControlPayload);
        sum.add(&hits);
        assert_eq!(sum.to_string(), "ping_echoes 2, control_payload_bytes 1");
        assert_eq!(sum.of(Limit::PingEchoes), 2);
        hits.0[Limit::PingEchoes as usize] = u32::MAX;
        sum.add(&hits);
        assert_eq!(sum.of(Limit::PingEchoes), u32::MAX);
    }
}
