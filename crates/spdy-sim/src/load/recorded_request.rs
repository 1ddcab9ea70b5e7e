//! The request of a recorded exchange for a load: with another scheme, an empty cache, and its own connection.
//!
//! An exchange with a partial response (206) is requested with the range of that response, because the replica has only that part.
//! A load without an accelerator requests [more](crate::load::cancelled_transfer) if the browser cancelled. Any other `Range` is omitted.
//!
//! The head is read once, and not in each load of its page.

use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use spdy::body::Body;
use spdy_page::head::{self, Head};
use spdy_page::partial_content::ContentRange;
use spdy_page::replica::Exchange;
use url::Url;

/// Header fields of a connection, of the recorded protocol, of the request line in HTTP/2 and SPDY, or of a cache that is not empty.
fn is_left_out(name: &str) -> bool {
    const LEFT_OUT: [&str; 13] = [
        "host",
        "connection",
        "proxy-connection",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "content-length",
        "expect",
        "range",
        "priority",
    ];
    name.starts_with(':') || name.starts_with("if-") || LEFT_OUT.contains(&name)
}

/// The request of a recorded exchange, as far as it is the same in all loads.
#[derive(Debug)]
pub(crate) struct RecordedRequest {
    method: Method,
    /// By `http` and by `https`; an error if the exchange cannot be requested.
    uris: [Result<Uri, String>; 2],
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl RecordedRequest {
    /// Reads the request of `exchange`.
    pub(crate) fn of(exchange: &Exchange) -> Self {
        let recorded = Head::parse(&exchange.request_head);
        let field = |(name, value): (&[u8], &[u8])| {
            let name = HeaderName::from_bytes(name).ok()?;
            let value = HeaderValue::from_bytes(value).ok()?; // recordings contain fields that no client would send
            (!is_left_out(name.as_str())).then_some((name, value))
        };
        let fields = recorded.iter().flat_map(Head::fields).filter_map(field);
        let range = range_of(exchange).map(|range| (header::RANGE, range));
        Self {
            method: exchange.method.clone(),
            uris: [false, true].map(|secure| uri_of(&exchange.url, secure)),
            fields: fields.chain(range).collect(),
        }
    }

    /// Builds it with `https` if `secure`, else with `http`.
    ///
    /// # Errors
    ///
    /// Why the exchange cannot be requested.
    pub(crate) fn build(&self, secure: bool) -> Result<Request<Body>, String> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = self.uris[usize::from(secure)].clone()?;
        *request.method_mut() = self.method.clone();
        let headers = request.headers_mut();
        headers.reserve(self.fields.len());
        for (name, value) in &self.fields {
            // A copy: loads on several threads would otherwise count references to the same bytes.
            let value = HeaderValue::from_bytes(value.as_bytes());
            headers.append(name, value.expect("the bytes of a value are valid"));
        }
        Ok(request)
    }
}

/// Builds the request of `exchange`, with `https` if `secure`, else with `http`.
///
/// # Errors
///
/// Why `exchange` cannot be requested.
pub fn request_of(exchange: &Exchange, secure: bool) -> Result<Request<Body>, String> {
    RecordedRequest::of(exchange).build(secure)
}

/// The range of `exchange`, if its status is 206. If the response does not state it, the requested range.
fn range_of(exchange: &Exchange) -> Option<HeaderValue> {
    if exchange.status() != Some(206) || exchange.method != Method::GET {
        return None;
    }
    let held = ContentRange::of(exchange).filter(|_| !exchange.body.is_empty());
    let held = held.and_then(|range| {
        let last = range.first + exchange.body.len() as u64 - 1;
        let range = format!("bytes={}-{}", range.first, last.min(range.last));
        HeaderValue::try_from(range).ok()
    });
    let other = || {
        let head = Head::parse(&exchange.request_head)?;
        HeaderValue::from_bytes(head.values("range").next()?).ok()
    };
    held.or_else(other)
        .or(Some(HeaderValue::from_static("bytes=0-")))
}

/// The URI of `url`, with `https` if `secure`, else with `http`.
pub(crate) fn uri_of(url: &Url, secure: bool) -> Result<Uri, String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "scheme {:?} needs no request over a network",
            url.scheme()
        ));
    }
    Uri::builder()
        .scheme(if secure { "https" } else { "http" })
        .authority(head::authority(url))
        .path_and_query(head::target(url))
        .build()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use spdy_page::replica::Kind;

    use super::*;

    fn exchange(url: &str, head: &'static [u8]) -> Exchange {
        let url = Url::parse(url).unwrap();
        Exchange {
            request_head: Bytes::from_static(head),
            ..Exchange::synthetic(url, Kind::Image, "image/png", "x")
        }
    }

    #[test]
    fn the_scheme_is_exchanged_and_nothing_else_of_the_url() {
        let url = Url::parse("https://a.test:8443/x%20y?q=|#part").unwrap();
        assert_eq!(
            uri_of(&url, false).unwrap().to_string(),
            "http://a.test:8443/x%20y?q=|"
        );
        let url = Url::parse("http://a.test/").unwrap();
        assert_eq!(uri_of(&url, true).unwrap().to_string(), "https://a.test/");
        assert!(uri_of(&Url::parse("ftp://a.test/").unwrap(), true).is_err());
    }

    #[test]
    fn recorded_headers_are_sent_except_connection_and_cache_headers() {
        let head = b"GET / HTTP/1.1\r\nHost: b.test\r\nCookie: a=1\r\nConnection: keep-alive\r\n\
            If-None-Match: \"1\"\r\n:path: /\r\nAccept: x\r\nCookie: b=2\r\n\r\n";
        let request = request_of(&exchange("http://a.test/", head), true).unwrap();
        let fields: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            fields,
            [("cookie", "a=1"), ("cookie", "b=2"), ("accept", "x")]
        );
    }

    #[test]
    fn only_a_recorded_part_is_requested_by_a_range() {
        let head = b"GET / HTTP/1.1\r\nRange: bytes=0-\r\n\r\n";
        for (response, expected) in [
            ("200 OK\r\n", None),
            (
                "206 Part\r\nContent-Range: bytes 7-7/9\r\n",
                Some("bytes=7-7"),
            ),
            (
                "206 Part\r\nContent-Range: bytes 7-8/9\r\n",
                Some("bytes=7-7"),
            ),
            ("206 Part\r\n", Some("bytes=0-")),
        ] {
            let mut exchange = exchange("http://a.test/", head);
            exchange.response_head = Bytes::from(format!("HTTP/1.1 {response}\r\n"));
            let request = request_of(&exchange, true).unwrap();
            let range = request.headers().get("range");
            let range = range.map(|range| range.to_str().unwrap());
            assert_eq!(range, expected, "{response}");
        }
    }
}
