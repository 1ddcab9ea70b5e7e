//! One error type for each consequence: the session lost, or a command refused.

use std::fmt;
use std::time::Duration;

use spdy_frame::error::{FrameError, InflateError};
use spdy_frame::status::GoAwayStatus;
use spdy_frame::stream_id::StreamId;

use crate::limit::Limit;

/// The kind of flood for which a session ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Flood {
    /// Frames that carry nothing.
    EmptyFrames,
    /// SETTINGS frames.
    Settings,
    /// PING frames faster than their echoes could be written.
    PingEchoes,
    /// PING frames.
    PingFrames,
    /// Streams refused because a limit was reached.
    RefusedStreams,
    /// Streams that were reset before their response was complete.
    AbortedStreams,
    /// Frames for unknown streams.
    StrayFrames,
    /// Header blocks that were malformed or too large.
    RefusedBlocks,
    /// Bytes that header blocks were inflated to.
    InflatedBytes,
    /// Frames that made us queue RST_STREAM while nothing could be written.
    ControlQueue,
}

impl Flood {
    /// The limit of this flood.
    #[must_use]
    pub const fn limit(self) -> Limit {
        match self {
            Self::EmptyFrames => Limit::EmptyFrames,
            Self::Settings => Limit::SettingsFrames,
            Self::PingEchoes => Limit::PingEchoes,
            Self::PingFrames => Limit::PingFrames,
            Self::RefusedStreams => Limit::RefusedStreams,
            Self::AbortedStreams => Limit::AbortedStreams,
            Self::StrayFrames => Limit::StrayFrames,
            Self::RefusedBlocks => Limit::RefusedBlocks,
            Self::InflatedBytes => Limit::InflatedBytes,
            Self::ControlQueue => Limit::ControlQueue,
        }
    }
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyFrames => "empty frames",
            Self::Settings => "SETTINGS frames",
            Self::PingEchoes => "PING echoes queued",
            Self::PingFrames => "PING frames",
            Self::RefusedStreams => "refused streams",
            Self::AbortedStreams => "streams reset before their response",
            Self::StrayFrames => "frames for unknown streams",
            Self::RefusedBlocks => "refused header blocks",
            Self::InflatedBytes => "bytes of inflated header blocks",
            Self::ControlQueue => "RST_STREAM frames queued",
        })
    }
}

/// Why a session ended with an error.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes that cannot be decoded as a frame.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// A header block that did not inflate: the compression context is lost.
    #[error("{0}")]
    Inflate(#[from] InflateError),
    /// The transport ended without GOAWAY, or before the streams did: only FIN ends a body.
    #[error("connection ended with {open_streams} open streams")]
    Truncated {
        /// Streams that were open.
        open_streams: usize,
    },
    /// SYN_STREAM with an ID that only we may open.
    #[error("SYN_STREAM has ID {found}, expected an ID of the peer's parity")]
    Parity {
        /// The ID of the frame.
        found: StreamId,
    },
    /// SYN_STREAM with an id at or below one that was already used.
    #[error("SYN_STREAM has ID {found}, expected more than {last}")]
    Order {
        /// The ID of the frame.
        found: StreamId,
        /// The highest id before it.
        last: StreamId,
    },
    /// More DATA than the session window allowed.
    #[error("DATA exceeds the session window of {window} bytes")]
    SessionWindow {
        /// The size of the session's receive window.
        window: u32,
    },
    /// A WINDOW_UPDATE that raises the session window above 2^31 - 1, or has a delta of 0.
    #[error(
        "WINDOW_UPDATE adds {delta} to a session window of {window}, expected at least 1 and a sum of at most 2147483647"
    )]
    SessionGrant {
        /// The received delta.
        delta: u32,
        /// The window before the update.
        window: i64,
    },
    /// SETTINGS with an INITIAL_WINDOW_SIZE above 2^31 - 1.
    #[error("INITIAL_WINDOW_SIZE is {found}, limit 2147483647")]
    InitialWindow {
        /// The value of the frame.
        found: u32,
    },
    /// A flood limit was exceeded.
    #[error("more than {limit} {flood}")]
    Flood {
        /// The kind of flood.
        flood: Flood,
        /// The limit.
        limit: u64,
    },
    /// A frame was not completed in time.
    #[error("a frame was incomplete for {waited:?}")]
    FrameTimeout {
        /// How long the session waited.
        waited: Duration,
    },
    /// More RST_STREAM frames than the limit were queued for too long, so reading had stopped.
    #[error("more than {limit} RST_STREAM frames queued for {waited:?}")]
    ControlQueueTimeout {
        /// The number of queued frames up to which we read.
        limit: usize,
        /// How long they were queued.
        waited: Duration,
    },
    /// Output was queued, and none of it could be sent in time.
    #[error("queued DATA could not be sent for {waited:?}")]
    WriteTimeout {
        /// How long the output waited.
        waited: Duration,
    },
    /// No input after a keepalive PING.
    #[error("nothing received for {waited:?} after PING")]
    KeepaliveTimeout {
        /// How long the session waited.
        waited: Duration,
    },
    /// Nothing was sent or received for too long.
    #[error("nothing sent or received for {waited:?}")]
    SilenceTimeout {
        /// How long the session waited.
        waited: Duration,
    },
    /// Streams were still open at the end of `drain_timeout`.
    #[error("{open_streams} streams still open {waited:?} after shutdown")]
    DrainTimeout {
        /// Streams that were open.
        open_streams: usize,
        /// The time allowed for draining.
        waited: Duration,
    },
    /// The owner called `abort`.
    #[error("session aborted locally")]
    Aborted,
}

impl SessionError {
    /// The status of our GOAWAY for it.
    ///
    /// Flow control errors are PROTOCOL_ERROR too: SPDY/3.1 §2.6.8 requires a code, but §2.6.6 defines no number for it
    /// (choice, as spdylay, Netty and mod_spdy).
    #[must_use]
    pub fn status(&self) -> GoAwayStatus {
        match self {
            Self::Aborted => GoAwayStatus::INTERNAL_ERROR,
            Self::Truncated { .. } | Self::DrainTimeout { .. } => GoAwayStatus::OK,
            _ => GoAwayStatus::PROTOCOL_ERROR,
        }
    }

    /// The limit that the peer exceeded, if the session ended for one: the name for a log.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        match self {
            Self::Frame(error) => Limit::of_frame(error),
            Self::Inflate(error) => Limit::of_inflate(error),
            Self::SessionWindow { .. } => Some(Limit::SessionWindow),
            Self::Flood { flood, .. } => Some(flood.limit()),
            Self::FrameTimeout { .. } => Some(Limit::FrameTimeout),
            Self::WriteTimeout { .. } => Some(Limit::WriteTimeout),
            Self::ControlQueueTimeout { .. } => Some(Limit::ControlQueueTimeout),
            Self::KeepaliveTimeout { .. } => Some(Limit::KeepaliveTimeout),
            Self::SilenceTimeout { .. } => Some(Limit::SilenceTimeout),
            Self::DrainTimeout { .. } => Some(Limit::DrainTimeout),
            Self::Truncated { .. }
            | Self::Parity { .. }
            | Self::Order { .. }
            | Self::SessionGrant { .. }
            | Self::InitialWindow { .. }
            | Self::Aborted => None,
        }
    }
}

/// Why a stream could not be opened now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The peer's limit of open streams is reached: wait for [`Event::CanOpen`](crate::event::Event::CanOpen).
    #[error("{limit} streams are open, which is the peer's limit")]
    Full {
        /// The peer's MAX_CONCURRENT_STREAMS, or what we assume.
        limit: u32,
    },
    /// A GOAWAY was sent or received, the session closed, or ids ran out: use another session.
    #[error("the session accepts no new streams")]
    Closing,
    /// A push must belong to a stream of the client that we still answer (SPDY/3.1 §3.3.1).
    #[error("cannot push for stream {parent}: it is not open")]
    ParentGone {
        /// The associated stream.
        parent: StreamId,
    },
}
