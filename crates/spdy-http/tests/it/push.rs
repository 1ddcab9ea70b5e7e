//! Heads of pushes to header blocks, in each form, and back.

use http::{StatusCode, Uri};
use spdy_frame::version::Version;
use spdy_http::push::{
    BadPush, PushForm, decode_promise, decode_response, encode_one_block, encode_promise,
    encode_response, is_same_origin,
};
use spdy_http::request::BadRequest;

use crate::support::{block, response};

#[test]
fn a_push_in_two_blocks_goes_there_and_back() {
    for version in Version::ALL {
        let uri: Uri = "https://example.org/a?b".parse().expect("valid");
        let promise = encode_promise(version, &uri).expect("a promise");
        assert!(
            promise.iter().all(|(name, _)| !name.ends_with(b"status")),
            "Netty resets a push with a status"
        );
        let read = decode_promise(version, &promise).expect("a promise");
        assert_eq!((read.request.uri, read.response.is_none()), (uri, true));
        let answer = response(200, &[("a", "1")]);
        let second = encode_response(version, PushForm::TwoBlocks, &answer);
        assert!(second.iter().all(|(name, _)| {
            promise
                .get(std::str::from_utf8(name).expect("ascii"))
                .is_none()
        }));
        assert_eq!(
            decode_response(version, &second)
                .expect("a response")
                .headers["a"],
            "1"
        );
    }
}

#[test]
fn netty_finds_the_version_in_both_blocks() {
    for (version, name) in [(Version::V2, "version"), (Version::V31, ":version")] {
        let uri: Uri = "https://example.org/a".parse().expect("valid");
        let first = encode_promise(version, &uri).expect("a promise");
        let second = encode_response(version, PushForm::VersionTwice, &response(200, &[]));
        for block in [first, second] {
            assert_eq!(block.get(name).expect("a version"), b"HTTP/1.1");
        }
    }
}

#[test]
fn a_push_in_one_block_goes_there_and_back_and_has_no_name_twice() {
    for version in Version::ALL {
        let uri: Uri = "https://example.org/a?b".parse().expect("valid");
        let answer = response(203, &[("a", "1"), ("host", "x"), ("connection", "a")]);
        let whole = encode_one_block(version, &uri, &answer).expect("a block");
        let limits = spdy_frame::header_block::BlockLimits::default();
        whole.check(version, &limits).expect("a valid block");
        let read = decode_promise(version, &whole).expect("a promise");
        assert_eq!(read.request.uri, uri, "{version}");
        let response = read.response.expect("a response");
        assert_eq!((response.status.as_u16(), response.headers.len()), (203, 0));
    }
}

#[test]
fn a_push_in_one_block_brings_its_response() {
    let one = block(&[
        (":method", "GET"),
        (":path", "/style.css"),
        (":scheme", "http"),
        (":host", "example.org"),
        (":status", "200"),
        (":version", "HTTP/1.1"),
        ("content-type", "text/css"),
    ]);
    let read = decode_promise(Version::V31, &one).expect("a promise");
    assert_eq!(read.request.uri, "http://example.org/style.css");
    let response = read.response.expect("a response");
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.headers.len(), 1);
}

#[test]
fn a_spdy_2_push_has_an_absolute_url() {
    let uri: Uri = "http://example.org/a".parse().expect("valid");
    let promise = encode_promise(Version::V2, &uri).expect("a promise");
    assert_eq!(promise.get("url").expect("a URL"), b"http://example.org/a");
}

#[test]
fn without_a_url_or_for_another_method_it_is_refused() {
    let read = decode_promise(
        Version::V31,
        &block(&[(":path", "/a"), (":scheme", "http")]),
    );
    assert!(matches!(
        read,
        Err(BadPush::Url(BadRequest::Missing { name: ":host" }))
    ));
    let post = block(&[
        (":method", "POST"),
        (":path", "/a"),
        (":scheme", "http"),
        (":host", "example.org"),
    ]);
    assert!(matches!(
        decode_promise(Version::V31, &post),
        Err(BadPush::Method { .. })
    ));
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let uri = |text: &str| text.parse::<Uri>().expect("valid");
    let own = uri("https://example.org/a");
    for same in ["https://example.org/b", "https://EXAMPLE.org:443/"] {
        assert!(is_same_origin(&own, &uri(same)), "{same}");
    }
    for other in [
        "http://example.org/a",
        "https://example.com/a",
        "https://example.org:444/a",
        "/a",
    ] {
        assert!(!is_same_origin(&own, &uri(other)), "{other}");
    }
    assert!(
        !is_same_origin(&uri("/a"), &uri("/a")),
        "a URI without an origin matches no other"
    );
}
