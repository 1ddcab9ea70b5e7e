//! Errors of starting another server.

use std::io;

use crate::experiment::server_program::ServerProgram;

/// Why another server cannot serve a page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// A part of it is not installed.
    #[error("server={server}: {what} was not found: {install}")]
    Missing {
        /// The server.
        server: ServerProgram,
        /// The missing part.
        what: String,
        /// How to install it.
        install: &'static str,
    },
    /// Its process cannot be started.
    #[error("server={server}: cannot start {what}")]
    Start {
        /// The server.
        server: ServerProgram,
        /// The program, or a file that it needs.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// Its process ended before it listened.
    #[error("server={server} ended while it started: {last_line}")]
    Ended {
        /// The server.
        server: ServerProgram,
        /// Its last line on stderr.
        last_line: String,
    },
    /// It did not listen in time.
    #[error("server={server} did not listen on every port within {seconds} s: {last_line}")]
    Timeout {
        /// The server.
        server: ServerProgram,
        /// The timeout.
        seconds: u64,
        /// Its last line on stderr.
        last_line: String,
    },
}
