//! Why there is no recording.

use spdy_page::open::OpenError;

/// Why a page was not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// No browser was named, and none of the usual names is to be found.
    #[error("no browser found: none of {} is in PATH", .tried.join(", "))]
    NoBrowser {
        /// The names that were looked for.
        tried: Vec<&'static str>,
    },
    /// The browser, or the room for its profile, could not be had.
    #[error("cannot start {program}: {cause}")]
    Start {
        /// The program.
        program: String,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The browser exited, or closed its input.
    #[error("the browser exited during {during}: {last_stderr_line}")]
    BrowserExited {
        /// What it was to do.
        during: &'static str,
        /// The last line of its stderr.
        last_stderr_line: String,
    },
    /// The browser did not do in time what takes no time.
    #[error("the browser did not respond within {seconds} s during {during}")]
    Timeout {
        /// What it was to do.
        during: &'static str,
        /// How long it was waited for.
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
    /// A message of the browser was longer than it may be.
    #[error("a message of the browser exceeds the limit of {limit} bytes")]
    Message {
        /// How much is allowed.
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
    /// The browser's log cannot be read from disk.
    #[error("cannot read the browser's log: {0}")]
    Log(#[source] std::io::Error),
    /// The browser's log makes no replica.
    #[error("cannot make a recording of the browser's log: {0}")]
    Replica(#[from] OpenError),
    /// The recording was interrupted.
    #[error("interrupted")]
    Interrupted,
}
