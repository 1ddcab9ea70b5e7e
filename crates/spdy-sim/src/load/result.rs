//! The result of one page load. The names of the JSON fields are fixed: `spdy race --json` prints them.

use std::time::Duration;

use serde::Serialize;
use spdy_clock::Instant;

use crate::qlog::Qlog;

/// One load of one page over one protocol and one network.
///
/// Times are virtual milliseconds from the start of the load, exact to the nanosecond. Packets and bytes are counted as in a capture
/// on the client's machine: IP packets with their headers, including name lookups, TCP handshakes and closing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Load {
    /// Name of the replica.
    pub replica: String,
    /// Name of the protocol, one of [those of a race](crate::options::RaceProtocol::ALL).
    pub protocol: String,
    /// Name of the network, or its settings.
    pub network: String,
    /// The seed of this load.
    pub seed: u64,
    /// Time of DOMContentLoaded.
    pub dom_content_loaded_ms: f64,
    /// Time of the load event.
    pub load_ms: f64,
    /// Time of the first contentful paint, if the page has painted.
    pub fcp_ms: Option<f64>,
    /// Time of the largest contentful paint.
    pub lcp_ms: Option<f64>,
    /// From the first packet to the last packet.
    pub time_on_wire_ms: f64,
    /// Number of started connections, of TCP or QUIC.
    pub connections: u64,
    /// Number of sent requests.
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
    /// Heads of all requests on the wire, inside TLS.
    pub request_header_bytes_wire: u64,
    /// Heads of all responses as HTTP/1.1 text.
    pub response_header_bytes: u64,
    /// Heads of all responses on the wire, inside TLS.
    pub response_header_bytes_wire: u64,
    /// Exchanges that failed, or whose bytes differ from the replica's, with their causes.
    pub failures: Vec<String>,
    /// One row per resource, in the order in which the page needed them.
    #[serde(skip)]
    pub waterfall: Vec<WaterfallRow>,
    /// The QUIC connections of the client, if [`Options::qlog`](crate::options::Options::qlog) requests their logs.
    #[serde(skip)]
    pub qlogs: Vec<Qlog>,
}

/// A phase of a row: from, to.
pub type Span = (Instant, Instant);

/// One resource in the waterfall. A phase is `None` if it did not happen: the connection was reused, or the name was already
/// resolved.
///
/// The phases of a connection are in the row of its first exchange. They may have begun before the page needed that exchange: another
/// exchange opened the connection, and a free one became available sooner.
#[derive(Clone, Debug, PartialEq)]
pub struct WaterfallRow {
    /// The URL as the page names it.
    pub url: String,
    /// Its kind.
    pub kind: spdy_page::replica::Kind,
    /// Status of the response; 0 if there was none.
    pub status: u16,
    /// Number of its connection, from 0 in the order of opening; those of frames of other sites come last.
    pub connection: usize,
    /// From 0 to 7; 0 is the most urgent.
    pub priority: u8,
    /// Length of the received body, with its codings.
    pub body_bytes: u64,
    /// When the page needed it, before any delay by a scheduler or a connection.
    pub needed: Instant,
    /// The lookup of its host's name.
    pub dns: Option<Span>,
    /// The TCP handshake of its connection; with QUIC the whole handshake, including TLS.
    pub connect: Option<Span>,
    /// The TLS handshake of its connection.
    pub tls: Option<Span>,
    /// The request was handed to the connection.
    pub sent: Instant,
    /// The head of the response was complete.
    pub first_byte: Instant,
    /// The last byte arrived, or the exchange failed.
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
