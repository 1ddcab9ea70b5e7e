//! A response in memory: status, headers, body, and the values that conditional requests are compared with.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use spdy_page::head::Head;
use spdy_page::partial_content::Parts;
use spdy_page::replica::Exchange;

/// Recorded headers that are not replayed: they concern the recorded connection, or the server sets them itself.
const NOT_REPLAYED: [HeaderName; 10] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    // It states another port and protocol of the recorded server, which clients would try.
    HeaderName::from_static("alternate-protocol"),
];

/// A response in memory. Cloning it copies no body.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// Status of the response to a request without conditions or ranges.
    pub status: StatusCode,
    /// Headers, with Content-Length if the status allows a body. `Date` is empty if none was recorded: this keeps its position, and each
    /// response sets its value.
    pub headers: HeaderMap,
    /// The body, still in its content coding.
    pub body: Bytes,
    /// The recorded think time of the server: see [`Replica::think_times`](spdy_page::replica::Replica::think_times).
    pub think_time: Duration,
    /// The index of its exchange in the replica; `None` for a file.
    pub exchange: Option<usize>,
    /// The parsed `Last-Modified`.
    pub(crate) modified: Option<SystemTime>,
    /// Set if it was recorded as a response to a Range request (206).
    pub(crate) recorded_part: Option<RecordedPart>,
}

/// The recorded part of a representation, for a response that was recorded as 206.
#[derive(Clone, Debug)]
pub(crate) enum RecordedPart {
    /// These byte ranges.
    Ranges(Parts),
    /// All bytes: the response was converted to a 200.
    Complete,
    /// Its Content-Range cannot be parsed (several ranges, for example), so it is replayed for every request with a Range.
    Unreadable,
}

impl StoredResponse {
    /// Creates a response of `headers` and `body`. Sets Content-Length to the body's length, and adds an empty `Date` if there is none.
    #[must_use]
    pub fn new(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Self {
        headers.remove(header::CONTENT_LENGTH);
        if may_have_body(status) {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        headers
            .entry(header::DATE)
            .or_insert(HeaderValue::from_static(""));
        let modified = headers.get(header::LAST_MODIFIED);
        let modified =
            modified.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        Self {
            status,
            headers,
            body,
            think_time: Duration::ZERO,
            exchange: None,
            modified,
            recorded_part: None,
        }
    }

    /// Creates the response that replays `exchange`.
    ///
    /// Headers that concern the recorded connection are left out, and Content-Length is set to the body's length. All other headers and
    /// the body are unchanged. `None` if the recorded head is not an HTTP response, or is an interim one (1xx).
    #[must_use]
    pub fn from_exchange(exchange: &Exchange) -> Option<Self> {
        let head = Head::parse(&exchange.response_head)?;
        let status = StatusCode::from_u16(head.status()?).ok()?;
        if status.is_informational() {
            return None;
        }
        let connection_headers = connection_options(&head);
        let mut headers = HeaderMap::new();
        for (name, value) in head.fields() {
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_bytes(value);
            // Clients could not parse a header that `http` cannot represent.
            let (Ok(name), Ok(value)) = (name, value) else {
                continue;
            };
            if !NOT_REPLAYED.contains(&name) && !connection_headers.contains(&name) {
                headers.append(name, value);
            }
        }
        let body = match may_have_body(status) {
            true => exchange.body.clone(),
            false => Bytes::new(),
        };
        let mut response = Self::new(status, headers, body);
        if status == StatusCode::PARTIAL_CONTENT && exchange.method == Method::GET {
            let parts = Parts::of(exchange);
            response.recorded_part =
                Some(parts.map_or(RecordedPart::Unreadable, RecordedPart::Ranges));
        }
        Some(response)
    }

    /// Adds the byte ranges of `other`, a response for the same representation, if both were recorded as 206.
    pub(crate) fn merge_parts(&mut self, other: &Self) {
        if let (Some(RecordedPart::Ranges(parts)), Some(RecordedPart::Ranges(more))) =
            (&mut self.recorded_part, &other.recorded_part)
        {
            parts.add(more);
        }
    }

    /// Converts a 206 whose ranges cover the whole representation to a 200. To be called after all exchanges were merged.
    pub(crate) fn complete(&mut self) {
        let Some(RecordedPart::Ranges(parts)) = &mut self.recorded_part else {
            return;
        };
        parts.merge();
        let Some(complete_body) = parts.whole().cloned() else {
            return;
        };
        self.status = StatusCode::OK;
        self.headers.remove(header::CONTENT_RANGE);
        let length = HeaderValue::from(complete_body.len());
        self.headers.insert(header::CONTENT_LENGTH, length);
        self.body = complete_body;
        self.recorded_part = Some(RecordedPart::Complete);
    }
}

/// The header names that are listed in Connection headers (RFC 9110 §7.6.1).
fn connection_options(head: &Head<'_>) -> Vec<HeaderName> {
    head.values("connection")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// True if a response with `status` can have a body (RFC 9110 §6.4.1).
pub(crate) fn may_have_body(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
}
