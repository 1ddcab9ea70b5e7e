//! When the phases of an exchange happened.

use spdy_clock::Instant;

/// From, to.
pub type Span = (Instant, Instant);

/// The phases of one exchange; put into the extensions of its response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timings {
    /// Number of the connection, from 0 in the order in which this client opened them.
    pub connection: usize,
    /// Name look-up that this exchange waited for; `None` if the name was known.
    pub dns: Option<Span>,
    /// TCP handshake of the connection, if this exchange is the first on it.
    pub connect: Option<Span>,
    /// TLS handshake of the connection, if this exchange is the first on it.
    pub tls: Option<Span>,
    /// Request handed to the connection.
    pub sent: Instant,
    /// Head of the response complete.
    pub first_byte: Instant,
}
