//! Errors of a run.

use std::io;

/// Why a target is invalid.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// There is no URL.
    #[error("no URL: give at least one")]
    Empty,
    /// A URL without a host.
    #[error("URL {0} has no host")]
    NoHost(String),
    /// A scheme that is neither http nor https.
    #[error("unsupported scheme in URL {0}, expected http or https")]
    Scheme(String),
    /// URLs of several origins: a session has one.
    #[error("{second} has another origin than {first}: all URLs of a run need the same origin")]
    Origins {
        /// The first URL.
        first: String,
        /// One that differs.
        second: String,
    },
    /// A method or header that a protocol cannot encode.
    #[error("request for {url}: {reason}")]
    Request {
        /// The URL.
        url: String,
        /// The error.
        reason: String,
    },
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The host has no address.
    #[error("cannot resolve {host}")]
    Resolve {
        /// The host.
        host: String,
        /// The error of the lookup.
        source: io::Error,
    },
    /// No session could be opened.
    #[error("cannot connect to {to}: {reason}")]
    Connect {
        /// Host and port.
        to: String,
        /// The first failure.
        reason: String,
    },
    /// A thread or its runtime cannot be created.
    #[error("cannot start a load thread")]
    Thread(#[source] io::Error),
    /// The process to be measured does not exist.
    #[error(transparent)]
    Process(#[from] crate::process::ProcessError),
}
