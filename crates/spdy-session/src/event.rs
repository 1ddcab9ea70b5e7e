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
    /// We sent CANCEL: queued DATA got no credit from the peer in time ([`write_timeout`](crate::config::Config::write_timeout)).
    Stalled {
        /// How long the DATA waited.
        waited: Duration,
    },
    /// The peer's GOAWAY shows that it did not process our SYN_STREAM: safe to retry on another session, with any method.
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
        /// The associated stream: for a push, the request. 0 for none.
        associated_to: StreamId,
        /// The priority of its answer.
        priority: Priority,
        /// We send nothing on it. Also set for pushes without the flag (node-spdy, moby).
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
        /// The payload; empty only with `fin`.
        data: Bytes,
        /// The peer sends nothing more on it.
        fin: bool,
    },
    /// The stream ended early. No more events follow for it.
    Reset {
        /// The stream.
        id: StreamId,
        /// Why it ended, which decides if it may be retried.
        cause: ResetCause,
    },
    /// `send_capacity` of this stream rose from 0.
    Writable {
        /// The stream.
        id: StreamId,
    },
    /// `open` failed because of the peer's limit, and may succeed now.
    CanOpen,
    /// The answer to our ping.
    Pong {
        /// Time from writing the PING to reading its echo.
        rtt: Duration,
    },
    /// The peer accepts no new streams.
    GoAway {
        /// The highest of our streams that the peer has processed or still will process.
        last_good: StreamId,
        /// The reason; `None` in SPDY/2.
        status: Option<GoAwayStatus>,
    },
    /// The session ended: in order (`None`), or by an error of the peer or the transport (`Some`). Always the last event.
    Closed {
        /// The reason.
        error: Option<SessionError>,
    },
}
