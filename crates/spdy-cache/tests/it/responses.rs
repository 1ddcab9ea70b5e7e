//! Responses to a client from a stored answer: the whole, parts, or 304.

use std::fmt::Write as _;

use http::HeaderMap;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::freshness::Times;
use spdy_cache::policy::Policy;
use spdy_cache::response::{CachedResponse, Payload, answer};
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;

use crate::support::{self, at, date, get, now, request};

const MODIFIED: &str = "Wed, 01 Jan 2020 00:00:00 GMT";
const LEN: u64 = 10;

fn store(status: u16, fields: &str) -> Stored {
    let fields = format!("cache-control: max-age=60\n{fields}");
    let stored = may_store(
        &Policy::site(),
        &get(""),
        &support::answer(status, &fields),
        Times::at(now()),
    );
    stored.unwrap_or_else(|error| panic!("{fields}: {error}"))
}

fn respond(stored: &Stored, fields: &str) -> CachedResponse {
    answer(&Policy::site(), stored, &get(fields), LEN, at(5))
}

/// The status, and the part of the body that is sent.
fn describe_response(stored: &Stored, fields: &str) -> String {
    let response = respond(stored, fields);
    let mut text = response.head.status.as_u16().to_string();
    match response.body {
        Payload::None => {}
        Payload::Whole => text.push_str(" whole"),
        Payload::Range(range) => write!(text, " {range:?}").unwrap(),
        Payload::Multipart { parts, .. } => parts
            .iter()
            .for_each(|(_, range)| write!(text, " {range:?}").unwrap()),
    }
    text
}

#[test]
fn full_response_has_age_and_length() {
    let stored = store(200, &format!("date: {}\nx: 1\nage: 3", date(-1)));
    let response = respond(&stored, "");
    let expected = format!(
        "cache-control: max-age=60\ndate: {}\nx: 1\nage: 8\ncontent-length: 10",
        date(-1)
    );
    assert_eq!(
        response.head.headers,
        support::answer(200, &expected).headers
    );
    assert_eq!(response.body, Payload::Whole);
    let head = answer(&Policy::site(), &stored, &request("HEAD", ""), LEN, at(5));
    assert_eq!(
        (head.head.headers, head.body),
        (response.head.headers, Payload::None)
    );
    let empty = respond(&store(204, ""), "");
    assert!(empty.body == Payload::None && !empty.head.headers.contains_key("content-length"));
}

#[test]
fn matching_validator_gives_304() {
    let tagged = store(
        200,
        &format!("etag: \"a\"\nlast-modified: {MODIFIED}\ncontent-type: text/a"),
    );
    let weak = store(200, "etag: W/\"a\"");
    let bare = store(200, "etag: a");
    let dated = store(
        200,
        &format!("last-modified: {MODIFIED}\ndate: {}", date(0)),
    );
    let undated = store(200, &format!("date: {}", date(0)));
    let missing = store(404, "etag: \"a\"");
    let future = date(9);
    for (stored, fields, expected) in [
        (&tagged, "if-none-match: \"a\"", "304"),
        (&tagged, "if-none-match: W/\"a\"", "304"),
        (&tagged, "if-none-match: *", "304"),
        (&tagged, "if-none-match: \"b\", \"a\"", "304"),
        (&tagged, "if-none-match: \"b\"\nif-none-match: \"a\"", "304"),
        (&tagged, "if-none-match: \"b,\\\", \"a\"", "200 whole"),
        (&tagged, "if-none-match: \"b\"", "200 whole"),
        (&tagged, "if-none-match: a", "200 whole"),
        (
            &tagged,
            &*format!("if-none-match: \"b\"\nif-modified-since: {MODIFIED}"),
            "200 whole",
        ),
        (
            &tagged,
            "if-none-match: \"a\"\nif-modified-since: Tue, 01 Jan 2019 00:00:00 GMT",
            "304",
        ),
        (&weak, "if-none-match: \"a\"", "304"),
        (&bare, "if-none-match: a", "304"),
        (&dated, &*format!("if-modified-since: {MODIFIED}"), "304"),
        (
            &dated,
            "if-modified-since: Wednesday, 01-Jan-20 00:00:00 GMT",
            "304",
        ),
        (
            &dated,
            "if-modified-since: Tue, 31 Dec 2019 23:59:59 GMT",
            "200 whole",
        ),
        (&dated, "if-modified-since: yesterday", "200 whole"),
        (&undated, &*format!("if-modified-since: {future}"), "304"),
        (
            &undated,
            &*format!("if-modified-since: {MODIFIED}"),
            "200 whole",
        ),
        (&undated, "if-none-match: \"a\"", "200 whole"),
        (&missing, "if-none-match: \"a\"", "404 whole"),
    ] {
        assert_eq!(
            describe_response(stored, fields),
            expected,
            "{:?} | {fields}",
            stored.headers()
        );
    }
    let headers = respond(&tagged, "if-none-match: \"a\"").head.headers;
    assert_eq!(
        (&headers["etag"], &headers["age"]),
        (&"\"a\"".parse().unwrap(), &"5".parse().unwrap())
    );
    assert!(!headers.contains_key("content-type") && !headers.contains_key("content-length"));
}

#[test]
fn ranges_are_served_from_stored_whole() {
    let stored = store(200, "content-type: text/a");
    for (range, expected) in [
        ("bytes=0-1", "206 0..2"),
        ("Bytes=0-1", "206 0..2"),
        ("bytes=1-", "206 1..10"),
        ("bytes=-1", "206 9..10"),
        ("bytes=-99", "206 0..10"),
        ("bytes=8-99", "206 8..10"),
        ("bytes=0-99999999999999999999", "206 0..10"),
        ("bytes=0-1,4-5", "206 0..2 4..6"),
        ("bytes=4-5, 0-1 ,", "206 4..6 0..2"),
        ("bytes=0-1,50-60", "206 0..2"),
        ("bytes=10-", "416"),
        ("bytes=-0", "416"),
        ("bytes=10-11,99-", "416"),
        ("bytes=", "200 whole"),
        ("bytes=2-1", "200 whole"),
        ("bytes=a-b", "200 whole"),
        ("bytes=0-1,x", "200 whole"),
        ("bytes=0-8,1-9", "200 whole"),
        ("lines=0-1", "200 whole"),
        ("byte", "200 whole"),
    ] {
        assert_eq!(
            describe_response(&stored, &format!("range: {range}")),
            expected,
            "{range}"
        );
    }
    let many: Vec<String> = (0..17).map(|_| String::from("0-0")).collect();
    let long = store(200, "");
    for (count, expected) in [(16, 206), (17, 200)] {
        let range = get(&format!("range: bytes={}", many[..count].join(",")));
        let response = answer(&Policy::site(), &long, &range, 1000, at(5));
        assert_eq!(response.head.status, expected, "{count} ranges");
    }
    assert_eq!(
        describe_response(&store(404, ""), "range: bytes=0-1"),
        "404 whole"
    );
    assert_eq!(
        describe_response(&store(200, "accept-ranges: none"), "range: bytes=0-1"),
        "200 whole"
    );
    let head = answer(
        &Policy::site(),
        &stored,
        &request("HEAD", "range: bytes=0-1"),
        LEN,
        at(5),
    );
    assert_eq!(head.head.status, 200);
}

#[test]
fn if_range_must_hold() {
    let tagged = store(200, "etag: \"a\"");
    let weak = store(200, "etag: W/\"a\"");
    let dated = store(
        200,
        &format!("last-modified: {MODIFIED}\ndate: {}", date(0)),
    );
    let just_now = store(200, &format!("last-modified: {0}\ndate: {0}", date(0)));
    for (stored, condition, expected) in [
        (&tagged, "\"a\"", "206 0..2"),
        (&tagged, "\"b\"", "200 whole"),
        (&tagged, "W/\"a\"", "200 whole"),
        (&weak, "W/\"a\"", "200 whole"),
        (&dated, MODIFIED, "206 0..2"),
        (&dated, "Thu, 02 Jan 2020 00:00:00 GMT", "200 whole"),
        (&just_now, &date(0), "200 whole"),
    ] {
        let fields = format!("range: bytes=0-1\nif-range: {condition}");
        assert_eq!(describe_response(stored, &fields), expected, "{fields}");
    }
    assert_eq!(
        describe_response(&tagged, "range: bytes=0-1\nif-none-match: \"a\""),
        "304"
    );
}

#[test]
fn multiple_ranges_are_multipart_with_exact_length() {
    let stored = store(200, "content-type: text/a");
    let response = respond(&stored, "range: bytes=0-1,4-5");
    let Payload::Multipart { parts, end } = response.body else {
        panic!("{:?}", response.body);
    };
    let mut body = Vec::new();
    for (head, range) in &parts {
        body.extend_from_slice(head);
        body.extend_from_slice(&b"0123456789"[range.start as usize..range.end as usize]);
    }
    body.extend_from_slice(&end);
    let headers = &response.head.headers;
    assert_eq!(headers["content-length"], body.len().to_string());
    let boundary = headers["content-type"]
        .to_str()
        .unwrap()
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let expected = format!(
        "\r\n--{boundary}\r\nContent-Type: text/a\r\nContent-Range: bytes 0-1/10\r\n\r\n01\
         \r\n--{boundary}\r\nContent-Type: text/a\r\nContent-Range: bytes 4-5/10\r\n\r\n45\r\n--{boundary}--\r\n"
    );
    assert_eq!(String::from_utf8(body).unwrap(), expected);
    let headers = respond(&stored, "range: bytes=4-5").head.headers;
    assert_eq!(
        (&headers["content-range"], &headers["content-length"]),
        (&"bytes 4-5/10".parse().unwrap(), &"2".parse().unwrap())
    );
    assert_eq!(
        respond(&stored, "range: bytes=10-").head.headers["content-range"],
        "bytes */10"
    );
}

#[test]
fn rewritten_response_uses_its_own_etag() {
    let mut client_headers = HeaderMap::new();
    client_headers.insert("etag", "\"rewritten\"".parse().unwrap());
    let stored = store(200, "etag: \"a\"").with_client_headers(client_headers);
    assert_eq!(
        describe_response(&stored, "if-none-match: \"a\""),
        "200 whole"
    );
    assert_eq!(
        describe_response(&stored, "if-none-match: \"rewritten\""),
        "304"
    );
    assert_eq!(respond(&stored, "").head.headers["etag"], "\"rewritten\"");
}

#[test]
fn memoized_check_runs_once_per_client_headers() {
    let stored = store(200, "etag: \"a\"");
    assert!(stored.memoized_check(|| true));
    assert!(stored.memoized_check(|| unreachable!("it was judged")));
    let instead = stored.clone().with_client_headers(HeaderMap::new());
    assert!(!instead.memoized_check(|| false));
}

#[test]
fn cache_status_is_one_header() {
    let status = |member: CacheStatus| member.value().to_str().unwrap().to_owned();
    let forwarded = |reason| CacheStatus::forwarded("spdy", reason);
    for (member, expected) in [
        (CacheStatus::hit("spdy").ttl(376), "spdy; hit; ttl=376"),
        (
            CacheStatus::hit("spdy").ttl(-5).stored(true),
            "spdy; hit; ttl=-5",
        ),
        (
            forwarded(Forward::Stale)
                .forward_status(http::StatusCode::NOT_MODIFIED)
                .stored(true)
                .ttl(60),
            "spdy; fwd=stale; fwd-status=304; ttl=60; stored",
        ),
        (
            forwarded(Forward::UriMiss)
                .collapsed(true)
                .detail("no-store"),
            "spdy; fwd=uri-miss; collapsed; detail=no-store",
        ),
        (
            CacheStatus::hit("a b").detail("\"\\é\n"),
            "\"a b\"; hit; detail=\"\\\"\\\\\"",
        ),
        (CacheStatus::hit(""), "\"\"; hit"),
    ] {
        let value = status(member);
        assert_eq!(value, expected);
        sfv::Parser::new(&value)
            .parse::<sfv::List>()
            .unwrap_or_else(|error| panic!("{value}: {error}"));
    }
    let mut headers = HeaderMap::new();
    headers.insert("cache-status", "origin; hit".parse().unwrap());
    CacheStatus::hit("spdy").append_to(&mut headers);
    let members: Vec<_> = headers.get_all("cache-status").iter().collect();
    assert_eq!(members, ["origin; hit", "spdy; hit"]);
}
