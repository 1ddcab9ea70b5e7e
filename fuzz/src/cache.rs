//! Properties of the cache (`spdy-cache`): header fields of a request, of an origin's response and of its 304; and an object's file.
//!
//! - A response that is clearly not shareable is not stored.
//! - A stored response matches its own request, and is not served past its freshness unless the request allows it.
//! - Ranges lie in the body, and together have no more bytes than the body.
//! - A 304 changes neither the ETag nor the length of the stored response.
//! - An encoded file decodes to the same object, and no other bytes are accepted.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, request, response,
};
use spdy_cache::body::Body;
use spdy_cache::freshness::Times;
use spdy_cache::invalidate::invalidated_by;
use spdy_cache::key::{Key, KeyParts};
use spdy_cache::lookup::{Failure, Lookup, lookup, may_join_fetch, may_serve_on_error};
use spdy_cache::object_file::{Encoder, OpenObject};
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::response::{Payload, answer};
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;
use spdy_cache::validate::{Conditional, merge};

use crate::choices::Choices;
use crate::memory;

const METHODS: [Method; 4] = [Method::GET, Method::HEAD, Method::POST, Method::DELETE];
const STATUSES: [u16; 8] = [200, 200, 200, 204, 206, 301, 404, 599];
const BODY_LEN: u64 = 100;

/// Decodes the input as fields of three heads, separated by empty lines, or as a file.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    memory::at_most(256 * 1024 + 256 * input.len(), || {
        if choices.byte() == 255 {
            return check_file(wire);
        }
        let mut heads = wire.split(|byte| *byte == 0).map(fields);
        let [request_fields, response_fields, later] =
            [(); 3].map(|()| heads.next().unwrap_or_default());
        let mut request = request();
        request.method = METHODS[usize::from(choices.byte()) % METHODS.len()].clone();
        request.headers = request_fields;
        let response = head(choices.pick(&STATUSES), response_fields);
        let policy = Policy {
            store_after_cookie: choices.flag(),
            clients_may_revalidate: choices.flag(),
            set_cookie: choices.pick(&[SetCookie::Refuse, SetCookie::Strip, SetCookie::Store]),
            ..Policy::site()
        };
        let later_at = now() + Duration::from_secs(u64::from(choices.byte()) * 10);
        check_heads(&policy, &mut request, &response, later, later_at);
    });
}

fn check_heads(
    policy: &Policy,
    request: &mut request::Parts,
    response: &response::Parts,
    later: HeaderMap,
    at: SystemTime,
) {
    let _ = may_join_fetch(policy, request);
    let _ = lookup(policy, request, &[] as &[Stored], at);
    for gone in invalidated_by(
        &request.method,
        &request.uri,
        response.status,
        &response.headers,
    ) {
        assert_eq!(
            gone.authority(),
            request.uri.authority(),
            "invalidates a URL of another origin"
        );
    }
    let stored = may_store(policy, request, response, Times::at(now()));
    let forbidden = ["no-store", "private"]
        .iter()
        .any(|word| has_directive(&response.headers, word));
    assert!(
        stored.is_err() || !forbidden,
        "stored a response that is not shareable: {:?}",
        response.headers
    );
    let Ok(stored) = stored else {
        return;
    };
    assert!(
        stored.matches(&request.headers),
        "the stored response does not match its request"
    );
    request.method = Method::GET;
    let found = lookup(policy, request, &[&stored], at);
    if let Lookup::Fresh { stale: false, .. } = found {
        assert_eq!(
            stored.staleness(at),
            None,
            "a stale response counts as fresh"
        );
    }
    let _ = may_serve_on_error(policy, request, &stored, Failure::Unreachable, at);
    let mut conditional = request.headers.clone();
    Conditional::of(&stored).apply(&mut conditional);

    let response = answer(policy, &stored, request, BODY_LEN, at);
    let ranges = match response.body {
        Payload::None | Payload::Whole => Vec::new(),
        Payload::Range(range) => vec![range],
        Payload::Multipart { parts, .. } => parts.into_iter().map(|(_, range)| range).collect(),
    };
    assert!(
        ranges
            .iter()
            .all(|range| range.start < range.end && range.end <= BODY_LEN)
    );
    assert!(
        ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum::<u64>()
            <= BODY_LEN
    );

    let fresh = head(304, later);
    if let Ok(merged) = merge(policy, &stored, request, &fresh, Times::at(at)) {
        for name in ["etag", "content-length"] {
            let (is, was) = (
                merged.stored().headers().get(name),
                stored.headers().get(name),
            );
            assert_eq!(is, was, "a 304 changed {name}");
        }
    }

    let body = Body::copy_of(&[7; BODY_LEN as usize]);
    if let Some(file) = Encoder::whole(&key(), &stored, &body) {
        let object = OpenObject::decode(policy, &file).expect("an encoded file decodes");
        assert_eq!(object.body(&file), Ok(body.clone()));
        assert_eq!(
            Encoder::whole(&object.key, &object.stored, &body),
            Some(file)
        );
    }
}

/// A file needs a valid seal, which libFuzzer cannot make.
fn check_file(bytes: &[u8]) {
    let opened = OpenObject::decode(&Policy::site(), bytes);
    assert!(opened.is_err(), "{opened:?} was never encoded");
}

/// True if `Cache-Control` has the bare word, and no other field or quoting can override it.
fn has_directive(headers: &HeaderMap, word: &str) -> bool {
    let lines: Vec<&[u8]> = headers
        .get_all("cache-control")
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    let all = lines.join(&b","[..]).to_ascii_lowercase();
    let spoken_over = headers.contains_key("cdn-cache-control") || all.contains(&b'"');
    let words: Vec<&[u8]> = all
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .collect();
    let understood = word == "no-store"
        && words
            .iter()
            .any(|other| other.starts_with(b"must-understand"));
    !spoken_over && !understood && words.contains(&word.as_bytes())
}

/// Lines of `name: value`; other lines are ignored.
fn fields(text: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        let mut halves = line.splitn(2, |byte| *byte == b':').map(<[u8]>::trim_ascii);
        let (Some(name), Some(value)) = (halves.next(), halves.next()) else {
            continue;
        };
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    headers
}

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_262_400)
}

fn key() -> Key {
    let parts = KeyParts {
        site: "site.test",
        scheme: "https",
        host: "site.test",
        port: 443,
        target: "/a?b",
        rules: "",
    };
    Key::new(&parts).expect("no zero bytes")
}

fn request() -> request::Parts {
    let request = Request::get("https://site.test/a?b").body(());
    request.expect("a request").into_parts().0
}

fn head(status: u16, headers: HeaderMap) -> response::Parts {
    let mut head = Response::new(()).into_parts().0;
    head.status = StatusCode::from_u16(status).expect("a status");
    head.headers = headers;
    head
}
