//! Errors by consequence: the connection is lost, or one exchange is lost, and whether to try again.

use std::io;
use std::time::Duration;

use spdy::body::BoxError;

use crate::protocol::Protocol;

/// Why a connection did not come about, or ended out of order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The transport, TLS included.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A phase took too long.
    #[error("no {what} within {after:?}")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: Duration,
    },
    /// The client closed the connection before it sent anything.
    #[error("the client closed the connection without sending anything")]
    NoBytes,
    /// The client speaks a protocol that this server does not.
    #[error("the client speaks {found}, expected {}", list(expected))]
    UnsupportedProtocol {
        /// What its first bytes look like.
        found: &'static str,
        /// The protocols of this server.
        expected: Vec<Protocol>,
    },
    /// The server of a TLS connection selected no protocol by ALPN. It would do the same again.
    #[error(
        "the server did not select a protocol by ALPN (offered: {}){}",
        list(offered),
        npn_advice(offered)
    )]
    NoProtocolSelected {
        /// What was offered.
        offered: Vec<Protocol>,
    },
    /// HTTP/1.1 on the wire, broken.
    #[error("http/1.1: {}", error_chain(&**.0))]
    Http1(#[source] BoxError),
    /// HTTP/2 on the wire, broken.
    #[error("h2: {source}")]
    Http2 {
        /// What h2 reports.
        source: BoxError,
        /// The peer went past a limit.
        abuse: bool,
    },
    /// HTTP/3 on the wire, broken, or QUIC beneath it.
    #[error("h3: {reason}")]
    Http3 {
        /// What happened.
        reason: String,
        /// The peer went past a limit.
        abuse: bool,
    },
    /// SPDY on the wire, broken.
    #[error("spdy: {0}")]
    Spdy(#[source] spdy::Error),
}

impl ConnectionError {
    /// Whether the peer went past a limit that no honest peer comes near, and the connection was ended
    /// for it. Deadlines are not meant: peers vanish every day.
    #[must_use]
    pub fn is_abuse(&self) -> bool {
        match self {
            Self::Spdy(spdy::Error::SessionLost(error)) => {
                error.limit().is_some_and(|limit| !limit.is_deadline())
            }
            Self::Http2 { abuse, .. } | Self::Http3 { abuse, .. } => *abuse,
            _ => false,
        }
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::Io(error) => error,
            ConnectionError::TimedOut { .. } => Self::new(io::ErrorKind::TimedOut, error),
            other => Self::other(other),
        }
    }
}

/// Names, comma between them.
fn list(protocols: &[Protocol]) -> String {
    let names: Vec<_> = protocols.iter().map(|protocol| protocol.alpn()).collect();
    names.join(", ")
}

/// Why a server of SPDY may know no ALPN (RFC 7301): the first ones negotiated by NPN, its draft of 2010 to 2012.
fn npn_advice(offered: &[Protocol]) -> &'static str {
    match offered
        .iter()
        .any(|protocol| matches!(protocol, Protocol::Spdy(_)))
    {
        true => "; it may only know NPN, which this client does not support",
        false => "",
    }
}

/// An error of hyper and its causes on one line; hyper's own text leaves them out.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// Whether a request that failed may be sent again (`RFC 9110 §9.2.2`, SPDY/3.1 §2.6.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    /// The server did not process it: any method may be sent again.
    Always,
    /// It may have been processed: idempotent methods only.
    IfIdempotent,
    /// It is not the connection's fault: the same would happen again.
    Never,
}

/// Why one exchange failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExchangeError {
    /// What happened, for people.
    pub message: String,
    /// Whether to try again.
    pub retry: Retry,
    /// The server refused it as one too many (REFUSED_STREAM): not again on the same connection before
    /// another exchange has ended there.
    pub refused: bool,
    /// Nothing of it left, for the connection had ended: that can come of a connection once, and sending it again
    /// needs another.
    pub unsent: bool,
    /// The server took nothing of what was sent, or a trickle, until it was given up
    /// ([`ClientOptions::write_timeout`](crate::options::ClientOptions::write_timeout)).
    pub write_timed_out: bool,
    /// The head of the answer is larger than any that is taken
    /// ([`ClientOptions::max_head_bytes`](crate::options::ClientOptions::max_head_bytes)).
    pub too_large: bool,
}

impl ExchangeError {
    /// An error with the text `message`.
    pub fn new(retry: Retry, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            retry,
            refused: false,
            unsent: false,
            write_timed_out: false,
            too_large: false,
        }
    }

    /// A request that found the connection ended.
    pub fn unsent(message: impl Into<String>) -> Self {
        Self {
            unsent: true,
            ..Self::new(Retry::Always, message)
        }
    }

    /// A server that stood still: it would do so again.
    pub fn write_timed_out(message: impl Into<String>) -> Self {
        Self {
            write_timed_out: true,
            ..Self::new(Retry::Never, message)
        }
    }

    /// An answer whose head is too large: it would come again.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self {
            too_large: true,
            ..Self::new(Retry::Never, message)
        }
    }

    /// The same error of an exchange that was one too many, if it `was`.
    pub fn refused(mut self, was: bool) -> Self {
        self.refused = was;
        self
    }
}
