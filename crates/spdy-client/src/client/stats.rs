//! The client's counters.

use spdy_net::header_bytes::HeaderBytes;

/// The client's counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Established connections, TLS included.
    pub connections: u64,
    /// Of those, the number that resumed a TLS session.
    pub resumed: u64,
    /// Origins that used a connection of another origin instead of opening one.
    pub shared: u64,
    /// Requests sent on a connection; each retry counts again.
    pub requests: u64,
    /// Heads of requests as HTTP/1.1 text, bytes.
    pub request_header_bytes: u64,
    /// The same heads as encoded on the wire (SPDY: header blocks; HTTP/2: HEADERS and CONTINUATION payloads; HTTP/1.1: the text
    /// itself).
    pub request_header_bytes_wire: u64,
    /// Heads of responses as HTTP/1.1 text, bytes.
    pub response_header_bytes: u64,
    /// The same heads as encoded on the wire.
    pub response_header_bytes_wire: u64,
}

/// `stats` plus the header bytes of one more connection.
pub(super) fn with_wire_bytes(mut stats: Stats, bytes: HeaderBytes) -> Stats {
    stats.request_header_bytes_wire += bytes.sent;
    stats.response_header_bytes_wire += bytes.received;
    stats
}
