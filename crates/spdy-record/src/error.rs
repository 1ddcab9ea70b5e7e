//! Errors of a recording.

use spdy_page::open::OpenError;

/// Why a page cannot be recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No browser was given, and none of the usual names was found.
    #[error("no browser found: none of {} is in PATH", .tried.join(", "))]
    NoBrowser {
        /// The usual names.
        tried: Vec<&'static str>,
    },
    /// Chromium 49 was requested by name, and was not found.
    #[error(
        "chromium-49 is neither in PATH nor in interop/chromium49: scripts/setup-peers installs it"
    )]
    NoChromium49,
    /// The browser, or its profile, cannot be created.
    #[error("cannot start {program}: {cause}")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The browser exited, or closed its input.
    #[error("the browser exited during {during}: {last_stderr_line}")]
    BrowserExited {
        /// The operation.
        during: &'static str,
        /// The last line of its stderr.
        last_stderr_line: String,
    },
    /// The browser exceeded the timeout of an operation.
    #[error("the browser did not respond within {seconds} s during {during}")]
    Timeout {
        /// The operation.
        during: &'static str,
        /// The timeout.
        seconds: u64,
    },
    /// The browser rejected a command.
    #[error("the browser rejected {method}: {reason}")]
    Refused {
        /// The command.
        method: String,
        /// The browser's message.
        reason: String,
    },
    /// A message of the browser exceeded the limit.
    #[error("a message of the browser exceeds the limit of {limit} bytes")]
    Message {
        /// The limit.
        limit: usize,
    },
    /// The page was not loaded.
    #[error("cannot load {url}: {reason}")]
    Navigation {
        /// The page.
        url: String,
        /// The browser's message, such as `net::ERR_NAME_NOT_RESOLVED`.
        reason: String,
    },
    /// The browser's log exceeded the limit during a visit.
    #[error("the browser's log exceeds the limit of {limit} bytes before the end of the visit")]
    LogLimit {
        /// The limit.
        limit: usize,
    },
    /// The browser's log cannot be read from disk.
    #[error("cannot read the browser's log: {0}")]
    Log(#[source] std::io::Error),
    /// The browser's log cannot be imported.
    #[error("cannot make a recording of the browser's log: {0}")]
    Replica(#[from] OpenError),
    /// The recording was interrupted.
    #[error("interrupted")]
    Interrupted,
}
