//! A response in memory: status, headers, body, and the values that conditional requests are compared with.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use spdy_page::head::Head;
use spdy_page::partial_content::Parts;
use spdy_page::replica::Exchange;

/// Headers that belong to one connection of the past, or that the server counts for itself.
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
    // It would lead clients to a server of 2013.
    HeaderName::from_static("alternate-protocol"),
];

/// A response in memory. Cloning it copies no body.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// Status of a plain request for it.
    pub status: StatusCode,
    /// Headers, content-length among them where there is a body. `Date` is empty where none was recorded:
    /// it has its place, and gets its value with each response.
    pub headers: HeaderMap,
    /// The body, content-encoding kept.
    pub body: Bytes,
    /// `Last-Modified`, read.
    pub(crate) modified: Option<SystemTime>,
    /// Set if it was recorded as an answer to a Range request (206).
    pub(crate) recorded_part: Option<RecordedPart>,
}

/// An answer that was recorded as 206.
#[derive(Clone, Debug)]
pub(crate) enum RecordedPart {
    /// Only these bytes are known.
    Some(Parts),
    /// Its Content-Range cannot be read (several ranges, for example): it is replayed to every request with a Range.
    Unreadable,
}

impl StoredResponse {
    /// An answer of `headers` and `body`; content-length is set right, and `Date` has a place.
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
            modified,
            recorded_part: None,
        }
    }

    /// What was recorded: the literal headers but those of the connection, the body as it was.
    ///
    /// `None` if the recorded head is no HTTP response, or an interim one.
    #[must_use]
    pub fn from_exchange(exchange: &Exchange) -> Option<Self> {
        let head = Head::parse(&exchange.response_head)?;
        let status = StatusCode::from_u16(head.status()?).ok()?;
        if status.is_informational() {
            return None;
        }
        let named = connection_options(&head);
        let mut headers = HeaderMap::new();
        for (name, value) in head.fields() {
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_bytes(value);
            // A header that cannot be written today could not be read by anyone either.
            let (Ok(name), Ok(value)) = (name, value) else {
                continue;
            };
            if !NOT_REPLAYED.contains(&name) && !named.contains(&name) {
                headers.append(name, value);
            }
        }
        let body = match may_have_body(status) {
            true => exchange.body.clone(),
            false => Bytes::new(),
        };
        let mut answer = Self::new(status, headers, body);
        if status == StatusCode::PARTIAL_CONTENT && exchange.method == Method::GET {
            let parts = Parts::of(exchange);
            answer.recorded_part = Some(parts.map_or(RecordedPart::Unreadable, RecordedPart::Some));
        }
        Some(answer)
    }

    /// Takes what `other` knows of the same representation, if both were recorded as 206.
    pub(crate) fn merge_parts(&mut self, other: &Self) {
        if let (Some(RecordedPart::Some(parts)), Some(RecordedPart::Some(more))) =
            (&mut self.recorded_part, &other.recorded_part)
        {
            parts.add(more);
        }
    }

    /// After the last exchange: a 206 that holds all bytes becomes an answer of its own right, 200.
    pub(crate) fn complete(&mut self) {
        let Some(RecordedPart::Some(parts)) = &mut self.recorded_part else {
            return;
        };
        parts.merge();
        let Some(whole) = parts.whole().cloned() else {
            return;
        };
        self.status = StatusCode::OK;
        self.headers.remove(header::CONTENT_RANGE);
        let length = HeaderValue::from(whole.len());
        self.headers.insert(header::CONTENT_LENGTH, length);
        self.body = whole;
        self.recorded_part = None;
    }
}

/// Names that a Connection header declares its own (RFC 9110 §7.6.1).
fn connection_options(head: &Head<'_>) -> Vec<HeaderName> {
    head.values("connection")
        .flat_map(|value| value.split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

/// Whether a response of `status` can carry a body (RFC 9110 §6.4.1).
pub(crate) fn may_have_body(status: StatusCode) -> bool {
    !status.is_informational()
        && status != StatusCode::NO_CONTENT
        && status != StatusCode::NOT_MODIFIED
}
