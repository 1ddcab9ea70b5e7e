//! Why a request got no response.

use std::io;
use std::time::Duration;

use spdy_net::error::{ExchangeError, Retry};

use crate::origin::Origin;

/// Why a request failed. Cheap to clone: one failed connect is told to everyone who waited for it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request's URI is not absolute, or of another scheme.
    #[error("{0:?} is no http or https URL")]
    Uri(String),
    /// An https URL, and no TLS to fetch it with.
    #[error("{0} needs TLS, and none is configured")]
    NoTls(Origin),
    /// An http URL, and nothing to fetch it with but HTTP/3, which has no plain form.
    #[error("{0} is plain, and HTTP/3 wants https")]
    NoPlainQuic(Origin),
    /// The name has no address.
    #[error("cannot find {host}: {why}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        why: String,
    },
    /// No connection, TLS included.
    #[error("cannot connect to {origin}: {why}")]
    Connect {
        /// Where to.
        origin: Origin,
        /// Whether TCP was connected, so that TLS or the start of the protocol failed.
        reached: bool,
        /// What happened.
        why: String,
    },
    /// TLS stands, and its server selected none of the protocols that were offered.
    #[error("cannot connect to {origin}: {why}")]
    NoProtocol {
        /// Where to.
        origin: Origin,
        /// What was offered.
        why: String,
    },
    /// A phase took too long.
    #[error("no {what} from {origin} within {after:?}")]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// From whom.
        origin: Origin,
        /// How long.
        after: Duration,
    },
    /// Whoever makes the request's body made no more of it: the server did nothing wrong.
    #[error("no more of the request's body for {origin} within {after:?}")]
    NoBody {
        /// For whom.
        origin: Origin,
        /// How long.
        after: Duration,
    },
    /// Its connections were all busy, and so many others or so long waited for them: the server did nothing wrong.
    #[error("no free connection to {origin}: {why}")]
    Full {
        /// To whom.
        origin: Origin,
        /// The limit that was met.
        why: &'static str,
    },
    /// The exchange broke.
    #[error("{origin}: {source}")]
    Exchange {
        /// With whom.
        origin: Origin,
        /// How, and whether it may be tried again.
        source: ExchangeError,
    },
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

impl Error {
    /// Whether the same request could be sent again without harm, if its method were idempotent.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Uri(_)
            | Self::NoTls(_)
            | Self::NoPlainQuic(_)
            | Self::NoProtocol { .. }
            | Self::NoBody { .. }
            | Self::Closed => false,
            Self::Resolve { .. }
            | Self::Connect { .. }
            | Self::TimedOut { .. }
            | Self::Full { .. } => true,
            Self::Exchange { source, .. } => source.retry != Retry::Never,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Uri(_) | Error::NoTls(_) | Error::NoPlainQuic(_) => io::ErrorKind::InvalidInput,
            Error::Resolve { .. } => io::ErrorKind::NotFound,
            Error::Connect { .. } => io::ErrorKind::ConnectionRefused,
            Error::NoProtocol { .. } => io::ErrorKind::Unsupported,
            Error::TimedOut { .. } | Error::NoBody { .. } => io::ErrorKind::TimedOut,
            Error::Full { .. } => io::ErrorKind::ResourceBusy,
            Error::Exchange { .. } => io::ErrorKind::ConnectionAborted,
            Error::Closed => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}
