//! Events that a connection reports to its session.

use crate::fault::Fault;

/// The outcome of a request, or the end of the connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// A complete response.
    Answered {
        slot: usize,
        status: u16,
        body_bytes: u64,
    },
    /// There will be no response.
    Lost {
        slot: usize,
        fault: Fault,
        /// The server has not begun with it: it may be sent on another connection.
        again: bool,
    },
    /// The connection has ended; every request on it was reported before.
    Ended,
}
