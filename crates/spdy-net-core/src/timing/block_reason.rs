//! Why a body cannot be sent now: it waits for its stream's window, or for the connection.

use spdy_clock::Instant;

/// What a body that finds no room waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BlockReason {
    /// The peer, to open the stream's window.
    Window,
    /// The connection, whose room others have.
    Connection(SendProgress),
}

/// What went out over a connection of all bodies.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SendProgress {
    /// Bytes.
    pub bytes: u64,
    /// When the last of them did.
    pub at: Instant,
}
