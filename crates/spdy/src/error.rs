//! The errors of an exchange, a stream or a session, by what a caller can do about them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use spdy_frame::error::FrameError;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_session::error::SessionError;

// Exported so that a program can tell these errors apart without a dependency on these crates.
pub use spdy_frame::error::BlockError;
pub use spdy_http::content_length::LengthMismatch;
pub use spdy_http::request::{BadRequest, RequestError};
pub use spdy_http::response::BadResponse;
pub use spdy_http::trailers::BadTrailers;

/// A boxed error, as HTTP bodies carry it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request, a stream or a session failed. Cheap to clone: every stream of a lost session gets a copy.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session accepts no new streams (GOAWAY, or shut down locally), or ended before this stream was written: the peer's
    /// application has seen nothing.
    #[error("the session accepts no new streams")]
    Closing,
    /// The [`Connection`](crate::client::Connection) of the session was dropped before the session ended:
    /// nothing is sent or received any more.
    #[error(
        "the session's `Connection` was dropped: spawn it, or await its `run` for as long as the session is used"
    )]
    ConnectionDropped,
    /// The [`Connection`](crate::client::Connection) of the session was not run while a task waited for the session.
    #[error(
        "the session's `Connection` was not run within {waited:?}: spawn it, or await its `run` beside the requests"
    )]
    ConnectionNotRun {
        /// How long the task waited.
        waited: Duration,
    },
    /// The peer's limit of open streams is reached; a push is not queued.
    #[error("{limit} streams are open, which is the peer's limit")]
    TooManyStreams {
        /// The peer's MAX_CONCURRENT_STREAMS.
        limit: u32,
    },
    /// The push is not allowed.
    #[error("not pushed: {reason}")]
    PushRefused {
        /// The rule that it violates.
        reason: &'static str,
    },
    /// The peer's GOAWAY states that it did not process this stream.
    #[error("stream {id} was not processed: the peer's GOAWAY names an earlier stream")]
    NotProcessed {
        /// The stream.
        id: StreamId,
    },
    /// The peer sent RST_STREAM.
    #[error("the peer reset stream {id}: {status}")]
    ResetByPeer {
        /// The stream.
        id: StreamId,
        /// The status that the peer sent.
        status: RstStatus,
    },
    /// We sent RST_STREAM, because of the peer's frames on the stream or because the caller requested it.
    #[error("stream {id} was reset locally: {status}")]
    ResetByUs {
        /// The stream.
        id: StreamId,
        /// The status that was sent.
        status: RstStatus,
    },
    /// We sent RST_STREAM(CANCEL): queued output got no credit from the peer in time
    /// ([`Config::write_timeout`](crate::Config::write_timeout)).
    #[error(
        "stream {id} was reset locally: the peer granted no window for its DATA for {waited:?}"
    )]
    Stalled {
        /// The stream.
        id: StreamId,
        /// How long the output waited.
        waited: Duration,
    },
    /// The transport ended, or the session did, before the stream's FIN.
    #[error("the session was lost: {0}")]
    SessionLost(SessionError),
    /// The transport failed.
    #[error("the connection failed: {0}")]
    Io(Arc<io::Error>),
    /// The request cannot be encoded as SPDY; nothing was sent.
    #[error("the request cannot be sent: {0}")]
    Request(#[from] RequestError),
    /// The headers cannot be encoded; nothing was sent.
    #[error("the headers cannot be sent: {0}")]
    Headers(#[from] BlockError),
    /// The peer's answer is not a valid HTTP response; the stream was reset.
    #[error("the peer's response is not valid HTTP: {0}")]
    Response(#[from] BadResponse),
    /// The headers after a message's head are not valid trailers; the stream was reset.
    #[error("invalid trailers: {0}")]
    Trailers(#[from] BadTrailers),
    /// The body that was being sent failed; the stream was reset.
    #[error("the body to send failed: {0}")]
    Body(Arc<BoxError>),
    /// The length of a request's DATA differs from its content-length.
    #[error("content-length is {declared}, but {received} bytes were received")]
    Length {
        /// The value of the header, bytes.
        declared: u64,
        /// Bytes of DATA.
        received: u64,
    },
    /// The stream gets no SYN_REPLY: the peer opened it, or it is unidirectional.
    #[error("stream {id} receives no SYN_REPLY: the peer opened it, or it is unidirectional")]
    NoReply {
        /// The stream.
        id: StreamId,
    },
    /// The stream's sending half is closed: FIN was sent, or the stream is unidirectional.
    #[error("stream {id} can no longer send")]
    SendClosed {
        /// The stream.
        id: StreamId,
    },
}

impl Error {
    /// True if any request, including POST, may be retried on another session: the peer's application has not seen it.
    #[must_use]
    pub fn is_retry_safe(&self) -> bool {
        match self {
            Self::Closing
            | Self::ConnectionNotRun { .. }
            | Self::TooManyStreams { .. }
            | Self::NotProcessed { .. } => true,
            Self::ResetByPeer { status, .. } => *status == RstStatus::REFUSED_STREAM,
            _ => false,
        }
    }

    /// True if a request with an idempotent method may be retried, if no byte of a response was passed on: the session was lost, or
    /// the peer failed.
    #[must_use]
    pub fn is_retry_safe_if_idempotent(&self) -> bool {
        // A server that speaks another protocol would give the same answer again.
        if self.is_of_another_protocol() {
            return false;
        }
        self.is_retry_safe()
            || matches!(
                self,
                Self::SessionLost(_) | Self::Io(_) | Self::ConnectionDropped
            )
            || matches!(self, Self::ResetByPeer { status, .. }
                if matches!(*status, RstStatus::CANCEL | RstStatus::INTERNAL_ERROR | RstStatus::PROTOCOL_ERROR))
    }

    /// The server answered HTTP/1.x.
    fn is_of_another_protocol(&self) -> bool {
        matches!(
            self,
            Self::SessionLost(SessionError::Frame(FrameError::Http1Response { .. }))
        )
    }

    /// True if a stream that was never opened fails with this error too, instead of [`Closing`](Self::Closing): the error names the
    /// remedy, and another session would end in the same way.
    pub(crate) fn concerns_every_stream(&self) -> bool {
        matches!(
            self,
            Self::ConnectionDropped | Self::ConnectionNotRun { .. }
        ) || self.is_of_another_protocol()
    }

    /// The status of the RST_STREAM that ended the stream, sent by either side.
    #[must_use]
    pub fn reset_status(&self) -> Option<RstStatus> {
        match self {
            Self::ResetByPeer { status, .. } | Self::ResetByUs { status, .. } => Some(*status),
            Self::Stalled { .. } => Some(RstStatus::CANCEL),
            _ => None,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Io(inner) => inner.kind(),
            Error::ResetByPeer { .. } | Error::NotProcessed { .. } => {
                io::ErrorKind::ConnectionReset
            }
            Error::ResetByUs { .. } | Error::ConnectionDropped => io::ErrorKind::ConnectionAborted,
            Error::Stalled { .. } | Error::SessionLost(SessionError::WriteTimeout { .. }) => {
                io::ErrorKind::TimedOut
            }
            Error::SessionLost(_) => io::ErrorKind::UnexpectedEof,
            Error::Closing | Error::ConnectionNotRun { .. } => io::ErrorKind::NotConnected,
            Error::SendClosed { .. } => io::ErrorKind::BrokenPipe,
            Error::TooManyStreams { .. } => io::ErrorKind::WouldBlock,
            Error::Request(_)
            | Error::Headers(_)
            | Error::PushRefused { .. }
            | Error::NoReply { .. } => io::ErrorKind::InvalidInput,
            Error::Response(_) | Error::Trailers(_) | Error::Length { .. } | Error::Body(_) => {
                io::ErrorKind::InvalidData
            }
        };
        Self::new(kind, error)
    }
}
