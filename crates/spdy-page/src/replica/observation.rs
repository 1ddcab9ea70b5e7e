//! What only a recorder in a live browser can observe, of an exchange and of a failed request.
//!
//! None of it is needed to load or to serve a page. It records how the page was loaded, and replaces two guesses of
//! `graph/inference.rs`: the initiator, and how long the evaluation took.

use std::time::Duration;

use bytes::Bytes;

/// How one exchange was observed to go. Fields that were not observed are absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observation {
    /// The protocol by its ALPN name: `http/1.1`, `h2`, `h3`. Heads are stored as HTTP/1.1 in any case.
    pub protocol: Option<String>,
    /// The browser's word for the priority of the request: `VeryHigh`, `High`, `Medium`, `Low`, `VeryLow`.
    pub priority: Option<String>,
    /// Number of the connection that carried it, from 0 in the order of first use.
    pub connection: Option<u32>,
    /// Part of [`queued`](crate::replica::Exchange::queued) that looked up the name of the host.
    pub dns: Option<Duration>,
    /// Part of [`queued`](crate::replica::Exchange::queued) that connected, TLS included.
    pub connect: Option<Duration>,
    /// Part of [`connect`](Self::connect) that was TLS.
    pub tls: Option<Duration>,
    /// Time that the browser took to evaluate the script or to parse the sheet, all times together.
    pub compute: Option<Duration>,
    /// Body of the request as it was sent, chunk framing included.
    pub request_body: Bytes,
    /// Why the page did not get this answer, or not all of it, in the browser's words: `net::ERR_ABORTED`.
    pub refused: Option<String>,
}

/// A request without a response: blocked, not resolved, refused, cut off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The method of the request.
    pub method: String,
    /// The requested URL.
    pub url: String,
    /// Why nothing came, in the browser's words: `net::ERR_NAME_NOT_RESOLVED`, `blocked: csp`.
    pub error: String,
    /// From the start of the page load until the page requested it.
    pub started: Option<Duration>,
}
