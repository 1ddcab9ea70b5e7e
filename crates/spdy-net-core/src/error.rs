//! Errors by consequence: the connection is lost, or one exchange is lost, and whether to retry.

use std::io;
use std::time::Duration;

use spdy::body::BoxError;

use crate::protocol::Protocol;

/// Why a connection failed to open, or ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// An error of the transport, TLS included.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A phase timed out.
    #[error("no {what} within {after:?}")]
    TimedOut {
        /// The phase.
        what: &'static str,
        /// The timeout.
        after: Duration,
    },
    /// The client closed the connection before it sent anything.
    #[error("the client closed the connection without sending anything")]
    NoBytes,
    /// The client uses a protocol that this server does not support.
    #[error("the client speaks {found}, expected {}", list(expected))]
    UnsupportedProtocol {
        /// The protocol that its first bytes show.
        found: &'static str,
        /// The protocols of this server.
        expected: Vec<Protocol>,
    },
    /// The server of a TLS connection selected no protocol by ALPN. Another attempt would have the same result.
    #[error(
        "the server did not select a protocol by ALPN (offered: {}){}",
        list(offered),
        npn_advice(offered)
    )]
    NoProtocolSelected {
        /// The offered protocols.
        offered: Vec<Protocol>,
    },
    /// An error of HTTP/1.1.
    #[error("http/1.1: {}", error_chain(&**.0))]
    Http1(#[source] BoxError),
    /// An error of HTTP/2.
    #[error("h2: {source}")]
    Http2 {
        /// The error of h2.
        source: BoxError,
        /// True if the peer exceeded a limit.
        abuse: bool,
    },
    /// An error of HTTP/3, or of QUIC.
    #[error("h3: {reason}")]
    Http3 {
        /// The error.
        reason: String,
        /// True if the peer exceeded a limit.
        abuse: bool,
    },
    /// An error of SPDY.
    #[error("spdy: {0}")]
    Spdy(#[source] spdy::Error),
}

impl ConnectionError {
    /// True if the connection was ended because the peer exceeded a limit that normal peers never reach. Timeouts are not included,
    /// because peers vanish often.
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

/// The names, separated by commas.
fn list(protocols: &[Protocol]) -> String {
    let names: Vec<_> = protocols.iter().map(|protocol| protocol.alpn()).collect();
    names.join(", ")
}

/// Advice for a SPDY server that may not know ALPN (RFC 7301): the first ones used NPN, its draft of 2010 to 2012.
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

/// Whether a failed request may be retried (`RFC 9110 §9.2.2`, SPDY/3.1 §2.6.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Retry {
    /// The server did not process it: any method may be retried.
    Always,
    /// It may have been processed: idempotent methods only.
    IfIdempotent,
    /// The connection is not at fault: a retry would fail in the same way.
    Never,
}

/// Why one exchange failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExchangeError {
    /// The message for people.
    pub message: String,
    /// Whether to retry.
    pub retry: Retry,
    /// The server refused it as one too many (REFUSED_STREAM): it must not be retried on the same connection before another
    /// exchange has ended there.
    pub refused: bool,
    /// No part of it was sent, because the connection had ended: this can happen once per connection, and a retry needs another
    /// connection.
    pub unsent: bool,
    /// The server accepted no bytes, or too few, until the timeout
    /// ([`ClientOptions::write_timeout`](crate::options::ClientOptions::write_timeout)).
    pub write_timed_out: bool,
    /// The head of the response exceeds [`ClientOptions::max_head_bytes`](crate::options::ClientOptions::max_head_bytes).
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

    /// The error of a request whose connection had already ended.
    pub fn unsent(message: impl Into<String>) -> Self {
        Self {
            unsent: true,
            ..Self::new(Retry::Always, message)
        }
    }

    /// The error of a server that accepted no bytes: a retry would fail in the same way.
    pub fn write_timed_out(message: impl Into<String>) -> Self {
        Self {
            write_timed_out: true,
            ..Self::new(Retry::Never, message)
        }
    }

    /// The error of a response whose head is too large: a retry would fail in the same way.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self {
            too_large: true,
            ..Self::new(Retry::Never, message)
        }
    }

    /// Sets whether the exchange was refused as one too many.
    pub fn refused(mut self, was: bool) -> Self {
        self.refused = was;
        self
    }
}
