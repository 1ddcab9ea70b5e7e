//! The exchanges of a page: every request and response of its load.
//!
//! A replica has only data that a load put on the wire: literal heads, bodies as transferred (with content coding), the address of
//! each host, and the time of each request. URLs are never rewritten.
//!
//! ```text
//! Replica ── exchanges[start] ── the page's own document
//!    │
//!    └────── exchanges[i]
//!              request_head   "GET / HTTP/1.1\r\n … \r\n\r\n"
//!              response_head  "HTTP/1.1 200 OK\r\n … \r\n\r\n"
//!              body           as transferred, without chunk framing
//!              initiator      what caused the request
//! ```
//!
//! `archive.rs` defines its file, and `graph/` the dependencies between exchanges.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::head;
use crate::replica::observation::{Failure, Observation, Paints};

/// The kind of a resource: it decides its priority and what it blocks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// HTML: the page itself, or a frame in it.
    Document,
    /// CSS.
    Stylesheet,
    /// JavaScript.
    Script,
    /// A web font.
    Font,
    /// An image of any format.
    Image,
    /// Audio or video.
    Media,
    /// Data that a script requested (XMLHttpRequest, fetch, beacons).
    Fetch,
    /// None of these, or unknown.
    Other,
}

/// The cause of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Initiator {
    /// The page itself.
    Navigation,
    /// A reference in the text of another exchange.
    Resource {
        /// Index of that exchange in [`Replica::exchanges`].
        index: usize,
        /// Offset in its body as transferred at which the reference was complete, if recorded.
        at_byte: Option<u64>,
    },
    /// A redirect from another exchange.
    Redirect {
        /// Index of the redirecting exchange in [`Replica::exchanges`].
        index: usize,
    },
    /// Not recorded. `graph/` infers it.
    Unknown,
}

/// One request and its response, with their literal bytes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Exchange {
    /// The requested URL, with scheme and host; never rewritten.
    pub url: Url,
    /// The method of the request.
    pub method: http::Method,
    /// The address that responded, if recorded.
    pub address: Option<IpAddr>,
    /// Literal head, from request line to blank line, both included.
    pub request_head: Bytes,
    /// Literal head, from status line to blank line, both included.
    pub response_head: Bytes,
    /// Body without transfer coding, with content coding.
    pub body: Bytes,
    /// False if `body` is filler of the recorded size and kind.
    pub body_is_real: bool,
    /// Its kind.
    pub kind: Kind,
    /// The cause of the request.
    pub initiator: Initiator,
    /// From the start of the page load until the page requested it, as recorded.
    pub started: Option<Duration>,
    /// From there until the request was sent (waiting for a connection, name, connect, TLS), as recorded.
    pub queued: Option<Duration>,
    /// From sending the request to the first byte of the response, as recorded.
    pub wait: Option<Duration>,
    /// From the first to the last byte of the response, as recorded.
    pub receive: Option<Duration>,
    /// Other observations of a recorder in a live browser.
    pub observed: Observation,
}

impl Exchange {
    /// A GET with the response 200 and `body`, with heads as short as HTTP/1.1 allows.
    ///
    /// For content that was not recorded: a served directory, a test.
    pub fn synthetic(url: Url, kind: Kind, content_type: &str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let host = head::authority(&url);
        let request_head = head::synthesize(
            &format!("GET {} HTTP/1.1", head::target(&url)),
            [("Host", host.as_str())],
        );
        let length = body.len().to_string();
        let fields = [
            ("Content-Type", content_type),
            ("Content-Length", length.as_str()),
        ];
        Self {
            response_head: head::synthesize("HTTP/1.1 200 OK", fields),
            url,
            method: http::Method::GET,
            address: None,
            request_head,
            body,
            body_is_real: true,
            kind,
            initiator: Initiator::Unknown,
            started: None,
            queued: None,
            wait: None,
            receive: None,
            observed: Observation::default(),
        }
    }

    /// Recorded first byte of the response, from the start of the page load.
    ///
    /// `None` if its start was not recorded; other missing times count as zero.
    pub fn first_byte(&self) -> Option<Duration> {
        let parts = [
            self.started?,
            self.queued.unwrap_or_default(),
            self.wait.unwrap_or_default(),
        ];
        Some(
            parts
                .into_iter()
                .fold(Duration::ZERO, Duration::saturating_add),
        )
    }

    /// The status of the response; `None` if its head is not an HTTP response.
    pub fn status(&self) -> Option<u16> {
        head::Head::parse(&self.response_head).and_then(|head| head.status())
    }

    /// Recorded end of the exchange, from the start of the page load.
    ///
    /// `None` if its start was not recorded; other missing times count as zero.
    pub fn finished(&self) -> Option<Duration> {
        Some(
            self.first_byte()?
                .saturating_add(self.receive.unwrap_or_default()),
        )
    }

    /// True if a page of `document` requests it without credentials: a GET by CORS of another host, as fonts are. Recordings that lack
    /// `Origin` do not show other requests by CORS. Ports and schemes do not matter, because loads change them.
    pub fn is_without_credentials(&self, document: &Url) -> bool {
        let head = head::Head::parse(&self.request_head);
        let has = |name| head.as_ref().is_some_and(|head| head.value(name).is_some());
        self.method == http::Method::GET
            && self.url.host() != document.host()
            && (self.kind == Kind::Font || has("origin"))
            && !has("cookie")
    }

    /// The URL as requests compare it, without its fragment.
    pub(crate) fn key(&self) -> &str {
        without_fragment(self.url.as_str())
    }
}

/// `url` up to its `#`.
pub(crate) fn without_fragment(url: &str) -> &str {
    url.split_once('#').map_or(url, |(before, _)| before)
}

/// A page with all its exchanges.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Replica {
    /// A short name for tables: the shipped name, the file's stem, or the page's host.
    pub name: String,
    /// Its origin and licence, for people.
    pub source: String,
    /// The index of the page's own document, after redirects.
    ///
    /// A redirect that led to it is a separate exchange, and the load begins there: see
    /// [`Trigger::Start`](crate::graph::Trigger::Start).
    pub start: usize,
    /// All exchanges, in the order of their requests.
    pub exchanges: Vec<Exchange>,
    /// When the page load began, if recorded.
    pub recorded: Option<Timestamp>,
    /// From the start of the load to DOMContentLoaded, as recorded.
    pub dom_content_loaded: Option<Duration>,
    /// From the start of the load to the load event, as recorded.
    pub load: Option<Duration>,
    /// What was painted when, as recorded.
    pub paints: Paints,
    /// Requests of the recorded load without a response, in the order in which they were made.
    pub failures: Vec<Failure>,
}

impl Replica {
    /// True if it has times of evaluation, as recordings by this project do. Then its other times are those of the browser, too.
    #[must_use]
    pub fn has_evaluation_times(&self) -> bool {
        let mut exchanges = self.exchanges.iter();
        exchanges.any(|exchange| exchange.observed.compute.is_some())
    }

    /// The page's own document.
    ///
    /// # Panics
    ///
    /// If [`start`](Self::start) is not the index of an exchange; readers never return such a replica.
    pub fn document(&self) -> &Exchange {
        let count = self.exchanges.len();
        self.exchanges
            .get(self.start)
            .unwrap_or_else(|| panic!("start {} of {count} exchanges", self.start))
    }

    /// Hosts (with ports that are not the scheme's default), in the order of their first exchange.
    pub fn hosts(&self) -> Vec<String> {
        let mut seen = HashSet::new();
        let hosts = self
            .exchanges
            .iter()
            .map(|exchange| head::authority(&exchange.url));
        hosts.filter(|host| seen.insert(host.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fonts_and_cors_requests_to_other_hosts_have_no_credentials() {
        let document = "https://a.test/".parse().unwrap();
        let has_none = |url: &str, kind: Kind, fields: &str| {
            let head = format!("GET / HTTP/1.1\r\n{fields}\r\n").into_bytes();
            let exchange = Exchange {
                request_head: head.into(),
                ..Exchange::synthetic(url.parse().unwrap(), kind, "text/plain", "")
            };
            exchange.is_without_credentials(&document)
        };
        let cors = "Origin: https://a.test\r\n";
        assert!(has_none("http://b.test/f", Kind::Font, ""));
        assert!(!has_none("http://a.test/f", Kind::Font, cors));
        assert!(has_none("http://b.test/s", Kind::Script, cors));
        assert!(!has_none("http://b.test/s", Kind::Script, ""));
        let with_cookie = format!("{cors}Cookie: a=b\r\n");
        assert!(!has_none("http://b.test/s", Kind::Script, &with_cookie));
    }
}
