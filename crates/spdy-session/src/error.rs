//! One error type for each consequence: the session lost, or a command refused.

use std::fmt;
use std::time::Duration;

use spdy_frame::error::{FrameError, InflateError};
use spdy_frame::status::GoAwayStatus;
use spdy_frame::stream_id::StreamId;

use crate::limit::Limit;

/// What a peer did too often.
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
    /// Streams refused for want of room.
    RefusedStreams,
    /// Streams that were reset before their response was complete.
    AbortedStreams,
    /// Frames for streams that are not there.
    StrayFrames,
    /// Header blocks that were malformed or too large.
    RefusedBlocks,
    /// Bytes that header blocks were inflated to.
    InflatedBytes,
    /// Frames that made us queue RST_STREAM while nothing could be written.
    ControlQueue,
}

impl Flood {
    /// The limit on it.
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

/// Why a session ended out of order.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes that are no frame.
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
    /// More DATA than the session window let through.
    #[error("DATA exceeds the session window of {window} bytes")]
    SessionWindow {
        /// The size at which we hold the window open.
        window: u32,
    },
    /// A WINDOW_UPDATE that lifts the session window past 2^31 - 1, or by 0.
    #[error(
        "WINDOW_UPDATE adds {delta} to a session window of {window}, expected at least 1 and a sum of at most 2147483647"
    )]
    SessionGrant {
        /// The delta that came.
        delta: u32,
        /// The window before it.
        window: i64,
    },
    /// SETTINGS with an INITIAL_WINDOW_SIZE above 2^31 - 1.
    #[error("INITIAL_WINDOW_SIZE is {found}, limit 2147483647")]
    InitialWindow {
        /// The value of the frame.
        found: u32,
    },
    /// An abuse limit was passed.
    #[error("more than {limit} {flood}")]
    Flood {
        /// What there was too much of.
        flood: Flood,
        /// The limit.
        limit: u64,
    },
    /// A frame was begun and not finished in time.
    #[error("a frame was incomplete for {waited:?}")]
    FrameTimeout {
        /// How long it was waited for.
        waited: Duration,
    },
    /// RST_STREAM frames stood in the queue for too long, and with them the reading.
    #[error("more than {limit} RST_STREAM frames queued for {waited:?}")]
    ControlQueueTimeout {
        /// How many may wait while we read on.
        limit: usize,
        /// How long they waited.
        waited: Duration,
    },
    /// Output waited and none of it could leave.
    #[error("queued DATA could not be sent for {waited:?}")]
    WriteTimeout {
        /// How long it waited.
        waited: Duration,
    },
    /// No input after a keepalive PING.
    #[error("nothing received for {waited:?} after PING")]
    KeepaliveTimeout {
        /// How long it was waited for.
        waited: Duration,
    },
    /// Nothing came and nothing left, whatever was open.
    #[error("nothing sent or received for {waited:?}")]
    SilenceTimeout {
        /// How long it was waited for.
        waited: Duration,
    },
    /// Streams were still open when the time for draining was over.
    #[error("{open_streams} streams still open {waited:?} after shutdown")]
    DrainTimeout {
        /// Streams that were open.
        open_streams: usize,
        /// How long they were given.
        waited: Duration,
    },
    /// The owner called `abort`.
    #[error("session aborted locally")]
    Aborted,
}

impl SessionError {
    /// The status of our GOAWAY for it.
    ///
    /// Flow control errors are PROTOCOL_ERROR too: SPDY/3.1 §2.6.8 requires a code that §2.6.6 gives
    /// no number (choice, as spdylay, Netty and mod_spdy).
    #[must_use]
    pub fn status(&self) -> GoAwayStatus {
        match self {
            Self::Aborted => GoAwayStatus::INTERNAL_ERROR,
            Self::Truncated { .. } | Self::DrainTimeout { .. } => GoAwayStatus::OK,
            _ => GoAwayStatus::PROTOCOL_ERROR,
        }
    }

    /// The limit that the peer went past, if the session ended for one: what a log should name.
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
pub enum OpenError {
    /// As many are open as the peer allows: wait for [`Event::CanOpen`](crate::event::Event::CanOpen).
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
        /// The stream it would have belonged to.
        parent: StreamId,
    },
}
