//! Errors of a comparison.

use std::io;

use spdy_tun::error::RealTimeError;

use crate::live::gateway::error::GatewayError;

/// A failed comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The network in real time cannot be used.
    #[error("cannot set up a network in real time")]
    RealTime(#[from] RealTimeError),
    /// Another server cannot serve the page.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// A run in virtual time failed.
    #[error("{what} failed in virtual time")]
    Virtual {
        /// The run.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// Sockets of a host failed.
    #[error("a socket behind the link failed")]
    Socket(#[from] io::Error),
    /// The kernel runs another congestion control than the configured one.
    #[error("the kernel uses congestion control {found:?}, expected {expected:?}")]
    Congestion {
        /// The configured one.
        expected: String,
        /// The one that the socket has.
        found: String,
    },
    /// A link was not quiet after a run.
    #[error("the link was still busy {seconds} s after a run")]
    LinkNotQuiet {
        /// The timeout.
        seconds: u64,
    },
}
