//! Observations of an exchange, or of a failed request, that need a recorder in a live browser.
//!
//! They are not needed to load or to serve a page. They describe the recorded load, and replace two guesses of `graph/inference.rs`:
//! the initiator, and the evaluation time.

use std::time::Duration;

use bytes::Bytes;

/// Observations of one exchange. Fields that were not observed are absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Observation {
    /// The protocol by its ALPN name: `http/1.1`, `h2`, `h3`. Heads are stored as HTTP/1.1 in any case.
    pub protocol: Option<String>,
    /// The browser's name of the request's priority: `VeryHigh`, `High`, `Medium`, `Low`, `VeryLow`.
    pub priority: Option<String>,
    /// How long after the page's request the browser raised its priority to `High` or more, as it does with images in the window.
    pub raised_after: Option<Duration>,
    /// Number of its connection, from 0 in the order of first use.
    pub connection: Option<u32>,
    /// Part of [`queued`](crate::replica::Exchange::queued) for the name lookup.
    pub dns: Option<Duration>,
    /// Part of [`queued`](crate::replica::Exchange::queued) for connecting, including TLS.
    pub connect: Option<Duration>,
    /// Part of [`connect`](Self::connect) for TLS.
    pub tls: Option<Duration>,
    /// Total time that the browser took to evaluate the script, to parse the style sheet, or to evaluate the inline scripts of the document.
    pub compute: Option<Duration>,
    /// How long the server computed before it responded, if the recorder knows its server. Otherwise
    /// [`Replica::think_times`](crate::replica::Replica::think_times) estimates it.
    pub think_time: Option<Duration>,
    /// Body of the request as sent, including chunk framing.
    pub request_body: Bytes,
    /// Why the page did not get this response, or only a part of it, in the browser's words: `net::ERR_ABORTED`.
    pub refused: Option<String>,
}

/// A request without a response: blocked, not resolved, refused or cut off.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The method of the request.
    pub method: String,
    /// The requested URL.
    pub url: String,
    /// Why there is no response, in the browser's words: `net::ERR_NAME_NOT_RESOLVED`, `blocked: csp`.
    pub error: String,
    /// From the start of the page load until the page requested it.
    pub started: Option<Duration>,
}

/// Paints of the recorded load. Times count from the start of the page load.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Paints {
    /// The first text or image.
    pub first_contentful: Option<Duration>,
    /// The largest text or image of the window.
    pub largest_contentful: Option<LargestPaint>,
}

/// The largest contentful paint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LargestPaint {
    /// When it was painted.
    pub at: Duration,
    /// The URL of the image; `None` for text, and for an image without a request.
    pub url: Option<String>,
}

impl Observation {
    /// True if its protocol has many requests on one connection at once: HTTP/2, HTTP/3 or SPDY.
    pub(crate) fn has_streams(&self) -> bool {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let names = ["h2", "h3", "spdy"];
        names.iter().any(|name| protocol.starts_with(name))
    }

    /// True if its protocol is HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.protocol.as_deref() == Some("h2")
    }
}
