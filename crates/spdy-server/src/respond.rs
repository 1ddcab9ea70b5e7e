//! Builds the response to a request's head, in memory: HEAD, ranges, conditions, and errors.
//!
//! ```text
//! head too long? 431, 414 -> method known? 501 -> host served? 421 -> target there? 404
//!    -> method allowed? 405 -> conditions: 412, 304 -> range: 206, 416 -> 200, or what was recorded
//!                                                   -> bytes that were not recorded: 404
//! ```

use std::cell::RefCell;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{HeaderValue, Method, Response, StatusCode};
use spdy_net::handler::RequestInfo;
use spdy_page::partial_content::Parts;

use crate::conditions::{self, ConditionResult};
use crate::ranges::{self, RangeSelection};
use crate::site::{LookupResult, Site};
use crate::stored_response::{RecordedPart, StoredResponse};

/// Limits of requests. Connections have their own (`spdy_net::serve::ServerOptions`).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum length of a target, bytes; above it 414.
    pub target_bytes: usize,
    /// Maximum length of all header names and values, bytes; above it 431.
    pub header_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            target_bytes: 16 * 1024,
            header_bytes: 48 * 1024,
        }
    }
}

/// Headers that describe the representation, which a 304 does not carry (RFC 9110 §15.4.5).
const NOT_IN_304: [header::HeaderName; 5] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_RANGE,
];

/// Headers of a request that can select another response to a GET than the complete one (RFC 9110 §13, §14).
const SELECTING: [header::HeaderName; 6] = [
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
    header::IF_RANGE,
    header::RANGE,
];

/// The recorded think time of a response, as an extension of it. Responses without think time do not have it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ThinkTime(pub Duration);

/// The recorded target whose response a request got, because its own was not recorded: an extension of the response
/// ([`Site::with_similar_queries`]).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SimilarTarget(pub String);

/// The response of `site` to the request `head`; `now` is the value of `Date` if none was recorded.
#[must_use]
pub fn respond(
    site: &Site,
    head: &http::request::Parts,
    now: Option<SystemTime>,
    limits: &Limits,
) -> Response<Bytes> {
    let mut response = respond_unlogged(site, head, limits);
    add_date(response.headers_mut(), now);
    if head.method == Method::HEAD {
        // The length is that of a GET (RFC 9110 §9.3.2).
        *response.body_mut() = Bytes::new();
    }
    response
}

/// Sets the date of the response if none is recorded, at the place that [`StoredResponse::headers`] reserves for it.
pub(crate) fn add_date(headers: &mut HeaderMap, now: Option<SystemTime>) {
    if let Some(date) = headers.get_mut(header::DATE)
        && date.is_empty()
    {
        match now {
            Some(now) => *date = http_date(now),
            None => drop(headers.remove(header::DATE)),
        }
    }
}

/// `now` as a header value, formatted once for each second.
fn http_date(now: SystemTime) -> HeaderValue {
    thread_local!(static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) });
    let second = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    LAST.with_borrow_mut(|last| match last {
        Some((cached_second, date)) if *cached_second == second => date.clone(),
        _ => {
            let date = text(httpdate::fmt_http_date(now));
            last.insert((second, date)).1.clone()
        }
    })
}

fn respond_unlogged(site: &Site, head: &http::request::Parts, limits: &Limits) -> Response<Bytes> {
    let target = head
        .uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let target = if target.is_empty() { "/" } else { target };
    if target.len() > limits.target_bytes {
        return error_response(StatusCode::URI_TOO_LONG);
    }
    if header_bytes(&head.headers) > limits.header_bytes {
        return error_response(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    if !is_supported_method(&head.method) {
        return error_response(StatusCode::NOT_IMPLEMENTED);
    }
    let secure = head
        .extensions
        .get::<RequestInfo>()
        .is_some_and(|arrival| arrival.secure);
    let host = request_host(head);
    match site.find(host, &head.method, target, secure) {
        LookupResult::Response(stored) => respond_from_recording(site, stored, head),
        LookupResult::Similar(target, stored) => {
            let mut response = respond_from_recording(site, stored, head);
            let similar = SimilarTarget(target.to_owned());
            response.extensions_mut().insert(similar);
            response
        }
        LookupResult::Redirect(to) => redirect(&to),
        LookupResult::OtherMethods(methods) => not_allowed(&methods),
        LookupResult::NoTarget => error_response(StatusCode::NOT_FOUND),
        // 421 is newer than SPDY, whose clients treat it like any 4xx, so they get the same status.
        LookupResult::NoHost => error_response(StatusCode::MISDIRECTED_REQUEST),
    }
}

fn respond_from_recording(
    site: &Site,
    stored: &StoredResponse,
    head: &http::request::Parts,
) -> Response<Bytes> {
    let mut response = respond_with(site, stored, head);
    if !stored.think_time.is_zero() {
        let think_time = ThinkTime(stored.think_time);
        response.extensions_mut().insert(think_time);
    }
    response
}

/// The requested host, with its port: from the URI, otherwise from the Host header.
fn request_host(head: &http::request::Parts) -> Option<&str> {
    match head.uri.authority() {
        Some(authority) => {
            let authority = authority.as_str();
            let user_end = authority.bytes().rposition(|byte| byte == b'@');
            Some(&authority[user_end.map_or(0, |at| at + 1)..])
        }
        None => head.headers.get(header::HOST)?.to_str().ok(),
    }
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

/// Methods of RFC 9110 §9 and PATCH; any other is 501.
fn is_supported_method(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET
            | Method::HEAD
            | Method::POST
            | Method::PUT
            | Method::DELETE
            | Method::CONNECT
            | Method::OPTIONS
            | Method::TRACE
            | Method::PATCH
    )
}

fn respond_with(
    site: &Site,
    stored: &StoredResponse,
    head: &http::request::Parts,
) -> Response<Bytes> {
    let is_read = matches!(head.method, Method::GET | Method::HEAD);
    let is_part = matches!(
        stored.recorded_part,
        Some(RecordedPart::Ranges(_) | RecordedPart::Unreadable)
    );
    // Conditions are about a representation, and only 200 and 206 carry one (RFC 9110 §13.2.1).
    if !(stored.status == StatusCode::OK || is_part) || !is_read {
        return full_response(stored);
    }
    // Most requests have none of these, so that one pass over their headers is enough.
    if !is_part && !head.headers.keys().any(|name| SELECTING.contains(name)) {
        return full_response(stored);
    }
    match conditions::evaluate(&head.headers, stored) {
        ConditionResult::Failed => return error_response(StatusCode::PRECONDITION_FAILED),
        ConditionResult::NotModified => {
            let mut headers = stored.headers.clone();
            NOT_IN_304
                .iter()
                .for_each(|name| drop(headers.remove(name)));
            return build(StatusCode::NOT_MODIFIED, headers, Bytes::new());
        }
        ConditionResult::Send => {}
    }
    let range = head
        .headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let range = range.filter(|_| head.method == Method::GET);
    let range = range.filter(|_| conditions::if_range_matches(&head.headers, stored));
    match &stored.recorded_part {
        Some(RecordedPart::Ranges(parts)) => respond_with_parts(site, stored, parts, range),
        Some(RecordedPart::Unreadable) if range.is_none() => {
            missing_part(site, "invalid Content-Range")
        }
        Some(RecordedPart::Unreadable) => full_response(stored),
        Some(RecordedPart::Complete) | None => {
            let len = stored.body.len();
            match range.map_or(RangeSelection::All, |range| ranges::read(range, len)) {
                RangeSelection::All => full_response(stored),
                RangeSelection::Part { from, until } => {
                    part(stored, from, stored.body.slice(from..until), len)
                }
                RangeSelection::Unsatisfiable => not_satisfiable(len),
            }
        }
    }
}

/// The response if only `parts` were recorded. A server may send less than was requested (RFC 9110 §15.3.7), so a range that begins
/// in a part gets the known bytes from there on, and the site's rest.
fn respond_with_parts(
    site: &Site,
    stored: &StoredResponse,
    parts: &Parts,
    range: Option<&str>,
) -> Response<Bytes> {
    // If the length is unknown, every offset may be valid, and a range from the end cannot be resolved.
    let complete = parts.complete();
    let len = complete.map_or(usize::MAX, |complete| {
        usize::try_from(complete).unwrap_or(usize::MAX)
    });
    match range.map_or(RangeSelection::All, |range| ranges::read(range, len)) {
        RangeSelection::Part { from, until } if let Some(bytes) = parts.from(from as u64) => {
            let bytes = bytes.slice(..bytes.len().min(until - from));
            let bytes = with_rest(bytes, until - from, site.range_rest_bytes());
            match complete {
                Some(_) => part(stored, from, bytes, len),
                None => part(stored, from, bytes, "*"),
            }
        }
        RangeSelection::Unsatisfiable if complete.is_some() => not_satisfiable(len),
        RangeSelection::All | RangeSelection::Part { .. } | RangeSelection::Unsatisfiable => {
            missing_part(site, &format!("only {parts} were recorded"))
        }
    }
}

/// `known` with zeros up to `len` bytes, at most `max_rest` of them. A longer `known` is not copied for them.
fn with_rest(known: Bytes, len: usize, max_rest: usize) -> Bytes {
    let rest = len.saturating_sub(known.len()).min(max_rest);
    if rest == 0 || known.len() > max_rest {
        return known;
    }
    let mut extended = vec![0; known.len() + rest];
    extended[..known.len()].copy_from_slice(&known);
    extended.into()
}

/// 404: the target exists, but these bytes of it were not recorded.
fn missing_part(site: &Site, reason: &str) -> Response<Bytes> {
    site.count_missing_part();
    tracing::debug!(reason, "the replica does not contain the requested bytes");
    error_response_with(StatusCode::NOT_FOUND, reason)
}

fn not_satisfiable(len: usize) -> Response<Bytes> {
    let mut response = error_response(StatusCode::RANGE_NOT_SATISFIABLE);
    let range = text(format!("bytes */{len}"));
    response.headers_mut().insert(header::CONTENT_RANGE, range);
    response
}

/// The complete stored response.
fn full_response(stored: &StoredResponse) -> Response<Bytes> {
    build(stored.status, stored.headers.clone(), stored.body.clone())
}

/// 206 with `body`, the bytes from `from` on of a representation of `len` bytes.
fn part(
    stored: &StoredResponse,
    from: usize,
    body: Bytes,
    len: impl std::fmt::Display,
) -> Response<Bytes> {
    let mut headers = stored.headers.clone();
    let until = from + body.len();
    let range = format!("bytes {from}-{}/{len}", until - 1);
    headers.insert(header::CONTENT_RANGE, text(range));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    build(StatusCode::PARTIAL_CONTENT, headers, body)
}

fn redirect(to: &str) -> Response<Bytes> {
    let mut response = error_response(StatusCode::MOVED_PERMANENTLY);
    response
        .headers_mut()
        .insert(header::LOCATION, text(to.to_owned()));
    response
}

/// 405 with the allowed methods, which it must list (RFC 9110 §15.5.6).
fn not_allowed(methods: &[Method]) -> Response<Bytes> {
    let mut names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if methods.contains(&Method::GET) {
        names.push("HEAD");
    }
    let mut response = error_response(StatusCode::METHOD_NOT_ALLOWED);
    response
        .headers_mut()
        .insert(header::ALLOW, text(names.join(", ")));
    response
}

/// An error response with a short text.
fn error_response(status: StatusCode) -> Response<Bytes> {
    error_response_with(status, "")
}

/// The same with the reason.
fn error_response_with(status: StatusCode, detail: &str) -> Response<Bytes> {
    let reason = status.canonical_reason().unwrap_or_default();
    let colon = if detail.is_empty() { "" } else { ": " };
    let words = Bytes::from(format!("{} {reason}{colon}{detail}\n", status.as_str()));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, plain)]);
    let StoredResponse {
        status,
        headers,
        body,
        ..
    } = StoredResponse::new(status, headers, words);
    build(status, headers, body)
}

fn build(status: StatusCode, headers: HeaderMap, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn text(value: String) -> HeaderValue {
    HeaderValue::try_from(value).expect("the value is visible ASCII")
}
