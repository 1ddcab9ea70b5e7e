//! What goes wrong, by consequence: a URL that cannot be had, a call of the client that failed.

use std::io;
use std::time::Duration;

use spdy::upgrade::UpgradeError;

/// Why no URL was made.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request has no container, or no sandbox.
    #[error("the request names no container or sandbox")]
    Nameless,
    /// A command is wanted, and none given.
    #[error("the request has no command")]
    NoCommand,
    /// A terminal has no stderr of its own.
    #[error("tty and stderr cannot both be asked for")]
    TerminalWithStderr,
    /// Nothing to stream.
    #[error("none of stdin, stdout and stderr is asked for")]
    NoStreams,
    /// As many tokens wait to be used as may.
    #[error("{limit} urls wait to be used, as many as may")]
    TooMany {
        /// [`Config::max_tokens`](crate::Config::max_tokens).
        limit: usize,
    },
    /// The system gives no random bytes.
    #[error("no random bytes for a token: {0}")]
    NoChance(String),
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
    /// Which streams were asked for makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A stream or the session failed.
    #[error("the session failed: {0}")]
    Session(#[from] spdy::Error),
    /// The server did not answer a stream.
    #[error("the server did not answer the {stream} stream within {after:?}")]
    NoReply {
        /// What the stream was for.
        stream: &'static str,
        /// [`Options::stream_timeout`](crate::client::Options::stream_timeout).
        after: Duration,
    },
    /// The server says that it failed.
    #[error("{message}")]
    Remote {
        /// Its words.
        message: String,
    },
    /// What came on the error stream is no status.
    #[error("the error stream holds no status: {why}")]
    Status {
        /// What is wrong with it.
        why: String,
    },
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
