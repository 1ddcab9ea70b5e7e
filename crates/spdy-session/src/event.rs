//! The events of a session for its owner.

use std::time::Duration;

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;

use crate::error::SessionError;

/// Why a stream ended before its FIN.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResetCause {
    /// The peer sent RST_STREAM. REFUSED_STREAM is safe to retry.
    ByPeer(RstStatus),
    /// We sent it, because of what the peer did.
    ByUs(RstStatus),
    /// We sent CANCEL: DATA waited, and the peer gave no credit for it
    /// ([`write_timeout`](crate::config::Config::write_timeout)).
    Stalled {
        /// How long it waited.
        waited: Duration,
    },
    /// The peer's GOAWAY came before our SYN_STREAM was processed: safe to retry, on another
    /// session, whatever the method.
    NotProcessed,
    /// The session ended.
    SessionLost(SessionError),
}

/// What happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The peer opened a stream (request, push, or a raw stream).
    Opened {
        /// Its id.
        id: StreamId,
        /// The stream it belongs to: of a push, the request. 0 for none.
        associated_to: StreamId,
        /// How urgent its answer is.
        priority: Priority,
        /// We send nothing on it. Also set for pushes that forgot the flag (node-spdy, moby).
        unidirectional: bool,
        /// The headers of SYN_STREAM.
        headers: HeaderBlock,
        /// The peer sends nothing more on it.
        fin: bool,
    },
    /// SYN_REPLY to a stream of ours.
    Reply {
        /// The stream.
        id: StreamId,
        /// The headers of SYN_REPLY.
        headers: HeaderBlock,
        /// The peer sends nothing more on it.
        fin: bool,
    },
    /// HEADERS: the second block of a push, or trailers.
    Headers {
        /// The stream.
        id: StreamId,
        /// The headers of HEADERS.
        headers: HeaderBlock,
        /// The peer sends nothing more on it.
        fin: bool,
    },
    /// DATA; credit is given back by [`Session::consume`](crate::session::Session::consume).
    Data {
        /// The stream.
        id: StreamId,
        /// What came; empty only with `fin`.
        data: Bytes,
        /// The peer sends nothing more on it.
        fin: bool,
    },
    /// The stream ended early. Nothing more comes for it.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why, and so whether it may be retried.
        cause: ResetCause,
    },
    /// `send_capacity` of this stream rose from 0.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// `open` failed for want of room, and may succeed again.
    CanOpen,
    /// The answer to our ping.
    Pong {
        /// From the writing of PING to its echo.
        rtt: Duration,
    },
    /// The peer takes no new streams.
    GoAway {
        /// The highest of our streams that it has processed, or still will.
        last_good: StreamId,
        /// Why; none in SPDY/2.
        status: Option<GoAwayStatus>,
    },
    /// The session ended: `None` in order, `Some` by a fault of the peer or the transport. Always
    /// the last event.
    Closed {
        /// Why.
        error: Option<SessionError>,
    },
}
