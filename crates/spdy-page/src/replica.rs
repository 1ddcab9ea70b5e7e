//! What was exchanged. (Contract: fields may grow, names stay.)

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use url::Url;

/// What a resource is to the page: it decides priority and what it blocks.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind { Document, Stylesheet, Script, Font, Image, Media, Fetch, Other }

/// How an exchange came to be asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Initiator {
    /// The page itself.
    Navigation,
    /// Named in the text of another exchange (index), at this offset of its body as transferred, if known.
    Resource { index: usize, at_byte: Option<u64> },
    /// A redirect from another exchange.
    Redirect { index: usize },
    Unknown,
}

/// One request and its response, bytes as they were.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub url: Url,
    pub method: http::Method,
    /// The address that answered, if recorded.
    pub address: Option<IpAddr>,
    /// Literal head, request line to blank line.
    pub request_head: Bytes,
    /// Literal head, status line to blank line.
    pub response_head: Bytes,
    /// Body with transfer-coding removed and content-encoding kept.
    pub body: Bytes,
    /// False if `body` is filler of the recorded size and kind.
    pub body_is_real: bool,
    pub kind: Kind,
    pub initiator: Initiator,
    /// From the start of the page load to the request, as recorded.
    pub started: Option<Duration>,
    /// As recorded: request sent to first byte, and first to last byte.
    pub wait: Option<Duration>,
    pub receive: Option<Duration>,
}

/// A page and everything it fetched.
#[derive(Clone, Debug)]
pub struct Replica {
    pub name: String,
    /// Where it came from and under which licence, for people.
    pub source: String,
    /// The index of the page's own document (after redirects: where the load starts).
    pub start: usize,
    pub exchanges: Vec<Exchange>,
    pub dom_content_loaded: Option<Duration>,
    pub load: Option<Duration>,
}
