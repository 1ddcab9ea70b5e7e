//! What both sides hold their peer, and h2, to.

/// Bytes of one stream that h2 holds unsent, where no frame is larger: what lies there can no longer be overtaken.
pub(crate) const SEND_BUFFER_BYTES: usize = 32 * 1024;
/// Streams that a peer made us reset by breaking the rules; one more ends the connection.
pub(crate) const MAX_ABORTED_STREAMS: usize = 256;
/// Streams we reset that are remembered for a moment, since their last frames are under way.
pub(crate) const REMEMBERED_RESETS: usize = 50;
