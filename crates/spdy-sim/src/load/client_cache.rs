//! The client's cache: which requests a repeat view sends to the server.
//!
//! ```text
//!   first view, loaded whole          `after` later: second view
//!   no-store, or not storable ──────► requested as in the first view
//!   fresh by its own headers  ──────► available at once, without a request
//!   stale, with a validator   ──────► requested with If-None-Match, If-Modified-Since: 304, or the full response
//!   stale, without            ──────► requested as in the first view
//! ```
//!
//! Freshness is that of RFC 9111 for a private cache, computed by the crate `http-cache-semantics`, with its heuristics for responses
//! that have only a Last-Modified. The wall time is that of the recording, so a response from a cache on the path has its recorded
//! age. Names, TLS sessions and connections are not part of the cache: other options control them.

use std::time::{Duration, SystemTime};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_cache_semantics::{BeforeRequest, CacheOptions, CachePolicy};
use spdy_page::head::{self, Head};
use spdy_page::replica::{Exchange, Replica};

use crate::runtime::WALL_EPOCH;

const DAY: u64 = 24 * 3600;

/// The result of a cache lookup.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum CacheLookup {
    /// No usable response.
    Miss,
    /// A fresh response with this many bytes of body.
    Fresh(u64),
    /// A stale response with this many bytes of body. It is valid if the server confirms it for a request with these headers.
    Stale(u64, HeaderMap),
}

/// Request headers that concern caches. The recorded load may have been a deliberate reload.
pub(crate) const CACHE_REQUEST_HEADERS: [HeaderName; 2] = [header::CACHE_CONTROL, header::PRAGMA];

/// Response headers with dates. Servers wrote them in three formats, and `http-cache-semantics` reads only the current one.
const DATES: [HeaderName; 3] = [header::DATE, header::EXPIRES, header::LAST_MODIFIED];

/// Looks up `request`, at `after` since `stored` was received.
pub(crate) fn held<B>(
    replica: &Replica,
    stored: &Exchange,
    request: &Request<B>,
    after: Duration,
) -> CacheLookup {
    // A response to a POST may only be stored for a later GET (RFC 9110 §9.3.3).
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return CacheLookup::Miss;
    }
    let Some(mut response) = response_of(stored) else {
        return CacheLookup::Miss;
    };
    let answered = response_time(replica, stored);
    if let Some(answered) = answered {
        set_apparent_age(response.headers_mut(), answered);
    }
    let stored_at = answered.unwrap_or(SystemTime::UNIX_EPOCH + WALL_EPOCH);
    let options = CacheOptions {
        shared: false,
        ..CacheOptions::default()
    };
    let request = request_head(request);
    let policy = CachePolicy::new_options(&request, &response, stored_at, options);
    if !policy.is_storable() {
        return CacheLookup::Miss;
    }
    let has_body = head::has_body(&stored.method, response.status().as_u16());
    let bytes = if has_body {
        stored.body.len() as u64
    } else {
        0
    };
    match policy.before_request(&request, stored_at + after) {
        BeforeRequest::Fresh(_) => CacheLookup::Fresh(bytes),
        BeforeRequest::Stale { mut request, .. } => {
            let validators = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];
            let validators: HeaderMap = validators
                .into_iter()
                .filter_map(|name| Some((name.clone(), request.headers.remove(name)?)))
                .collect();
            match validators.is_empty() {
                true => CacheLookup::Miss,
                false => CacheLookup::Stale(bytes, validators),
            }
        }
    }
}

/// The head of `request`.
fn request_head<B>(request: &Request<B>) -> Request<()> {
    let mut head = Request::new(());
    head.method_mut().clone_from(request.method());
    head.uri_mut().clone_from(request.uri());
    head.headers_mut().clone_from(request.headers());
    head
}

/// The recorded head of a response; invalid fields are omitted.
fn response_of(stored: &Exchange) -> Option<Response<()>> {
    let recorded = Head::parse(&stored.response_head)?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(recorded.status()?).ok()?;
    for (name, value) in recorded.fields() {
        let name = HeaderName::from_bytes(name);
        let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value)) else {
            continue; // recordings contain fields that no server should send
        };
        // Larger values mean 2^31 seconds (RFC 9111 §1.2.2); invalid ones are ignored.
        let age = || value.to_str().ok()?.trim().parse::<i32>().ok();
        if name != header::AGE || age().is_some() {
            response.headers_mut().append(name, value);
        }
    }
    for name in DATES {
        if let Some(value) = response.headers_mut().get_mut(name)
            && let Some(date) = date(value)
        {
            let today = httpdate::fmt_http_date(date);
            *value = HeaderValue::try_from(today).expect("a date is ASCII");
        }
    }
    Some(response)
}

/// Parses a date in any of the three formats (RFC 9110 §5.6.7).
fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

/// When the response of `stored` arrived, if that was recorded and an HTTP date can express it.
fn response_time(replica: &Replica, stored: &Exchange) -> Option<SystemTime> {
    let began = SystemTime::from(replica.recorded?);
    let since = began.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let since = since.saturating_add(stored.first_byte().unwrap_or_default());
    (since <= Duration::from_secs(130 * 365 * DAY)).then(|| SystemTime::UNIX_EPOCH + since)
}

/// Makes a response that arrived at `answered` as old as its Date if its Age is less (RFC 9111 §4.2.3): caches on the path may send
/// no Age. `http-cache-semantics` reads only Age.
fn set_apparent_age(fields: &mut HeaderMap, answered: SystemTime) {
    let apparent = fields.get(header::DATE).and_then(date);
    let apparent = apparent.and_then(|date| answered.duration_since(date).ok());
    let apparent = apparent.unwrap_or_default().as_secs(); // a clock ahead of ours makes no response younger
    let age = || fields.get(header::AGE)?.to_str().ok()?.parse().ok();
    fields.insert(header::AGE, apparent.max(age().unwrap_or(0)).into());
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;
    use spdy_page::replica::Kind;
    use url::Url;

    use super::*;

    /// The lookup of a response with `fields`, so many seconds after it was received.
    fn after(seconds: u64, fields: &str) -> CacheLookup {
        lookup_after(&Method::GET, seconds, fields)
    }

    fn lookup_after(method: &Method, seconds: u64, fields: &str) -> CacheLookup {
        let url = Url::parse("http://a.test/x").unwrap();
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let stored = Exchange {
            response_head: head.into(),
            method: method.clone(),
            ..Exchange::synthetic(url, Kind::Image, "image/png", "four")
        };
        let request = Request::builder().method(method).uri("http://a.test/x");
        let request = request.body(()).unwrap();
        let replica = builtin::portal(); // recorded on 4 June 2013, 10:00
        held(&replica, &stored, &request, Duration::from_secs(seconds))
    }

    #[test]
    fn freshness_is_computed_from_response_headers() {
        for (fields, fresh_until) in [
            ("Cache-Control: max-age=60\r\n", 60),
            ("Cache-Control: private, max-age=60\r\n", 60),
            ("Cache-Control: max-age=60\r\nAge: 20\r\n", 40),
            (
                "Cache-Control: max-age=60\r\nAge: 18446744073709551615\r\n",
                60,
            ),
            ("Expires: Tue, 04 Jun 2013 10:01:00 GMT\r\n", 60),
            // No `Age` header, but it has been in a cache for as long as its date is past.
            (
                "Date: Tue, 04 Jun 2013 09:00:00 GMT\r\nExpires: Tue, 04 Jun 2013 10:00:00 GMT\r\n",
                0,
            ),
            (
                "Date: Tue, 04 Jun 2013 09:59:30 GMT\r\nCache-Control: max-age=60\r\n",
                30,
            ),
            (
                "Date: Tue, 04 Jun 2013 09:59:30 GMT\r\nAge: 20\r\nCache-Control: max-age=60\r\n",
                30,
            ),
            (
                "Date: Tue, 04 Jun 2013 09:59:30 GMT\r\nAge: 40\r\nCache-Control: max-age=60\r\n",
                20,
            ),
            (
                "Date: Tue, 04 Jun 2013 10:00:30 GMT\r\nCache-Control: max-age=60\r\n",
                60,
            ),
            // A tenth of its age.
            ("Last-Modified: Sat, 25 May 2013 10:00:00 GMT\r\n", DAY),
            ("Cache-Control: s-maxage=60\r\n", 0),
            ("Cache-Control: no-cache\r\n", 0),
            ("Cache-Control: no-store\r\n", 0),
            (
                "Pragma: no-cache\r\nExpires: Tue, 04 Jun 2013 10:01:00 GMT\r\n",
                0,
            ),
            ("Expires: 0\r\n", 0),
            ("Cache-Control: max-age=60\r\nVary: *\r\n", 0),
            ("Cache-Control: max-age=60\r\nVary: Accept\r\n", 60),
            ("", 0),
        ] {
            if fresh_until > 0 {
                assert_eq!(
                    after(fresh_until - 1, fields),
                    CacheLookup::Fresh(4),
                    "{fields}"
                );
            }
            assert_ne!(
                after(fresh_until, fields),
                CacheLookup::Fresh(4),
                "{fields}"
            );
        }
    }

    /// `http-cache-semantics` does not parse the two older date formats, so a response with such an `Expires` was stale at once.
    #[test]
    fn a_response_is_as_old_as_its_date_on_arrival() {
        let url = Url::parse("http://a.test/x").unwrap();
        let fields = "Date: Tue, 04 Jun 2013 10:00:10 GMT\r\nCache-Control: max-age=60\r\n";
        let mut stored = Exchange {
            response_head: format!("HTTP/1.1 200 OK\r\n{fields}\r\n").into(),
            started: Some(Duration::from_secs(30)),
            wait: Some(Duration::from_millis(500)),
            ..Exchange::synthetic(url, Kind::Image, "image/png", "four")
        };
        let request = Request::get("http://a.test/x").body(()).unwrap();
        let mut replica = builtin::portal(); // its load began at 10:00
        let fresh_for = |replica: &Replica, stored: &Exchange| {
            let mut seconds = 0..100;
            seconds.find(|&after| {
                held(replica, stored, &request, Duration::from_secs(after)) != CacheLookup::Fresh(4)
            })
        };
        assert_eq!(fresh_for(&replica, &stored), Some(40));
        stored.started = Some(Duration::MAX); // no time of any calendar
        assert_eq!(fresh_for(&replica, &stored), Some(60));
        // Without the time of the recording, the age at the time of the response cannot be computed.
        replica.recorded = None;
        assert_eq!(fresh_for(&replica, &stored), Some(60));
    }

    #[test]
    fn a_date_is_read_in_each_of_its_three_forms() {
        for (then, later, changed) in [
            (
                "Tue, 04 Jun 2013 09:59:00 GMT",
                "Tue, 04 Jun 2013 10:01:00 GMT",
                "Sat, 25 May 2013 10:00:00 GMT",
            ),
            (
                "Tuesday, 04-Jun-13 09:59:00 GMT",
                "Tuesday, 04-Jun-13 10:01:00 GMT",
                "Saturday, 25-May-13 10:00:00 GMT",
            ),
            (
                "Tue Jun  4 09:59:00 2013",
                "Tue Jun  4 10:01:00 2013",
                "Sat May 25 10:00:00 2013",
            ),
        ] {
            let expires = format!("Expires: {later}\r\n");
            assert_eq!(after(59, &expires), CacheLookup::Fresh(4), "{expires}");
            assert_eq!(after(60, &expires), CacheLookup::Miss, "{expires}");
            let expired = format!("Expires: {then}\r\n");
            assert_eq!(after(0, &expired), CacheLookup::Miss, "{expired}");
            // Conditional requests use the current date format.
            let modified = format!("Last-Modified: {changed}\r\n");
            assert_eq!(
                after(DAY - 1, &modified),
                CacheLookup::Fresh(4),
                "{modified}"
            );
            let CacheLookup::Stale(4, validators) = after(DAY, &modified) else {
                panic!("{modified}");
            };
            let expected = "Sat, 25 May 2013 10:00:00 GMT";
            assert_eq!(validators[header::IF_MODIFIED_SINCE], expected);
        }
    }

    #[test]
    fn unsafe_methods_are_never_served_from_cache() {
        let fields = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\n";
        for (method, fresh) in [
            (Method::GET, CacheLookup::Fresh(4)),
            (Method::HEAD, CacheLookup::Fresh(0)),
            (Method::POST, CacheLookup::Miss),
            (Method::PUT, CacheLookup::Miss),
        ] {
            assert_eq!(lookup_after(&method, 30, fields), fresh, "{method}");
            let is_stored = fresh != CacheLookup::Miss;
            let stale = lookup_after(&method, DAY, fields);
            assert_eq!(
                matches!(stale, CacheLookup::Stale(..)),
                is_stored,
                "{method}"
            );
        }
    }

    #[test]
    fn only_stored_stale_responses_are_revalidated_with_validators() {
        let modified = "Last-Modified: Mon, 03 Jun 2013 10:00:00 GMT\r\n";
        let CacheLookup::Stale(4, validators) = after(DAY, &format!("ETag: \"v1\"\r\n{modified}"))
        else {
            panic!("it has validators");
        };
        assert_eq!(validators[header::IF_NONE_MATCH], "\"v1\"");
        assert_eq!(
            validators[header::IF_MODIFIED_SINCE],
            "Mon, 03 Jun 2013 10:00:00 GMT"
        );
        for nothing in [
            format!("Cache-Control: no-store\r\nETag: \"v1\"\r\n{modified}"),
            "Cache-Control: max-age=60\r\n".to_owned(),
            "no head at all".to_owned(),
        ] {
            assert_eq!(after(DAY, &nothing), CacheLookup::Miss, "{nothing}");
        }
    }
}
