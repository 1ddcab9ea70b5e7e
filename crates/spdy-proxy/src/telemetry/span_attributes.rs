//! Attributes of spans, by the names of OpenTelemetry's semantic conventions for HTTP (*HTTP spans*, stable since 1.23), and `spdy.` for
//! those of a cache.
//!
//! Of a request's fields only `User-Agent` is recorded, and no query of its target unless the operator wants that: both can contain
//! secrets.

use std::borrow::Cow;
use std::net::IpAddr;

use http::{HeaderValue, Method, Response, StatusCode, Uri, Version, header, request};
use spdy::body::Body;
use spdy_cache::cache_status::{CACHE_STATUS, Forward};
use spdy_net::handler::RequestInfo;
use spdy_net::protocol::Protocol;
use spdy_rewrite::reference::page_report::PageReport;

use crate::telemetry::counters::Outcome;
use crate::telemetry::spans::{AttributeValue, OpenSpan};

/// Maximum length of an attribute text from a peer, bytes; the rest is cut off.
pub const TEXT_BYTES: usize = 1024;

const METHOD: &str = "http.request.method";
const METHOD_ORIGINAL: &str = "http.request.method_original";
const RESEND_COUNT: &str = "http.request.resend_count";
const STATUS_CODE: &str = "http.response.status_code";
const PROTOCOL_NAME: &str = "network.protocol.name";
const PROTOCOL_VERSION: &str = "network.protocol.version";
const URL_SCHEME: &str = "url.scheme";
const URL_PATH: &str = "url.path";
const URL_QUERY: &str = "url.query";
const URL_FULL: &str = "url.full";
const SERVER_ADDRESS: &str = "server.address";
const SERVER_PORT: &str = "server.port";
const CLIENT_ADDRESS: &str = "client.address";
const USER_AGENT: &str = "user_agent.original";
/// The outcome of a request, as in metrics.
const OUTCOME: &str = "spdy.cache.outcome";
/// The value of `Cache-Status` (RFC 9211).
const STATUS: &str = "spdy.cache.status";
/// Why an origin is contacted, as `fwd` of `Cache-Status` (RFC 9211 §2.2).
const FORWARD: &str = "spdy.cache.forward";
/// No client waits for it.
const BACKGROUND: &str = "spdy.background";
/// `page` or `sheet`.
const REWRITTEN: &str = "spdy.rewrite.kind";
/// The time of rewriting, without the time that it waited for bytes; ms.
const REWRITING_MS: &str = "spdy.rewrite.busy_ms";
/// References in a page that were proxied.
const REFERENCES_REWRITTEN: &str = "spdy.rewrite.proxied";
/// References in a page that were skipped.
const REFERENCES_UNCHANGED: &str = "spdy.rewrite.skipped";

/// The name of a span: the method if it is registered, because clients may send any other.
pub(crate) fn span_name(method: &Method) -> &'static str {
    known_method_name(method).unwrap_or("HTTP")
}

fn known_method_name(method: &Method) -> Option<&'static str> {
    Some(match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => return None,
    })
}

/// Describes a request that a client at `from` sent over `scheme` and that names `authority`.
pub(crate) fn set_request(
    span: &mut OpenSpan,
    head: &request::Parts,
    scheme: &'static str,
    authority: Option<&str>,
    from: Option<IpAddr>,
) {
    let arrival: Option<RequestInfo> = head.extensions.get().copied();
    of_method(span, &head.method);
    span.set_attribute(URL_SCHEME, static_text(scheme));
    span.set_attribute(URL_PATH, text(head.uri.path()));
    if let Some(query) = head.uri.query().filter(|_| span.records_queries()) {
        span.set_attribute(URL_QUERY, text(query));
    }
    if let Some(authority) = authority {
        of_server(span, authority, scheme);
    }
    let (name, version) = match arrival.map(|arrival| arrival.protocol) {
        Some(Protocol::Spdy(_)) => ("spdy", arrival.map_or("", version_of_spdy)),
        _ => ("http", version_of(head.version)),
    };
    span.set_attribute(PROTOCOL_NAME, static_text(name));
    span.set_attribute(PROTOCOL_VERSION, static_text(version));
    if let Some(from) = from {
        span.set_attribute(
            CLIENT_ADDRESS,
            AttributeValue::Text(from.to_string().into()),
        );
    }
    if let Some(agent) = head.headers.get(header::USER_AGENT) {
        let agent = String::from_utf8_lossy(agent.as_bytes());
        span.set_attribute(USER_AGENT, text(&agent));
    }
}

/// Describes the response to a client.
pub(crate) fn set_response(span: &mut OpenSpan, response: &Response<Body>, outcome: Outcome) {
    span.set_ok();
    of_status(span, response.status());
    if response.status().is_server_error() {
        span.set_error(response.status().as_str().to_owned());
    }
    span.set_attribute(OUTCOME, static_text(outcome.0));
    let cache_status = response.headers().get_all(&CACHE_STATUS).iter().next_back();
    if let Some(cache_status) =
        cache_status.and_then(|cache_status: &HeaderValue| cache_status.to_str().ok())
    {
        span.set_attribute(STATUS, text(cache_status));
    }
}

/// Describes a request to an origin, and its reason; `before` is the number of earlier requests of the same fetch, for example redirects.
pub(crate) fn set_origin_request(
    span: &mut OpenSpan,
    method: &Method,
    uri: &Uri,
    forward: Forward,
    is_background: bool,
    before: u8,
) {
    of_method(span, method);
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    // Without a user and a password.
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let query = uri.query().filter(|_| span.records_queries());
    let (mark, query) = query.map_or(("", ""), |query| ("?", query));
    let full = [scheme, "://", authority, uri.path(), mark, query].concat();
    span.set_attribute(URL_FULL, text(&full));
    of_server(span, authority, scheme);
    span.set_attribute(FORWARD, static_text(forward.token()));
    if is_background {
        span.set_attribute(BACKGROUND, AttributeValue::Bool(true));
    }
    if before > 0 {
        span.set_attribute(RESEND_COUNT, AttributeValue::Int(before.into()));
    }
}

/// Describes the response of an origin, or the label of the error if there is none.
pub(crate) fn set_origin_response(
    span: &mut OpenSpan,
    result: Result<(StatusCode, Version), &'static str>,
) {
    span.set_ok();
    match result {
        Ok((status, version)) => {
            of_status(span, status);
            span.set_attribute(PROTOCOL_VERSION, static_text(version_of(version)));
            if status.is_client_error() || status.is_server_error() {
                span.set_error(status.as_str().to_owned());
            }
        }
        Err(error) => span.set_error(error),
    }
}

/// The result for a page (with a report) or a sheet; `rewriting_ms` is the time that it took.
pub(crate) fn set_rewrite(
    span: &mut OpenSpan,
    kind: &'static str,
    rewriting_ms: f64,
    report: Option<&PageReport>,
) {
    span.set_attribute(REWRITTEN, static_text(kind));
    span.set_attribute(REWRITING_MS, AttributeValue::Float(rewriting_ms));
    if let Some(report) = report {
        let count = |count: usize| AttributeValue::Int(i64::try_from(count).unwrap_or(i64::MAX));
        span.set_attribute(REFERENCES_REWRITTEN, count(report.proxied));
        span.set_attribute(REFERENCES_UNCHANGED, count(report.unchanged_count()));
    }
}

fn of_method(span: &mut OpenSpan, method: &Method) {
    span.set_attribute(
        METHOD,
        static_text(known_method_name(method).unwrap_or("_OTHER")),
    );
    if known_method_name(method).is_none() {
        span.set_attribute(METHOD_ORIGINAL, text(method.as_str()));
    }
}

fn of_status(span: &mut OpenSpan, status: StatusCode) {
    span.set_attribute(STATUS_CODE, AttributeValue::Int(status.as_u16().into()));
}

fn of_server(span: &mut OpenSpan, authority: &str, scheme: &str) {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => (host, port.parse().ok()),
        _ => (authority, None),
    };
    span.set_attribute(SERVER_ADDRESS, text(host));
    let port: u16 = port.unwrap_or(if scheme == "https" { 443 } else { 80 });
    span.set_attribute(SERVER_PORT, AttributeValue::Int(port.into()));
}

fn version_of(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

fn version_of_spdy(arrival: RequestInfo) -> &'static str {
    let alpn = arrival.protocol.alpn();
    alpn.rsplit_once('/').map_or(alpn, |(_, version)| version)
}

fn static_text(word: &'static str) -> AttributeValue {
    AttributeValue::Text(Cow::Borrowed(word))
}

/// The first [`TEXT_BYTES`] of `text`, or somewhat less.
fn text(text: &str) -> AttributeValue {
    let end = text.floor_char_boundary(TEXT_BYTES);
    AttributeValue::Text(Cow::Owned(text[..end].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_attribute_is_truncated_at_a_char_boundary() {
        let of = |len: usize| AttributeValue::Text("é".repeat(len).into());
        for (chars, expected) in [(512, 512), (513, 512)] {
            assert_eq!(text(&"é".repeat(chars)), of(expected));
        }
        let uneven = format!("a{}", "é".repeat(512));
        let AttributeValue::Text(expected) = text(&uneven) else {
            panic!("it is text");
        };
        assert_eq!(expected.len(), TEXT_BYTES - 1);
    }

    #[test]
    fn unknown_method_has_the_generic_span_name() {
        let unknown = Method::from_bytes(b"FROB").unwrap();
        assert_eq!(
            (span_name(&Method::PATCH), span_name(&unknown)),
            ("PATCH", "HTTP")
        );
    }
}
