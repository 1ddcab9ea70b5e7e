//! The result of one page load. The names of the JSON fields are fixed: `spdy race --json` prints them.

use std::time::Duration;

use serde::Serialize;
use spdy_clock::Instant;

/// One load of one page over one protocol and one network.
///
/// Times are virtual milliseconds from the start of the load, exact to the nanosecond. Packets and bytes are
/// counted as a capture on the client's machine would: IP packets with their headers, name look-ups, TCP
/// handshakes and closing included.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Load {
    /// Name of the replica.
    pub replica: String,
    /// Its name among [those of a race](crate::options::RaceProtocol::ALL).
    pub protocol: String,
    /// Name of the network, or its settings.
    pub network: String,
    /// The seed of this very load.
    pub seed: u64,
    /// When DOMContentLoaded was reached.
    pub dom_content_loaded_ms: f64,
    /// When load was reached.
    pub load_ms: f64,
    /// First packet to last packet.
    pub time_on_wire_ms: f64,
    /// Connections that were begun, of TCP or QUIC.
    pub connections: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Packets from the client.
    pub packets_up: u64,
    /// Packets to the client.
    pub packets_down: u64,
    /// Bytes of IP from the client.
    pub bytes_up: u64,
    /// Bytes of IP to the client.
    pub bytes_down: u64,
    /// Heads of all requests as HTTP/1.1 text.
    pub request_header_bytes: u64,
    /// Heads of all requests as they crossed the wire, inside TLS.
    pub request_header_bytes_wire: u64,
    /// Heads of all responses as HTTP/1.1 text.
    pub response_header_bytes: u64,
    /// Heads of all responses as they crossed the wire, inside TLS.
    pub response_header_bytes_wire: u64,
    /// Exchanges that failed, or whose bytes were not the replica's, with their cause.
    pub failures: Vec<String>,
    /// One row a resource, in the order in which the page needed them.
    #[serde(skip)]
    pub waterfall: Vec<WaterfallRow>,
}

/// A phase of a row: from, to.
pub type Span = (Instant, Instant);

/// One resource in the waterfall. `None`: the phase did not happen for it (connection reused, name resolved before).
///
/// The phases of a connection stand in the row of the first exchange on it. They may have begun before the page
/// needed that exchange: another exchange opened the connection, and a free one became available sooner.
#[derive(Clone, Debug, PartialEq)]
pub struct WaterfallRow {
    /// The address as the page names it.
    pub url: String,
    /// What it is to the page.
    pub kind: spdy_page::replica::Kind,
    /// Status of the response; 0 if there was none.
    pub status: u16,
    /// Number of the connection it travelled on, from 0 in the order of their opening.
    pub connection: usize,
    /// 0 to 7, 0 the most urgent.
    pub priority: u8,
    /// Length of the body as it was received, with its codings.
    pub body_bytes: u64,
    /// When the page needed it, before any delay by a scheduler or a connection.
    pub needed: Instant,
    /// The look-up of its host's name.
    pub dns: Option<Span>,
    /// The TCP handshake of its connection; of QUIC all of it, TLS included.
    pub connect: Option<Span>,
    /// The TLS handshake of its connection.
    pub tls: Option<Span>,
    /// The request was handed to the connection.
    pub sent: Instant,
    /// The head of the response was complete.
    pub first_byte: Instant,
    /// The last byte was there, or the exchange failed.
    pub done: Instant,
}

impl WaterfallRow {
    /// The same row, with times from an origin that is `origin` later.
    pub(crate) fn since(self, origin: Duration) -> Self {
        let at =
            |instant: Instant| Instant::ZERO + (instant - Instant::ZERO).saturating_sub(origin);
        let span = |(from, to): Span| (at(from), at(to));
        Self {
            needed: at(self.needed),
            dns: self.dns.map(span),
            connect: self.connect.map(span),
            tls: self.tls.map(span),
            sent: at(self.sent),
            first_byte: at(self.first_byte),
            done: at(self.done),
            ..self
        }
    }
}
