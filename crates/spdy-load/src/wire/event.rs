//! What a connection reports to its session.

use crate::fault::Fault;

/// What became of a request, or of the connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// A whole answer.
    Answered {
        slot: usize,
        status: u16,
        body_bytes: u64,
    },
    /// There will be none.
    Lost {
        slot: usize,
        fault: Fault,
        /// The server has not begun with it: it may be sent on another connection.
        again: bool,
    },
    /// The connection is over; every request on it was told before.
    Ended,
}
