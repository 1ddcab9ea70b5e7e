//! Why a body cannot be sent now: the window of its stream is closed, or the connection has no room.

use spdy_clock::Instant;

/// What a body without room waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BlockReason {
    /// The peer, which must open the stream's window.
    Window,
    /// The connection, whose room is used by other streams.
    Connection(SendProgress),
}

/// The progress of all bodies of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SendProgress {
    /// Bytes.
    pub bytes: u64,
    /// When the last byte was sent.
    pub at: Instant,
}
