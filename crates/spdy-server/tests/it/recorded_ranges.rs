//! Responses recorded as 206 (usually media): ranges, and whole bodies.

use bytes::Bytes;
use http::{Request, Response};
use spdy_page::head::synthesize;
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_server::respond::{Limits, respond};
use spdy_server::site::Site;

use crate::support::replica_of;

const FILM: &str = "0123456789";

/// A 206 of `path` with `range`, which holds `body`.
fn part(path: &str, range: &str, body: &'static str) -> Exchange {
    let url = format!("http://a.test{path}").parse().expect("a URL");
    let mut exchange = Exchange::synthetic(url, Kind::Media, "video/mp4", body);
    let length = body.len().to_string();
    let fields = [
        ("X-Recorded", "yes"),
        ("ETag", "\"a\""),
        ("Content-Range", range),
        ("Content-Length", &length),
    ];
    exchange.response_head = synthesize("HTTP/1.1 206 Some Of It", fields);
    exchange
}

fn replica() -> Replica {
    let url = "http://a.test/both".parse().expect("a URL");
    let both = Exchange::synthetic(url, Kind::Media, "video/mp4", FILM);
    let mut post = part("/post", "bytes 0-1/10", "01");
    post.method = http::Method::POST;
    replica_of(vec![
        part("/whole", "bytes 0-9/10", FILM),
        part("/joined", "bytes 4-9/10", "456789"),
        part("/joined", "bytes 0-3/10", "0123"),
        part("/some", "bytes 0-2/10", "012"),
        part("/some", "bytes 6-8/10", "678"),
        part("/cut", "bytes 0-9/10", "0123"),
        part("/open", "bytes 2-4/*", "234"),
        part("/odd", "bytes ?", "odd"),
        part("/both", "bytes 0-1/10", "01"),
        both,
        post,
    ])
}

fn fetch(site: &Site, request: http::request::Builder) -> Response<Bytes> {
    let (head, ()) = request.body(()).expect("a request").into_parts();
    respond(site, &head, None, &Limits::default())
}

/// Status, Content-Range and body of the response for `path`, requested with `range` unless that is empty.
fn reply(site: &Site, path: &str, range: &str) -> (u16, String, String) {
    let mut request = Request::get(format!("http://a.test{path}"));
    if !range.is_empty() {
        request = request.header("range", range);
    }
    let response = fetch(site, request);
    let content_range = response.headers().get("content-range");
    let content_range = content_range.map_or("", |range| range.to_str().expect("text"));
    let body = String::from_utf8_lossy(response.body()).into_owned();
    let announced = response.headers()["content-length"].to_str().expect("text");
    assert_eq!(announced, body.len().to_string(), "{path} {range}");
    (response.status().as_u16(), content_range.to_owned(), body)
}

#[test]
fn a_complete_206_is_served_as_200_without_a_range() {
    let site = Site::of_replica(&replica());
    for path in ["/whole", "/joined", "/both"] {
        for (range, expected) in [
            ("", (200, "", FILM)),
            ("bytes=0-", (206, "bytes 0-9/10", FILM)),
            ("bytes=3-5", (206, "bytes 3-5/10", "345")),
            ("bytes=-2", (206, "bytes 8-9/10", "89")),
            ("bytes=0-1,4-5", (200, "", FILM)),
        ] {
            let (status, content_range, body) = reply(&site, path, range);
            assert_eq!(
                (status, &content_range[..], &body[..]),
                expected,
                "{path} {range}"
            );
        }
        assert_eq!(reply(&site, path, "bytes=10-").0, 416, "{path}");
    }
    let changed = Request::get("http://a.test/whole")
        .header("range", "bytes=3-5")
        .header("if-range", "\"b\"");
    assert_eq!(fetch(&site, changed).status(), 200);
    let conditional = Request::get("http://a.test/whole").header("if-none-match", "\"a\"");
    assert_eq!(fetch(&site, conditional).status(), 304);
    assert_eq!(
        fetch(&site, Request::head("http://a.test/whole")).status(),
        200
    );
}

#[test]
fn an_incomplete_206_serves_only_ranges_that_begin_in_it() {
    let site = Site::of_replica(&replica());
    for (path, range, expected) in [
        ("/some", "bytes=0-1", (206, "bytes 0-1/10", "01")),
        ("/some", "bytes=0-", (206, "bytes 0-2/10", "012")),
        ("/some", "bytes=7-99", (206, "bytes 7-8/10", "78")),
        ("/some", "bytes=-3", (206, "bytes 7-8/10", "78")),
        ("/cut", "bytes=0-9", (206, "bytes 0-3/10", "0123")),
        ("/open", "bytes=3-", (206, "bytes 3-4/*", "34")),
        ("/odd", "bytes=1-2", (206, "bytes ?", "odd")),
    ] {
        let (status, content_range, body) = reply(&site, path, range);
        assert_eq!(
            (status, &content_range[..], &body[..]),
            expected,
            "{path} {range}"
        );
    }
    assert_eq!(reply(&site, "/some", "bytes=10-").0, 416);
    let before = site.stats().not_found;
    let missing = [
        ("/some", ""),
        ("/some", "bytes=3-"),
        ("/some", "bytes=0-1,6-7"),
        ("/cut", ""),
        ("/open", "bytes=-3"),
        ("/odd", ""),
    ];
    for (path, range) in missing {
        assert_eq!(reply(&site, path, range).0, 404, "{path} {range}");
    }
    assert_eq!(site.stats().not_found - before, missing.len() as u64);
    let (_, _, words) = reply(&site, "/some", "");
    assert!(
        words.contains("only bytes 0-2, 6-8 of 10 were recorded"),
        "{words}"
    );
    let conditional = Request::get("http://a.test/some").header("if-none-match", "\"a\"");
    assert_eq!(fetch(&site, conditional).status(), 304);
    let post = fetch(&site, Request::post("http://a.test/post"));
    assert_eq!(post.status(), 206, "what a POST gets has no parts");
}

#[test]
fn a_rest_continues_a_range_and_completes_nothing() {
    let site = Site::of_replica(&replica()).with_range_rests(4);
    for (path, range, expected) in [
        ("/some", "bytes=0-1", (206, "bytes 0-1/10", "01")),
        ("/some", "bytes=0-5", (206, "bytes 0-5/10", "012\0\0\0")),
        ("/some", "bytes=0-9", (206, "bytes 0-6/10", "012\0\0\0\0")),
        ("/some", "bytes=6-", (206, "bytes 6-9/10", "678\0")),
        ("/open", "bytes=3-", (206, "bytes 3-8/*", "34\0\0\0\0")),
        ("/joined", "bytes=3-5", (206, "bytes 3-5/10", "345")),
    ] {
        let (status, content_range, body) = reply(&site, path, range);
        let found = (status, &content_range[..], &body[..]);
        assert_eq!(found, expected, "{path} {range}");
    }
    assert_eq!(reply(&site, "/some", "").0, 404);
    assert_eq!(reply(&site, "/some", "bytes=3-4").0, 404);
    // Four recorded bytes are not too many for a rest of four, but for one of three.
    for (max_bytes, expected) in [(4, "0123\0\0\0\0"), (3, "0123")] {
        let site = Site::of_replica(&replica()).with_range_rests(max_bytes);
        assert_eq!(reply(&site, "/cut", "bytes=0-9").2, expected, "{max_bytes}");
    }
}
