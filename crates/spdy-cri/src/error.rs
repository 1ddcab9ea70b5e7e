//! Error types by consequence: a request was refused, a command did not start, or a call of the client failed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use spdy::upgrade::UpgradeError;

use crate::status::ExitCode;

/// Why a streaming request was refused, or no URL was created for it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request has no container, or no sandbox.
    #[error("the request names no container or sandbox")]
    MissingTarget,
    /// A command is required, but none is given.
    #[error("the request has no command")]
    NoCommand,
    /// A terminal has no separate stderr.
    #[error("tty and stderr cannot be combined")]
    TerminalWithStderr,
    /// No stream is requested.
    #[error("none of stdin, stdout and stderr is requested")]
    NoStreams,
    /// The limit of unused tokens is reached.
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
        /// The limit.
        limit: usize,
    },
    /// The system returned no random bytes.
    #[error("no random bytes for a token: {0}")]
    NoRandomness(String),
}

/// Why a command did not start. [`Handler::exec`](crate::Handler::exec) may return it.
///
/// The client then gets an `InternalError` whose message ends with the text of this error, as from containerd, and `kubectl exec`
/// exits with 1:
///
/// ```text
/// error: Internal error occurred: error executing command in container: exec: "lss": executable file not found in $PATH
/// ```
///
/// Docker's runtimes report an exit code instead, and the text on stderr. For that, write the text to
/// [`Streams::stderr`](crate::Streams::stderr) and return [`exit_code`](Self::exit_code).
///
/// The texts are those of Go's `os/exec`, which users know from runc.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The executable does not exist.
    #[error("exec: {program:?}: {}", not_found(.program))]
    NotFound {
        /// The first word of the command.
        program: String,
    },
    /// The file may not be executed.
    #[error("exec: {program:?}: permission denied")]
    PermissionDenied {
        /// The first word of the command.
        program: String,
    },
    /// The system cannot start the process for another reason.
    #[error("exec: {program:?}: {error}")]
    Other {
        /// The first word of the command.
        program: String,
        /// The system's error.
        error: io::Error,
    },
}

/// A name with a slash is not searched in `PATH`.
fn not_found(program: &str) -> &'static str {
    match program.contains('/') {
        true => "no such file or directory",
        false => "executable file not found in $PATH",
    }
}

impl StartError {
    /// Interprets the error of a `spawn` of `program`.
    ///
    /// The system also returns `NotFound` if the working directory or the interpreter of a script does not exist: check the directory
    /// first.
    #[must_use]
    pub fn new(program: &str, error: io::Error) -> Self {
        let program = program.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { program },
            _ => Self::Other { program, error },
        }
    }

    /// The exit code that a POSIX shell and `docker exec` report: 127 if the executable does not exist, otherwise 126.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::NotFound { .. } => ExitCode(127),
            Self::PermissionDenied { .. } | Self::Other { .. } => ExitCode(126),
        }
    }
}

/// Why a stream ended early. Cheap to clone: every stream of a lost connection gets a copy.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// An error of SPDY.
    #[error(transparent)]
    Spdy(#[from] spdy::Error),
    /// The plain WebSocket was lost.
    #[error("the WebSocket was lost: {reason}")]
    WebSocket {
        /// The cause.
        reason: Arc<str>,
    },
    /// The end of the channel was already sent.
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
    /// The server switched to an unknown version of the protocol.
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
        /// The error.
        reason: String,
    },
    /// A stream, the session or the WebSocket failed.
    #[error("the session failed: {0}")]
    Session(#[from] StreamError),
    /// The server did not answer a stream.
    #[error("the server did not reply to the {stream} stream within {after:?}")]
    NoReply {
        /// The type of the stream.
        stream: &'static str,
        /// [`Options::stream_timeout`](crate::client::Options::stream_timeout).
        after: Duration,
    },
    /// The server reports a failure.
    #[error("{message}")]
    Remote {
        /// The server's message.
        message: String,
    },
    /// The data on the error stream is not a status.
    #[error("the error stream has no valid status: {reason}")]
    Status {
        /// The error.
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
