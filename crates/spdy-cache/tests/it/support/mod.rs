//! Parses heads from text, and defines a fixed time.

pub(crate) mod memory_store;

use std::time::{Duration, SystemTime};

use http::{HeaderName, HeaderValue, Request, Response, request, response};

/// 2026-11-21 12:00:00 UTC.
pub(crate) fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_262_400)
}

/// The moment `seconds` from [`now`].
pub(crate) fn at(seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    if seconds < 0 { now() - by } else { now() + by }
}

/// A date `seconds` from [`now`], as a field has it.
pub(crate) fn date(seconds: i64) -> String {
    httpdate::fmt_http_date(at(seconds))
}

fn fields(text: &str) -> impl Iterator<Item = (HeaderName, HeaderValue)> + '_ {
    text.lines().filter(|line| !line.is_empty()).map(|line| {
        let (name, value) = line.split_once(':').expect("name: value");
        let value = HeaderValue::from_bytes(value.trim().as_bytes()).expect("a value");
        (name.parse().expect("a name"), value)
    })
}

pub(crate) fn request(method: &str, text: &str) -> request::Parts {
    let mut head = Request::new(()).into_parts().0;
    head.method = method.parse().expect("a method");
    head.uri = "https://site.test/a?b".parse().expect("a URI");
    for (name, value) in fields(text) {
        head.headers.append(name, value);
    }
    head
}

pub(crate) fn get(text: &str) -> request::Parts {
    request("GET", text)
}

pub(crate) fn answer(status: u16, text: &str) -> response::Parts {
    let mut head = Response::new(()).into_parts().0;
    head.status = status.try_into().expect("a status");
    for (name, value) in fields(text) {
        head.headers.append(name, value);
    }
    head
}
