//! Progress of the end of a session: draining, GOAWAY sent and received, ended (SPDY/3.1 §2.6.6).

use spdy_clock::Instant;
use spdy_frame::status::GoAwayStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

/// Progress of the end of a session.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    /// When draining began on our side.
    pub(crate) draining: Option<Instant>,
    /// GOAWAY was written.
    pub(crate) sent: bool,
    /// GOAWAY is to be written.
    pub(crate) due: Option<GoAwayStatus>,
    /// The lowest last-good ID of the peer's GOAWAYs.
    pub(crate) received: Option<StreamId>,
    pub(crate) ended: bool,
}

impl Closing {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// True if we may open no streams: in all versions after a GOAWAY of either side. (Drafts 2 and 3 allow the sender of a GOAWAY
    /// to open more; that has no benefit.)
    pub(crate) fn takes_no_streams(&self) -> bool {
        self.ended || self.draining.is_some() || self.received.is_some()
    }

    /// True if the peer's new streams are refused: after our GOAWAY, and in SPDY/3.1 also after the peer's. In the older drafts the
    /// sender of a GOAWAY may still open streams.
    pub(crate) fn refuses_streams(&self, version: Version) -> bool {
        self.draining.is_some() || (self.received.is_some() && version == Version::V31)
    }

    /// True if GOAWAY was sent, so that the peer's new streams are ignored.
    pub(crate) fn is_goaway_sent(&self) -> bool {
        self.sent
    }
}
