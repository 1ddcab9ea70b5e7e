//! What the client did so far, in numbers.

use spdy_net::header_bytes::HeaderBytes;

/// What the client did so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats {
    /// Connections that stood, TLS included.
    pub connections: u64,
    /// Of those, how many took up an earlier TLS session.
    pub resumed: u64,
    /// Origins that used a connection of another instead of one of their own.
    pub shared: u64,
    /// Requests handed to a connection; one that is sent again counts again.
    pub requests: u64,
    /// Heads of requests as HTTP/1.1 text, bytes.
    pub request_header_bytes: u64,
    /// The same as on the wire (SPDY: block bytes; h2: HEADERS and CONTINUATION payloads; h1: the text itself).
    pub request_header_bytes_wire: u64,
    /// Heads of responses as HTTP/1.1 text, bytes.
    pub response_header_bytes: u64,
    /// The same as on the wire.
    pub response_header_bytes_wire: u64,
}

/// `stats` with the header bytes of one more connection.
pub(super) fn with_wire_bytes(mut stats: Stats, bytes: HeaderBytes) -> Stats {
    stats.request_header_bytes_wire += bytes.sent;
    stats.response_header_bytes_wire += bytes.received;
    stats
}
