//! From a request's head to its response, in memory: HEAD, ranges, conditions, and what is not served.
//!
//! ```text
//! head too long? 431, 414 -> method known? 501 -> host served? 421 -> target there? 404
//!    -> method allowed? 405 -> conditions: 412, 304 -> range: 206, 416 -> 200, or what was recorded
//! ```

use std::cell::RefCell;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{HeaderValue, Method, Response, StatusCode};
use spdy_net::handler::Arrival;
use spdy_net::literal_head::LiteralHead;

use crate::answer::Answer;
use crate::conditions::{self, Verdict};
use crate::ranges::{self, Wanted};
use crate::site::{Found, Site};

/// Limits on requests. Connections have their own (`spdy_net::serve::ServerOptions`).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest target taken, bytes; past it 414.
    pub target_bytes: usize,
    /// The most bytes that all header names and values may have; past it 431.
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

/// The response of `site` to the request `head`; `now` goes into `Date` where none was recorded.
#[must_use]
pub fn respond(
    site: &Site,
    head: &http::request::Parts,
    now: Option<SystemTime>,
    limits: &Limits,
) -> Response<Bytes> {
    let mut response = answer(site, head, limits);
    add_date(response.headers_mut(), now);
    if head.method == Method::HEAD {
        // The length stays: it is what a GET would have brought (RFC 9110 §9.3.2).
        *response.body_mut() = Bytes::new();
    }
    response
}

/// Says when the answer was given, where nothing recorded does: in the place that [`Answer::headers`] keeps.
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

/// `now` as a header says it, written anew each second.
fn http_date(now: SystemTime) -> HeaderValue {
    thread_local!(static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) });
    let second = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    LAST.with_borrow_mut(|last| match last {
        Some((known, date)) if *known == second => date.clone(),
        _ => {
            let date = text(httpdate::fmt_http_date(now));
            last.insert((second, date)).1.clone()
        }
    })
}

fn answer(site: &Site, head: &http::request::Parts, limits: &Limits) -> Response<Bytes> {
    let target = head
        .uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    let target = if target.is_empty() { "/" } else { target };
    if target.len() > limits.target_bytes {
        return refusal(StatusCode::URI_TOO_LONG);
    }
    if header_bytes(&head.headers) > limits.header_bytes {
        return refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    if !is_known(&head.method) {
        return refusal(StatusCode::NOT_IMPLEMENTED);
    }
    let secure = head
        .extensions
        .get::<Arrival>()
        .is_some_and(|arrival| arrival.secure);
    let host = asked_host(head);
    match site.find(host, &head.method, target, secure) {
        Found::Answer(found) => of_answer(found, head),
        Found::Moved(to) => moved(&to),
        Found::OtherMethods(methods) => not_allowed(&methods),
        Found::NoTarget => refusal(StatusCode::NOT_FOUND),
        // 421 is younger than SPDY, and its clients take it for any 4xx: no second status for them.
        Found::NoHost => refusal(StatusCode::MISDIRECTED_REQUEST),
    }
}

/// The host asked for, port included: from the URI, else from the Host header.
fn asked_host(head: &http::request::Parts) -> Option<&str> {
    match head.uri.authority() {
        Some(authority) => Some(authority.as_str().rsplit('@').next().unwrap_or_default()),
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
fn is_known(method: &Method) -> bool {
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

fn of_answer(found: &Answer, head: &http::request::Parts) -> Response<Bytes> {
    let reads = matches!(head.method, Method::GET | Method::HEAD);
    // Conditions ask about a representation, and only a 200 carries one (RFC 9110 §13.2.1).
    if found.status != StatusCode::OK || !reads {
        return whole(found);
    }
    match conditions::judge(&head.headers, found) {
        Verdict::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
        Verdict::NotModified => {
            let mut headers = found.headers.clone();
            NOT_IN_304
                .iter()
                .for_each(|name| drop(headers.remove(name)));
            let response = build(StatusCode::NOT_MODIFIED, headers, Bytes::new());
            return literally(response, found.not_modified.as_ref());
        }
        Verdict::Send => {}
    }
    let range = head
        .headers
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok());
    let range = range.filter(|_| head.method == Method::GET);
    let wanted = match range {
        Some(range) if conditions::range_stands(&head.headers, found) => {
            ranges::read(range, found.body.len())
        }
        _ => Wanted::All,
    };
    match wanted {
        Wanted::All => whole(found),
        Wanted::Part { from, until } => part(found, from, until),
        Wanted::Nothing => {
            let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE);
            let all = format!("bytes */{}", found.body.len());
            response
                .headers_mut()
                .insert(header::CONTENT_RANGE, text(all));
            response
        }
    }
}

/// The answer as it is kept.
fn whole(found: &Answer) -> Response<Bytes> {
    let response = build(found.status, found.headers.clone(), found.body.clone());
    literally(response, found.literal.as_ref())
}

/// `response` with the head that says the same as it was recorded, for HTTP/1.1.
fn literally(mut response: Response<Bytes>, head: Option<&LiteralHead>) -> Response<Bytes> {
    if let Some(head) = head {
        response.extensions_mut().insert(head.clone());
    }
    response
}

fn part(found: &Answer, from: usize, until: usize) -> Response<Bytes> {
    let mut headers = found.headers.clone();
    let range = format!("bytes {from}-{}/{}", until - 1, found.body.len());
    headers.insert(header::CONTENT_RANGE, text(range));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(until - from));
    build(
        StatusCode::PARTIAL_CONTENT,
        headers,
        found.body.slice(from..until),
    )
}

fn moved(to: &str) -> Response<Bytes> {
    let mut response = refusal(StatusCode::MOVED_PERMANENTLY);
    response
        .headers_mut()
        .insert(header::LOCATION, text(to.to_owned()));
    response
}

/// 405 must say what is allowed (RFC 9110 §15.5.6).
fn not_allowed(methods: &[Method]) -> Response<Bytes> {
    let mut names: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if methods.contains(&Method::GET) {
        names.push("HEAD");
    }
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED);
    response
        .headers_mut()
        .insert(header::ALLOW, text(names.join(", ")));
    response
}

/// A short answer in words.
fn refusal(status: StatusCode) -> Response<Bytes> {
    let reason = status.canonical_reason().unwrap_or_default();
    let words = Bytes::from(format!("{} {reason}\n", status.as_str()));
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, plain)]);
    let Answer {
        status,
        headers,
        body,
        ..
    } = Answer::new(status, headers, words);
    build(status, headers, body)
}

fn build(status: StatusCode, headers: HeaderMap, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn text(value: String) -> HeaderValue {
    HeaderValue::try_from(value).expect("what we write is visible ASCII")
}
