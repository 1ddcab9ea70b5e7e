//! What a session tells its owner. (Contract)

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
    /// The peer sent RST_STREAM.
    ByPeer(RstStatus),
    /// We sent it, because of what the peer did.
    ByUs(RstStatus),
    /// A GOAWAY said this stream was not processed: safe to retry.
    NotProcessed,
    /// The session ended.
    SessionLost(SessionError),
}

/// What happened.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The peer opened a stream (request, push, or a raw stream).
    Opened { id: StreamId, associated_to: StreamId, priority: Priority, unidirectional: bool, headers: HeaderBlock, fin: bool },
    /// SYN_REPLY to a stream of ours.
    Reply { id: StreamId, headers: HeaderBlock, fin: bool },
    /// HEADERS.
    Headers { id: StreamId, headers: HeaderBlock, fin: bool },
    /// DATA; credit is given back by [`crate::session::Session::consume`].
    Data { id: StreamId, data: Bytes, fin: bool },
    /// The stream ended early. Nothing more comes for it.
    Reset { id: StreamId, cause: ResetCause },
    /// `send_capacity` of this stream rose from 0.
    Writable { id: StreamId },
    /// `open` may succeed again.
    CanOpen,
    /// The answer to our ping.
    Pong { rtt: Duration },
    /// The peer takes no new streams.
    GoAway { last_good: StreamId, status: Option<GoAwayStatus> },
    /// The session ended: `None` in order, `Some` by a fault of the peer or the transport. Always the last event.
    Closed { error: Option<SessionError> },
}
