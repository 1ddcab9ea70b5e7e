//! Why cells could not be compared.

use std::io;

use spdy_tun::error::RealTimeError;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// There is no network in real time.
    #[error("cannot set up a network in real time")]
    RealTime(#[from] RealTimeError),
    /// Something failed in virtual time.
    #[error("{what} failed in virtual time")]
    Virtual {
        /// What.
        what: String,
        /// Why.
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
    /// A link never came to rest after a run.
    #[error("the link was still busy {seconds} s after a run")]
    LinkNotQuiet {
        /// For how long it was waited.
        seconds: u64,
    },
}
