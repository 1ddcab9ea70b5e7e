//! Heads of requests to header blocks, and back.

use http::{Method, StatusCode, Uri};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_http::headers::BadHeader;
use spdy_http::request::{BadRequest, RequestError};

use crate::support::{GET, block, changed, head, pairs, text};

#[test]
fn a_request_is_written_with_the_five_names_first() {
    let request = head(
        Method::GET,
        "https://user@example.org:443/a?b#c",
        &[
            ("accept", "text/html"),
            ("cookie", "a=1"),
            ("x-two", "1"),
            ("cookie", "b=2"),
            ("x-two", "2"),
            ("x-empty", ""),
        ],
    );
    let rest = [
        ("accept", "text/html"),
        ("cookie", "a=1; b=2"),
        ("x-two", "1\x002"),
    ];
    let written = text(&spdy_http::request::encode(Version::V31, &request).expect("a request"));
    assert_eq!(
        written,
        pairs(&[&GET[..], &rest, &[("x-empty", "")]].concat())
    );

    let first = [
        ("method", "GET"),
        ("url", "/a?b"),
        ("version", "HTTP/1.1"),
        ("host", "example.org"),
        ("scheme", "https"),
    ];
    let written = text(&spdy_http::request::encode(Version::V2, &request).expect("a request"));
    assert_eq!(
        written,
        pairs(&[&first[..], &rest].concat()),
        "SPDY/2 has no empty values"
    );
}

#[test]
fn hop_by_hop_headers_are_not_sent() {
    let request = head(
        Method::GET,
        "http://example.org:8080",
        &[
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
            ("host", "elsewhere"),
        ],
    );
    let written = spdy_http::request::encode(Version::V31, &request).expect("a request");
    assert_eq!(written.len(), 5, "{written:?}");
    assert_eq!(written.get(":host").expect("a host"), b"example.org:8080");
    assert_eq!(written.get(":path").expect("a path"), b"/");
}

#[test]
fn a_host_comes_from_the_uri_or_the_host_header_and_a_scheme_from_the_uri() {
    let written = spdy_http::request::encode(
        Version::V31,
        &head(Method::GET, "/a", &[("host", "example.org")]),
    );
    assert!(matches!(written, Err(RequestError::NoScheme { .. })));
    let written = spdy_http::request::encode(Version::V31, &head(Method::GET, "/a", &[]));
    assert_eq!(written, Err(RequestError::NoHost));
}

/// Found by the fuzz target `http`: `?a=b` alone was written as the path, which no server takes.
#[test]
fn a_query_without_a_path_uses_the_root() {
    let written =
        spdy_http::request::encode(Version::V31, &head(Method::GET, "https://a.test?a=b", &[]))
            .unwrap();
    assert!(text(&written).contains(&(":path".to_owned(), "/?a=b".to_owned())));
}

#[test]
fn connect_uses_host_and_port() {
    let request = head(Method::CONNECT, "example.org:443", &[]);
    for (version, path, host) in [
        (Version::V31, ":path", ":host"),
        (Version::V2, "url", "host"),
    ] {
        let written = spdy_http::request::encode(version, &request).expect("a request");
        assert_eq!(written.get(path).expect("a target"), b"example.org:443");
        assert_eq!(written.get(host).expect("a host"), b"example.org:443");
        assert_eq!(written.len(), 4);
        let read = spdy_http::request::decode(version, &written).expect("a request");
        assert_eq!(
            (read.method, read.uri),
            (
                Method::CONNECT,
                "example.org:443".parse::<Uri>().expect("valid")
            )
        );
    }
}

#[test]
fn a_request_is_read_in_any_order_and_case() {
    let mixed = block(&[
        ("Accept", "text/html"),
        (":scheme", "https"),
        ("cookie", "a=1\0b=2"),
        (":host", "example.org"),
        (":version", "HTTP/1.1"),
        ("x-two", "1\x002"),
        ("connection", "close"),
        ("host", "EXAMPLE.org:443"),
        (":path", "/a?b"),
        (":method", "GET"),
    ]);
    let read = spdy_http::request::decode(Version::V3, &mixed).expect("a request");
    assert_eq!(read.method, Method::GET);
    assert_eq!(read.uri, "https://example.org/a?b");
    assert_eq!(read.headers.len(), 4);
    assert_eq!(read.headers["accept"], "text/html");
    assert_eq!(read.headers["cookie"], "a=1; b=2");
    assert_eq!(
        read.headers.get_all("x-two").iter().collect::<Vec<_>>(),
        ["1", "2"]
    );
}

#[test]
fn a_name_that_is_missing_empty_or_there_twice_is_a_bad_request() {
    for (name, value) in GET {
        let missing = spdy_http::request::decode(Version::V31, &changed(name, None));
        assert_eq!(missing.err(), Some(BadRequest::Missing { name }));
        for bad in ["", "GET\0POST", "a\rb"] {
            let read = spdy_http::request::decode(Version::V31, &changed(name, Some(bad)));
            assert!(
                matches!(read, Err(BadRequest::Value { name: found, .. }) if found == name),
                "{name}: {bad:?}, {value}"
            );
        }
    }
    let plain = block(&[
        ("method", "GET"),
        ("url", "/"),
        ("version", "HTTP/1.1"),
        ("scheme", "http"),
    ]);
    let read = spdy_http::request::decode(Version::V2, &plain);
    assert_eq!(read.err(), Some(BadRequest::Missing { name: "host" }));
}

#[test]
fn values_that_mean_nothing_are_bad_requests() {
    for (name, value) in [
        (":path", "a/b"),
        (":path", "example.org:443"),
        // the server itself; in SPDY/2 the url of a push would have become `https://example.org*`
        (":path", "*"),
        (":path", "http://:example.org/"),
        (":path", "://example.org/"), // the uri's parser lets a scheme be nothing
        (":path", "https://evil@example.org/"),
        (":version", "HTTP/2.0"),
        (":version", "1.1"),
        (":host", "user@example.org"),
        (":host", "a b"),
        (":scheme", "ht tp"),
        (":method", "G T"),
    ] {
        let read = spdy_http::request::decode(Version::V31, &changed(name, Some(value)));
        assert!(
            matches!(read, Err(BadRequest::Value { .. })),
            "{name} {value:?}: {read:?}"
        );
    }
    let with = |extra: (&'static str, &'static str)| {
        let all: HeaderBlock = GET.into_iter().chain([extra]).collect();
        spdy_http::request::decode(Version::V31, &all)
    };
    assert!(matches!(
        with((":status", "200")),
        Err(BadRequest::Unknown { .. })
    ));
    assert!(matches!(
        with((":authority", "x")),
        Err(BadRequest::Unknown { .. })
    ));
    assert!(matches!(
        with(("host", "elsewhere.org")),
        Err(BadRequest::TwoHosts { .. })
    ));
    assert!(matches!(
        with(("content-length", "1\x002")),
        Err(BadRequest::Header(BadHeader::ContentLength { .. }))
    ));
    assert!(matches!(
        with(("a b", "x")),
        Err(BadRequest::Header(BadHeader::Name { .. }))
    ));
    assert!(with(("host", "example.org")).is_ok());
}

#[test]
fn too_many_values_are_431_and_the_rest_400() {
    let many = vec!["v"; spdy_http::headers::MAX_VALUES + 1].join("\0");
    let mut all: HeaderBlock = GET.into_iter().collect();
    all.push("x", many.into_bytes());
    let error = spdy_http::request::decode(Version::V31, &all).expect_err("too many");
    assert_eq!(error.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(
        BadRequest::Missing { name: ":path" }.status(),
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn a_url_in_spdy_2_may_be_whole() {
    let whole = block(&[
        ("method", "GET"),
        ("url", "http://example.org/a"),
        ("version", "HTTP/1.1"),
    ]);
    assert_eq!(
        spdy_http::request::decode(Version::V2, &whole)
            .expect("a request")
            .uri,
        "http://example.org/a"
    );
}

/// The url ruled and `:host` was not looked at, so that one server could see another host than the next.
#[test]
fn an_absolute_path_and_a_host_that_names_another_are_no_request() {
    for (version, path, host, scheme) in [
        (Version::V2, "url", "host", "scheme"),
        (Version::V31, ":path", ":host", ":scheme"),
    ] {
        let decode_request = |authority: &'static str, with_scheme: &'static str| {
            let names = match version {
                Version::V2 => ("method", "version"),
                _ => (":method", ":version"),
            };
            spdy_http::request::decode(
                version,
                &block(&[
                    (names.0, "GET"),
                    (path, "http://a.example/x"),
                    (names.1, "HTTP/1.1"),
                    (host, authority),
                    (scheme, with_scheme),
                ]),
            )
        };
        for same in ["a.example", "A.example", "a.example:80"] {
            assert_eq!(
                decode_request(same, "http").expect("one host").uri.path(),
                "/x"
            );
        }
        assert!(
            matches!(
                decode_request("b.example", "http"),
                Err(BadRequest::TwoHosts { .. })
            ),
            "{version}"
        );
        assert!(
            matches!(
                decode_request("a.example", "https"),
                Err(BadRequest::Value { .. })
            ),
            "{version}"
        );
    }
}
