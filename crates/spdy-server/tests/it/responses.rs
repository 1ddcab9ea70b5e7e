//! A site's responses, from the head of a request to the response, without a connection.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use spdy_page::head::synthesize;
use spdy_page::replica::{Exchange, Kind};
use spdy_server::respond::{Limits, respond};
use spdy_server::site::Site;

use crate::support::replica_of;

const BODY: &str = "0123456789";

fn exchange(url: &str, head: &[(&str, &str)], body: &str) -> Exchange {
    let mut exchange = Exchange::synthetic(
        url.parse().unwrap(),
        Kind::Other,
        "text/plain",
        Bytes::from(body.to_owned()),
    );
    exchange.response_head = synthesize("HTTP/1.1 200 OK", head.iter().copied());
    exchange
}

fn site() -> Site {
    let head = [
        ("Server", "Apache/1.3"),
        ("ETag", "\"v1\""),
        ("Last-Modified", "Tue, 15 Nov 1994 12:45:26 GMT"),
        ("Content-Type", "text/css"),
        ("Content-Encoding", "gzip"),
        ("Content-Length", "99999"),
        ("Connection", "keep-alive, X-Hop"),
        ("Keep-Alive", "timeout=15"),
        ("X-Hop", "one hop only"),
        ("Transfer-Encoding", "chunked"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
    ];
    let mut redirect = exchange("http://a.test/old", &[("Location", "/")], "gone");
    redirect.response_head = synthesize("HTTP/1.1 301 Moved Permanently", [("Location", "/")]);
    let mut post = exchange("http://a.test/form", &[], "posted");
    post.method = http::Method::POST;
    let exchanges = vec![
        exchange("http://a.test/?q=1", &head, BODY),
        exchange("https://a.test/?q=1", &[], "secure"),
        exchange("http://B.test:8080/x", &[], "b"),
        redirect,
        post,
    ];
    Site::of_replica(&replica_of(exchanges)).with_default_host("a.test")
}

fn fetch_from(site: &Site, request: http::request::Builder) -> Response<Bytes> {
    let (head, ()) = request.body(()).unwrap().into_parts();
    respond(site, &head, None, &Limits::default())
}

fn fetch(request: http::request::Builder) -> Response<Bytes> {
    fetch_from(&site(), request)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

#[test]
fn recorded_responses_are_replayed_without_hop_by_hop_headers() {
    let response = fetch(Request::get("http://a.test/?q=1"));
    assert_eq!(
        (response.status().as_u16(), &response.body()[..]),
        (200, BODY.as_bytes())
    );
    let headers = response.headers();
    assert_eq!(text(headers, "server"), "Apache/1.3");
    assert_eq!(
        text(headers, "content-encoding"),
        "gzip",
        "kept as recorded"
    );
    assert_eq!(text(headers, "content-length"), "10", "set right");
    assert_eq!(headers.get_all("set-cookie").iter().count(), 2);
    for removed in ["connection", "keep-alive", "x-hop", "transfer-encoding"] {
        assert!(!headers.contains_key(removed), "{removed}");
    }
}

#[test]
fn hosts_are_found_in_any_case_and_without_their_port() {
    for (uri, expected) in [
        ("http://A.Test/?q=1", 200),
        ("http://a.test:9999/?q=1", 200),
        ("http://a.test./?q=1", 200),
        ("http://b.TEST/x", 200),
        ("http://localhost:8080/?q=1", 200),
        ("http://127.0.0.1/?q=1", 200),
        ("http://[::1]:8080/?q=1", 200),
        ("http://c.test/?q=1", 421),
        ("http://a.test/x", 404),
        ("http://a.test/", 404),
        ("http://a.test/?q=2", 404),
    ] {
        assert_eq!(
            fetch(Request::get(uri)).status().as_u16(),
            expected,
            "{uri}"
        );
    }
    let by_header = Request::get("/?q=1").header("host", "a.test:80");
    assert_eq!(fetch(by_header).status(), 200);
    assert_eq!(
        fetch(Request::get("/?q=1")).status(),
        200,
        "HTTP/1.0 names no host"
    );
}

#[test]
fn requests_for_unknown_hosts_and_targets_are_counted() {
    let site = site();
    for uri in ["http://a.test/?q=1", "http://a.test/nix", "http://c.test/"] {
        fetch_from(&site, Request::get(uri));
    }
    let stats = site.stats();
    assert_eq!(
        (stats.requests, stats.not_found, stats.misdirected),
        (3, 1, 1)
    );
}

#[test]
fn hosts_are_in_the_order_of_the_replica() {
    let names: Vec<_> = site().hosts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a.test", "b.test"]);
}

#[test]
fn head_has_the_headers_of_get_and_no_body() {
    let get = fetch(Request::get("http://a.test/?q=1"));
    let head = fetch(Request::head("http://a.test/?q=1"));
    assert_eq!(head.headers(), get.headers());
    assert!(head.body().is_empty());
}

#[test]
fn methods_that_were_not_recorded_get_405_or_501() {
    let response = fetch(Request::post("http://a.test/?q=1"));
    assert_eq!(response.status(), 405);
    assert_eq!(text(response.headers(), "allow"), "GET, HEAD");
    let response = fetch(Request::get("http://a.test/form"));
    assert_eq!(
        (
            response.status().as_u16(),
            text(response.headers(), "allow")
        ),
        (405, "POST")
    );
    let response = fetch(Request::post("http://a.test/form"));
    assert_eq!(
        (response.status().as_u16(), &response.body()[..]),
        (200, &b"posted"[..])
    );
    let response = fetch(Request::builder().method("BREW").uri("http://a.test/"));
    assert_eq!(response.status(), 501);
}

#[test]
fn one_range_of_a_200_is_a_206() {
    let ranged = |range: &str| fetch(Request::get("http://a.test/?q=1").header("range", range));
    let response = ranged("bytes=2-4");
    assert_eq!(
        (response.status().as_u16(), &response.body()[..]),
        (206, &b"234"[..])
    );
    assert_eq!(text(response.headers(), "content-range"), "bytes 2-4/10");
    assert_eq!(text(response.headers(), "content-length"), "3");
    let response = ranged("bytes=10-");
    assert_eq!(
        (
            response.status().as_u16(),
            text(response.headers(), "content-range")
        ),
        (416, "bytes */10")
    );
    assert_eq!(
        ranged("bytes=0-1,4-5").status(),
        200,
        "several are answered in full"
    );
    let head = fetch(Request::head("http://a.test/?q=1").header("range", "bytes=2-4"));
    assert_eq!(head.status(), 200, "a range is for GET alone");
    let redirect = fetch(Request::get("http://a.test/old").header("range", "bytes=0-1"));
    assert_eq!(redirect.status(), 301);
}

#[test]
fn a_range_with_an_outdated_if_range_gets_the_full_response() {
    for (if_range, expected) in [
        ("\"v1\"", 206),
        ("\"v0\"", 200),
        ("Tue, 15 Nov 1994 12:45:26 GMT", 206),
    ] {
        let request = Request::get("http://a.test/?q=1").header("range", "bytes=0-1");
        assert_eq!(
            fetch(request.header("if-range", if_range))
                .status()
                .as_u16(),
            expected,
            "{if_range}"
        );
    }
}

#[test]
fn a_matching_condition_gets_304_without_a_body() {
    for (name, value) in [
        ("if-none-match", "\"v0\", W/\"v1\""),
        ("if-modified-since", "Tue, 15 Nov 1994 12:45:26 GMT"),
    ] {
        let response = fetch(Request::get("http://a.test/?q=1").header(name, value));
        assert_eq!(
            (response.status().as_u16(), response.body().len()),
            (304, 0),
            "{name}"
        );
        assert_eq!(text(response.headers(), "etag"), "\"v1\"");
        for removed in ["content-length", "content-type", "content-encoding"] {
            assert!(!response.headers().contains_key(removed), "{removed}");
        }
    }
    let response = fetch(Request::get("http://a.test/?q=1").header("if-match", "\"v0\""));
    assert_eq!(response.status(), 412);
}

#[test]
fn targets_and_headers_have_limits_and_one_byte_more_is_refused() {
    let limits = Limits {
        target_bytes: 20,
        header_bytes: 100,
    };
    let status = |path: &str, header: &str| {
        let request = Request::get(format!("http://a.test{path}")).header("x", header);
        let (head, ()) = request.body(()).unwrap().into_parts();
        respond(&site(), &head, None, &limits).status().as_u16()
    };
    assert_eq!(status(&format!("/{}", "a".repeat(19)), ""), 404);
    assert_eq!(status(&format!("/{}", "a".repeat(20)), ""), 414);
    assert_eq!(status("/?q=1", &"a".repeat(99)), 200);
    assert_eq!(status("/?q=1", &"a".repeat(100)), 431);
}

#[test]
fn date_is_added_if_none_is_recorded_and_time_is_known() {
    let (head, ()) = Request::get("http://a.test/?q=1")
        .body(())
        .unwrap()
        .into_parts();
    let hour = SystemTime::UNIX_EPOCH + Duration::from_secs(784_903_526);
    let response = respond(&site(), &head, Some(hour), &Limits::default());
    assert_eq!(
        text(response.headers(), "date"),
        "Tue, 15 Nov 1994 12:45:26 GMT"
    );
    let dated = exchange(
        "http://a.test/",
        &[("Date", "Mon, 14 Nov 1994 12:45:26 GMT")],
        "",
    );
    let site = Site::of_replica(&replica_of(vec![dated]));
    let (head, ()) = Request::get("http://a.test/")
        .body(())
        .unwrap()
        .into_parts();
    let response = respond(&site, &head, Some(hour), &Limits::default());
    assert_eq!(
        text(response.headers(), "date"),
        "Mon, 14 Nov 1994 12:45:26 GMT"
    );
}

#[test]
fn a_recorded_full_response_replaces_a_304() {
    let mut first = exchange("http://a.test/", &[], "");
    first.response_head = synthesize("HTTP/1.1 304 Not Modified", [("Etag", "\"a\"")]);
    let site = Site::of_replica(&replica_of(vec![
        first,
        exchange("http://a.test/", &[], "full"),
    ]));
    let response = fetch_from(&site, Request::get("http://a.test/"));
    assert_eq!(
        (response.status().as_u16(), &response.body()[..]),
        (200, &b"full"[..])
    );
}
