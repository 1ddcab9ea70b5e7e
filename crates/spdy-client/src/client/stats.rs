//! The client's counters.

use std::ops::Add;

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

/// The counts of several clients together.
impl Add for Stats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            resumed: self.resumed + other.resumed,
            shared: self.shared + other.shared,
            requests: self.requests + other.requests,
            request_header_bytes: self.request_header_bytes + other.request_header_bytes,
            request_header_bytes_wire: self.request_header_bytes_wire
                + other.request_header_bytes_wire,
            response_header_bytes: self.response_header_bytes + other.response_header_bytes,
            response_header_bytes_wire: self.response_header_bytes_wire
                + other.response_header_bytes_wire,
        }
    }
}

/// `stats` plus the header bytes of one more connection.
pub(super) fn with_wire_bytes(mut stats: Stats, bytes: HeaderBytes) -> Stats {
    stats.request_header_bytes_wire += bytes.sent;
    stats.response_header_bytes_wire += bytes.received;
    stats
}
