//! Limits of both sides for their peer, and for h2.

use http::HeaderMap;

/// Limit of unsent bytes per stream in h2, unless a frame is larger: these bytes can no longer be overtaken.
pub(crate) const SEND_BUFFER_BYTES: usize = 32 * 1024;
/// Limit of streams that a peer made us reset by protocol errors; one more ends the connection.
pub(crate) const MAX_ABORTED_STREAMS: usize = 256;
/// Limit of recently reset streams that are remembered, since their last frames may still arrive.
pub(crate) const REMEMBERED_RESETS: usize = 50;
/// h2's limit of a server's header block, as a multiple of the limit of a head. For a block above this limit h2 ends the connection, with
/// all its streams; for a block between the two limits only its stream fails.
pub(crate) const HEADER_BLOCK_FACTOR: usize = 16;

/// True if h2 counts `headers` as longer than `max_bytes` (RFC 9113 §6.5.2).
pub(crate) fn is_too_large(headers: &HeaderMap, max_bytes: usize) -> bool {
    let fields = headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 32);
    fields.sum::<usize>() > max_bytes
}
