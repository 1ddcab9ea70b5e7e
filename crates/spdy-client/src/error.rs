//! Errors of a request.

use std::fmt;
use std::io;
use std::time::Duration;

use spdy_net::error::{ExchangeError, Retry};

use crate::origin::Origin;

/// The step of a request that timed out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TimeoutPhase {
    /// Opening a connection, TLS included ([`Config::connect_timeout`](crate::config::Config::connect_timeout)).
    Connection,
    /// The head of the response ([`Config::head_timeout`](crate::config::Config::head_timeout)).
    Response,
    /// The next piece of the response's body ([`Config::body_timeout`](crate::config::Config::body_timeout)).
    Body,
}

impl fmt::Display for TimeoutPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "connection",
            Self::Response => "response",
            Self::Body => "more body data",
        })
    }
}

/// The step at which opening a connection failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ConnectFailure {
    /// The network refuses to connect to this address ([`io::ErrorKind::PermissionDenied`]).
    Denied,
    /// No address accepted a TCP or QUIC connection.
    Unreachable,
    /// The TLS handshake over TCP failed.
    Tls,
    /// The server's certificate was not accepted.
    Certificate,
    /// The server selected none of the protocols that were offered by ALPN. Another attempt would end the same way.
    NoProtocol,
    /// The connection ended before the first request.
    Protocol,
}

impl ConnectFailure {
    /// The step at which TCP or QUIC failed with `error`.
    pub(crate) fn of_transport(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Unreachable,
        }
    }

    /// The step at which TLS failed with `error`.
    pub(crate) fn of_tls(error: &io::Error) -> Self {
        match spdy_net::tls::is_certificate_error(error) {
            true => Self::Certificate,
            false => Self::Tls,
        }
    }

    /// True if a TCP connection was established, so that a later step failed.
    #[must_use]
    pub fn is_above_tcp(self) -> bool {
        matches!(
            self,
            Self::Tls | Self::Certificate | Self::NoProtocol | Self::Protocol
        )
    }
}

/// Why a request failed. Cheap to clone: if a connection fails, every request that waited for it gets a copy.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request's URI is not absolute, or has another scheme than http and https.
    #[error("{0:?} is not an http or https URL")]
    Uri(String),
    /// The URL is https, but [`Config::tls`](crate::config::Config::tls) is `None`.
    #[error("{0} needs TLS: set `Config::tls`")]
    NoTls(Origin),
    /// The URL is http, but only HTTP/3 is configured, which has no form without TLS.
    #[error("{0} uses http, but HTTP/3 needs https")]
    NoPlainQuic(Origin),
    /// The host has no address, or the resolver failed.
    #[error("cannot resolve {host}: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// The kind of the resolver's error. `PermissionDenied`: the network refuses the name or its addresses.
        kind: io::ErrorKind,
        /// The resolver's message.
        reason: String,
    },
    /// The connection failed, during TCP, TLS or QUIC.
    #[error("cannot connect to {origin}: {reason}")]
    Connect {
        /// The origin.
        origin: Origin,
        /// The failed step.
        failure: ConnectFailure,
        /// The cause.
        reason: String,
    },
    /// A step timed out.
    #[error("no {phase} from {origin} within {after:?}")]
    TimedOut {
        /// The step.
        phase: TimeoutPhase,
        /// The origin of the request.
        origin: Origin,
        /// The timeout.
        after: Duration,
    },
    /// The source of the request's body produced no data in time; the server is not at fault.
    #[error("no more data from the request body for {origin} within {after:?}")]
    NoBody {
        /// The origin of the request.
        origin: Origin,
        /// The timeout.
        after: Duration,
    },
    /// All connections were busy: too many requests waited, or this one waited too long. The server is not at fault.
    #[error("no free connection to {origin}: {reason}")]
    Full {
        /// The origin of the request.
        origin: Origin,
        /// The limit that was reached.
        reason: &'static str,
    },
    /// The exchange failed.
    #[error("{origin}: {source}")]
    Exchange {
        /// The origin.
        origin: Origin,
        /// The cause, which decides if it may be retried.
        source: ExchangeError,
    },
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl Error {
    /// True if the origin has no address, or no address that accepts a connection in time, for any request.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Resolve { .. } => true,
            Self::Connect { failure, .. } => !failure.is_above_tcp(),
            Self::TimedOut { phase, .. } => *phase == TimeoutPhase::Connection,
            _ => false,
        }
    }

    /// True if the network's policy rejects the origin's name or address. No request is sent to it.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        match self {
            Self::Resolve { kind, .. } => *kind == io::ErrorKind::PermissionDenied,
            Self::Connect { failure, .. } => *failure == ConnectFailure::Denied,
            _ => false,
        }
    }

    /// True if the same request could be retried without harm, provided that its method is idempotent.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Uri(_)
            | Self::NoTls(_)
            | Self::NoPlainQuic(_)
            | Self::NoBody { .. }
            | Self::Closed => false,
            Self::Connect { failure, .. } => *failure != ConnectFailure::NoProtocol,
            Self::Resolve { .. } | Self::TimedOut { .. } | Self::Full { .. } => true,
            Self::Exchange { source, .. } => source.retry != Retry::Never,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Uri(_) | Error::NoTls(_) | Error::NoPlainQuic(_) => io::ErrorKind::InvalidInput,
            Error::Resolve { .. } => io::ErrorKind::NotFound,
            Error::Connect {
                failure: ConnectFailure::NoProtocol,
                ..
            } => io::ErrorKind::Unsupported,
            Error::Connect { .. } => io::ErrorKind::ConnectionRefused,
            Error::TimedOut { .. } | Error::NoBody { .. } => io::ErrorKind::TimedOut,
            Error::Full { .. } => io::ErrorKind::ResourceBusy,
            Error::Exchange { .. } => io::ErrorKind::ConnectionAborted,
            Error::Closed => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_unreachable_depends_on_the_step_and_not_on_the_message() {
        let origin =
            Origin::of(&"https://origin.test/".parse().unwrap()).expect("the URL has an origin");
        // The message contradicts the type.
        let message = "no connection".to_owned();
        let connect = |failure| Error::Connect {
            origin: origin.clone(),
            failure,
            reason: message.clone(),
        };
        let timed_out = |phase| Error::TimedOut {
            phase,
            origin: origin.clone(),
            after: Duration::from_secs(1),
        };
        let resolve = |kind| Error::Resolve {
            host: "origin.test".to_owned(),
            kind,
            reason: message.clone(),
        };
        for (error, is_unreachable, is_denied) in [
            (resolve(io::ErrorKind::NotFound), true, false),
            (resolve(io::ErrorKind::PermissionDenied), true, true),
            (connect(ConnectFailure::Unreachable), true, false),
            (connect(ConnectFailure::Denied), true, true),
            (connect(ConnectFailure::Tls), false, false),
            (connect(ConnectFailure::Certificate), false, false),
            (connect(ConnectFailure::NoProtocol), false, false),
            (connect(ConnectFailure::Protocol), false, false),
            (timed_out(TimeoutPhase::Connection), true, false),
            (timed_out(TimeoutPhase::Response), false, false),
            (timed_out(TimeoutPhase::Body), false, false),
            (Error::Closed, false, false),
        ] {
            assert_eq!(error.is_unreachable(), is_unreachable, "{error:?}");
            assert_eq!(error.is_denied(), is_denied, "{error:?}");
        }
    }
}
