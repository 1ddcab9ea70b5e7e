//! Why there is no result.

use std::io;

/// Why a target is none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// No URL at all.
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
    /// A method or header that a protocol cannot carry.
    #[error("request for {url}: {reason}")]
    Request {
        /// What was asked for.
        url: String,
        /// What is wrong.
        reason: String,
    },
}

/// Why a run came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The host has no address.
    #[error("cannot resolve {host}")]
    Resolve {
        /// Whose address was looked for.
        host: String,
        /// Why it was not found.
        source: io::Error,
    },
    /// No session could be set up.
    #[error("cannot connect to {to}: {reason}")]
    Connect {
        /// Host and port.
        to: String,
        /// The first failure.
        reason: String,
    },
    /// A thread or its runtime could not be made.
    #[error("cannot start a load thread")]
    Thread(#[source] io::Error),
    /// The process to be measured is not there.
    #[error(transparent)]
    Process(#[from] crate::process::ProcessError),
}
