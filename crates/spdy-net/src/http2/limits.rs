//! Limits of both sides for their peer, and for h2.

/// Limit of unsent bytes per stream in h2, unless a frame is larger: these bytes can no longer be overtaken.
pub(crate) const SEND_BUFFER_BYTES: usize = 32 * 1024;
/// Limit of streams that a peer made us reset by protocol errors; one more ends the connection.
pub(crate) const MAX_ABORTED_STREAMS: usize = 256;
/// Limit of recently reset streams that are remembered, since their last frames may still arrive.
pub(crate) const REMEMBERED_RESETS: usize = 50;
