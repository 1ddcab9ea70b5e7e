//! Every limit that a peer can run into, by name, and how often it did.
//!
//! ```text
//! config::Config                  Limit              Stats::limits
//! control_payload_bytes: 128 KiB  ControlPayload ..  control_payload_bytes 3
//! ```
//!
//! A limit has the name of the configuration field that sets it, in logs and in metrics alike, so that
//! a reader knows which value to check. One is counted when it changed what the session did: refused a
//! stream, reset it, stopped reading, or ended. Below a limit nothing is counted, and nothing is paid.

use std::fmt;

use spdy_frame::error::{BlockError, FrameError, InflateError};

/// Declares the limits once: variant, name, and what is written of it.
macro_rules! limits {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// A limit of [`Config`](crate::config::Config), or of what it holds.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Limit {
            $($(#[$doc])+ $variant,)+
        }

        impl Limit {
            /// All of them, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The field's name, with what it belongs to in front where that alone says too little.
            /// Names stay as they are: dashboards are made of them.
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
    // what a peer may have at once
    /// Streams of the peer that are open at once; one more is refused.
    ConcurrentStreams = "max_concurrent_streams",
    /// DATA past a stream's window, `initial_window_bytes`; the stream is reset.
    StreamWindow = "initial_window_bytes",
    /// DATA past the session's window; the session ends.
    SessionWindow = "session_window_bytes",
    /// Streams that have ended while their owner still works on them; the next stream is refused.
    EndedStreamsInWork = "ended_streams_in_work",
    /// Streams that are not taken yet; as many as may be open at once. The next is refused.
    UntakenStreams = "untaken_streams",
    /// DATA of one stream that is discarded; no more of it is wanted.
    DiscardedBytes = "discarded_bytes",
    /// Events that the owner has not polled; reading stops.
    EventQueue = "event_queue",
    /// RST_STREAM frames that wait to be written; reading stops, and at twice as many the session ends.
    ControlQueue = "control_queue_frames",
    /// PING echoes that wait to be written; the session ends.
    PingEchoes = "ping_echoes",
    /// Pushes that wait to be claimed; one more is refused. Enforced by the owner.
    UnclaimedPushes = "unclaimed_pushes",
    /// Bytes of DATA of all of them; the push is cancelled. Enforced by the owner.
    UnclaimedBytes = "unclaimed_push_bytes",

    // how large a thing may be
    /// Payload of a control frame; the session ends.
    ControlPayload = "control_payload_bytes",
    /// Entries of a SETTINGS frame; the rest are not looked at.
    SettingsEntries = "settings_entries",
    /// Plain bytes of a header block; the stream is lost.
    BlockPlainBytes = "block_plain_bytes",
    /// Plain bytes that a header block is inflated to, stored or not; the session ends.
    BlockInflatedBytes = "block_inflated_bytes",
    /// Pairs and further components in a header block; the stream is lost.
    BlockPairs = "block_pairs",
    /// Bytes of a header name; the stream is lost.
    BlockNameBytes = "block_name_bytes",
    /// Bytes of a header value; the stream is lost.
    BlockValueBytes = "block_value_bytes",
    /// HEADERS frames on one stream; it is reset.
    HeadersPerStream = "headers_per_stream",
    /// Plain bytes of all header blocks on one stream; it is reset.
    HeaderBytesPerStream = "header_bytes_per_stream",

    // how often a thing may come, in `FloodLimits::window`; the session ends
    /// Frames that carry nothing.
    EmptyFrames = "flood_empty_frames",
    /// SETTINGS frames.
    SettingsFrames = "flood_settings_frames",
    /// PING frames that are not the answer to ours.
    PingFrames = "flood_ping_frames",
    /// Streams refused for want of room.
    RefusedStreams = "flood_refused_streams",
    /// Streams reset before they were answered.
    AbortedStreams = "flood_aborted_streams",
    /// Frames for streams that are not there.
    StrayFrames = "flood_stray_frames",
    /// Header blocks that were malformed or over a limit.
    RefusedBlocks = "flood_refused_blocks",
    /// Bytes that header blocks were inflated to.
    InflatedBytes = "flood_inflated_bytes",

    // how long a thing may take
    /// An unfinished control frame; the session ends.
    FrameTimeout = "frame_timeout",
    /// DATA that waits while none of it can leave; the session ends.
    WriteTimeout = "write_timeout",
    /// `write_timeout` on a stream whose own window stays closed; the stream is reset.
    StreamWriteTimeout = "stream_write_timeout",
    /// A stream that is discarded and does not end; it is reset.
    DiscardTimeout = "discard_timeout",
    /// A push that no request claims; it is cancelled. Enforced by the owner.
    UnclaimedTimeout = "unclaimed_push_timeout",
    /// A session without open streams; it ends in order.
    IdleTimeout = "idle_timeout",
    /// A session on which nothing crosses either way, streams or none; it ends.
    SilenceTimeout = "silence_timeout",
    /// Silence after a PING; the session ends.
    KeepaliveTimeout = "keepalive_timeout",
    /// Streams that go on after `shutdown`; the session ends without them.
    DrainTimeout = "drain_timeout",
    /// Reading that has stopped for the queue of RST_STREAM; the session ends.
    ControlQueueTimeout = "control_queue_timeout",
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Limit {
    /// A time that was over, not a number that was passed: peers that vanish meet it every day.
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

    /// The limit that a frame was over, if that is what was wrong with it.
    #[must_use]
    pub fn of_frame(error: &FrameError) -> Option<Self> {
        matches!(error, FrameError::TooLarge { .. }).then_some(Self::ControlPayload)
    }

    /// The limit that a header block was over while it was inflated, if that is what was wrong with it.
    #[must_use]
    pub fn of_inflate(error: &InflateError) -> Option<Self> {
        matches!(error, InflateError::TooLong { .. }).then_some(Self::BlockInflatedBytes)
    }

    /// The limit that a header block was over, if that is what was wrong with it.
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

/// How often each limit was met: by one session, or by many taken together.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Hits([u32; Limit::ALL.len()]);

impl Hits {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; Limit::ALL.len()])
    }

    /// How often `limit` was met, up to 2^32 - 1.
    #[must_use]
    pub const fn of(&self, limit: Limit) -> u32 {
        self.0[limit as usize]
    }

    /// `limit` was met once more.
    pub fn count(&mut self, limit: Limit) {
        let hits = &mut self.0[limit as usize];
        *hits = hits.saturating_add(1);
    }

    /// Adds what another session met.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine = mine.saturating_add(theirs);
        }
    }

    /// The limits that were met, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u32)> + '_ {
        let all = Limit::ALL.iter().zip(self.0);
        all.filter(|(_, hits)| *hits > 0)
            .map(|(limit, hits)| (*limit, hits))
    }

    /// No limit was met.
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

/// `flood_empty_frames 1, max_concurrent_streams 12`: those that were met; `none` if none was.
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
