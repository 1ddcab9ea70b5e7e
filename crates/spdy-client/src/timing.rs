//! The times of the phases of an exchange.

use spdy_clock::Instant;

/// Start and end.
pub type Span = (Instant, Instant);

/// The phases of one exchange; put into the extensions of its response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timings {
    /// Number of the connection, from 0 in the order in which this client opened them.
    pub connection: usize,
    /// Name lookup that this exchange waited for; `None` if the name was cached.
    pub dns: Option<Span>,
    /// TCP handshake of the connection, if this exchange is the first on it.
    pub connect: Option<Span>,
    /// TLS handshake of the connection, if this exchange is the first on it.
    pub tls: Option<Span>,
    /// When the request was passed to the connection.
    pub sent: Instant,
    /// When the head of the response was complete.
    pub first_byte: Instant,
}
