//! What goes wrong, by consequence: a URL that cannot be had, a call of the client that failed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use spdy::upgrade::UpgradeError;

/// Why no URL was made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request has no container, or no sandbox.
    #[error("the request names no container or sandbox")]
    MissingTarget,
    /// A command is required, and none is given.
    #[error("the request has no command")]
    NoCommand,
    /// A terminal has no stderr of its own.
    #[error("tty and stderr cannot be combined")]
    TerminalWithStderr,
    /// Nothing to stream.
    #[error("none of stdin, stdout and stderr is requested")]
    NoStreams,
    /// As many tokens wait to be used as may.
    #[error("too many unused URLs, limit {limit}")]
    TooMany {
        /// [`Config::max_tokens`](crate::Config::max_tokens).
        limit: usize,
    },
    /// More ports than one WebSocket has channels for.
    #[error("{count} ports requested, limit {limit}")]
    TooManyPorts {
        /// Requested ports.
        count: usize,
        /// As many as have channels.
        limit: usize,
    },
    /// The system gives no random bytes.
    #[error("no random bytes for a token: {0}")]
    NoRandomness(String),
}

/// Why a stream ended before its end. Cheap to clone: every stream of a lost connection gets one.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It ran over SPDY.
    #[error(transparent)]
    Spdy(#[from] spdy::Error),
    /// The plain WebSocket under it was lost.
    #[error("the WebSocket was lost: {reason}")]
    WebSocket {
        /// The cause.
        reason: Arc<str>,
    },
    /// Its end was sent before.
    #[error("the channel can no longer send")]
    Ended,
}

impl StreamError {
    /// The peer has closed: writing is no longer possible.
    pub(crate) fn peer_gone() -> Self {
        Self::WebSocket {
            reason: "it has ended".into(),
        }
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Ended => io::ErrorKind::BrokenPipe,
            StreamError::Spdy(_) | StreamError::WebSocket { .. } => io::ErrorKind::ConnectionReset,
        };
        Self::new(kind, error)
    }
}

/// Why an exec, attach or port-forward failed at the client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server did not switch to SPDY.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
    /// The server switched to a version of the protocol that we do not know.
    #[error("the server speaks {protocol:?}, which was not offered")]
    Protocol {
        /// Its name.
        protocol: String,
    },
    /// The requested combination of streams makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// No transport is left to try.
    #[error("no transport is configured")]
    NoTransport,
    /// The server answered with 101, but the rest of its WebSocket handshake is invalid.
    #[error("invalid WebSocket handshake from the server: {reason}")]
    Handshake {
        /// What is invalid.
        reason: String,
    },
    /// A stream, the session or the WebSocket failed.
    #[error("the session failed: {0}")]
    Session(#[from] StreamError),
    /// The server did not answer a stream.
    #[error("the server did not reply to the {stream} stream within {after:?}")]
    NoReply {
        /// What the stream was for.
        stream: &'static str,
        /// [`Options::stream_timeout`](crate::client::Options::stream_timeout).
        after: Duration,
    },
    /// The server reports that it failed.
    #[error("{message}")]
    Remote {
        /// Its words.
        message: String,
    },
    /// The data on the error stream is not a status.
    #[error("the error stream has no valid status: {reason}")]
    Status {
        /// What is wrong with it.
        reason: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<spdy::Error> for ClientError {
    fn from(error: spdy::Error) -> Self {
        Self::Session(error.into())
    }
}
