//! How far the end of a session has come: draining, GOAWAY sent and received, ended (SPDY/3.1 §2.6.6).

use spdy_clock::Instant;
use spdy_frame::status::GoAwayStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

/// How far the end has come.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// Since when we drain by our own will.
    pub(crate) draining: Option<Instant>,
    /// GOAWAY was written.
    pub(crate) sent: bool,
    /// GOAWAY is to be written.
    pub(crate) due: Option<GoAwayStatus>,
    /// The lowest last-good that the peer's GOAWAYs gave.
    pub(crate) received: Option<StreamId>,
    pub(crate) ended: bool,
}

impl Closing {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Whether we may open no streams: in all versions after either side's GOAWAY. (Drafts 2 and 3
    /// would let the sender of one go on opening; nothing is gained by it.)
    pub(crate) fn takes_no_streams(&self) -> bool {
        self.ended || self.draining.is_some() || self.received.is_some()
    }

    /// Whether the peer's new streams are refused: after our GOAWAY, and in SPDY/3.1 after its
    /// own too. In the older drafts the sender of a GOAWAY may go on opening streams.
    pub(crate) fn refuses_streams(&self, version: Version) -> bool {
        self.draining.is_some() || (self.received.is_some() && version == Version::V31)
    }

    /// True if GOAWAY was sent, so that the peer's new streams are ignored.
    pub(crate) fn is_goaway_sent(&self) -> bool {
        self.sent
    }
}
