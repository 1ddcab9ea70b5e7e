//! What one page load came to. (Contract: names of the JSON fields are fixed by the issue.)

use serde::Serialize;
use spdy_clock::Instant;

/// One load of one page over one protocol and one network. Times are virtual milliseconds, exact to the microsecond.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    pub replica: String,
    /// `http`, `https`, `spdy`, `h2`.
    pub protocol: String,
    pub network: String,
    pub seed: u64,
    pub dom_content_loaded_ms: f64,
    pub load_ms: f64,
    /// First packet to last packet.
    pub time_on_wire_ms: f64,
    pub connections: u64,
    pub requests: u64,
    pub packets_up: u64,
    pub packets_down: u64,
    pub bytes_up: u64,
    pub bytes_down: u64,
    /// As HTTP/1.1 text.
    pub request_header_bytes: u64,
    /// As they crossed the wire.
    pub request_header_bytes_wire: u64,
    pub response_header_bytes: u64,
    pub response_header_bytes_wire: u64,
    /// Exchanges that failed, with their cause.
    pub failures: Vec<String>,
    #[serde(skip)]
    pub waterfall: Vec<Row>,
}

/// A phase of a row: from, to.
pub type Span = (Instant, Instant);

/// One resource in the waterfall. `None`: the phase did not happen for it (connection reused, name known).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub url: String,
    pub kind: spdy_page::replica::Kind,
    pub status: u16,
    /// Number of the connection it travelled on, from 0 in the order of their opening.
    pub connection: usize,
    pub priority: u8,
    pub body_bytes: u64,
    /// When the page wanted it.
    pub wanted: Instant,
    pub dns: Option<Span>,
    pub connect: Option<Span>,
    pub tls: Option<Span>,
    /// Request written, first byte of the response, last byte.
    pub sent: Instant,
    pub first_byte: Instant,
    pub done: Instant,
}
