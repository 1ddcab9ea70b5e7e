//! Heads of messages to header blocks and back.

use http::header::HeaderValue;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, request, response};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_http::header_names::Names;
use spdy_http::headers::BadHeader;
use spdy_http::request::{BadRequest, RequestError};
use spdy_http::response::BadResponse;
use spdy_http::trailers::{self, BadTrailers};

fn head(method: Method, uri: &str, headers: &[(&'static str, &'static str)]) -> request::Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a valid request").into_parts().0
}

fn block(pairs: &[(&'static str, &'static str)]) -> HeaderBlock {
    pairs.iter().copied().collect()
}

fn text(block: &HeaderBlock) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    block
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

const GET: [(&str, &str); 5] = [
    (":method", "GET"),
    (":path", "/a?b"),
    (":version", "HTTP/1.1"),
    (":host", "example.org"),
    (":scheme", "https"),
];

/// [`GET`] with one pair changed, or left out.
fn changed(name: &str, value: Option<&'static str>) -> HeaderBlock {
    let pairs = GET.into_iter().filter_map(|(own, old)| {
        if own == name {
            Some((own, value?))
        } else {
            Some((own, old))
        }
    });
    pairs.collect()
}

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
    assert_eq!(written.value(":host").expect("a host"), b"example.org:8080");
    assert_eq!(written.value(":path").expect("a path"), b"/");
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
        assert_eq!(written.value(path).expect("a target"), b"example.org:443");
        assert_eq!(written.value(host).expect("a host"), b"example.org:443");
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
                matches!(read, Err(BadRequest::Value { name: said, .. }) if said == name),
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

fn response(status: u16, headers: &[(&'static str, &'static str)]) -> response::Parts {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(()).expect("a valid response").into_parts().0
}

#[test]
fn a_status_is_written_with_its_reason_and_read_without() {
    let head = response(
        404,
        &[
            ("set-cookie", "a"),
            ("set-cookie", "b"),
            ("connection", "close"),
        ],
    );
    let written = text(&spdy_http::response::encode(Version::V31, &head));
    assert_eq!(
        written,
        pairs(&[
            (":status", "404 Not Found"),
            (":version", "HTTP/1.1"),
            ("set-cookie", "a\0b")
        ])
    );
    let written = text(&spdy_http::response::encode(
        Version::V2,
        &response(299, &[]),
    ));
    assert_eq!(
        written,
        pairs(&[("status", "299 Unknown"), ("version", "HTTP/1.1")])
    );
    for status in ["200", "200 OK", "200 ", "200 Fine, thanks"] {
        let reply = block(&[(":status", status), (":version", "HTTP/1.1")]);
        assert_eq!(
            spdy_http::response::decode(Version::V31, &reply)
                .expect("a response")
                .status,
            StatusCode::OK
        );
    }
}

#[test]
fn an_invalid_status_is_an_error() {
    for status in [
        "",
        "20",
        "2000",
        "OK",
        "20x",
        "200OK",
        "099",
        "-20",
        "200\x00200",
    ] {
        let reply = block(&[(":status", status), (":version", "HTTP/1.1")]);
        let read = spdy_http::response::decode(Version::V31, &reply);
        assert!(
            matches!(read, Err(BadResponse::Status { .. })),
            "{status:?}"
        );
    }
    let read = spdy_http::response::decode(Version::V31, &block(&[(":version", "HTTP/1.1")]));
    assert_eq!(read.err(), Some(BadResponse::Missing { name: ":status" }));
    let read = spdy_http::response::decode(
        Version::V31,
        &block(&[(":status", "200"), (":version", "HTTP/1.1"), (":path", "/")]),
    );
    assert!(matches!(read, Err(BadResponse::Unknown { .. })));
}

#[test]
fn headers_before_data_add_new_names_only() {
    let head = block(&[(":status", "200"), ("a", "1")]);
    for version in Version::ALL {
        let mut trailers = HeaderMap::new();
        let mut add = |pair| trailers::add(version, Some(&head), &mut trailers, &block(&[pair]));
        assert_eq!(add(("b", "2")), Ok(()));
        for again in ["a", "b"] {
            let name = again.to_owned();
            assert_eq!(add((again, "3")), Err(BadTrailers::Repeated { name }));
        }
        for name in [":status", ":path", ":x", Names::of(version).path] {
            let unknown = BadTrailers::Unknown { name: name.into() };
            assert_eq!(add((name, "200")), Err(unknown), "{version}");
        }
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers["b"], "2");
    }
}

#[test]
fn behind_data_a_name_may_come_again_and_one_with_a_colon_may_not() {
    let mut trailers = HeaderMap::new();
    for value in ["1", "2"] {
        trailers::add(Version::V31, None, &mut trailers, &block(&[("a", value)])).expect("new");
    }
    let values: Vec<_> = trailers.get_all("a").iter().collect();
    assert_eq!(values, ["1", "2"]);
    let status = trailers::add(
        Version::V31,
        None,
        &mut trailers,
        &block(&[(":status", "1")]),
    );
    assert!(matches!(status, Err(BadTrailers::Unknown { .. })));
}

/// SPDY/2 has no colons: a body was cut off by a trailer of one's own that was called `version`.
#[test]
fn spdy_2_first_line_names_are_trailers_after_data() {
    let mut trailers = HeaderMap::new();
    let late = block(&[("version", "5"), ("url", "/b"), ("host", "b.example")]);
    trailers::add(Version::V2, None, &mut trailers, &late).expect("trailers");
    assert_eq!(
        (trailers.len(), &trailers["version"]),
        (2, &HeaderValue::from_static("5"))
    );
    let answered = block(&[("status", "200"), ("version", "HTTP/1.1")]);
    let asked = block(&[("host", "a.example"), ("url", "/")]);
    let host = block(&[("host", "b.example")]);
    let mut add = |head| trailers::add(Version::V2, Some(head), &mut trailers, &host);
    assert_eq!(add(&answered), Ok(()));
    let name = "host".to_owned();
    assert_eq!(add(&asked), Err(BadTrailers::Repeated { name }));
    assert_eq!(trailers.len(), 2);
}

/// A length, or a host, that came a second way was once used by the code that read it there.
#[test]
fn framing_and_routing_headers_are_not_trailers() {
    let mut trailers = HeaderMap::new();
    let late = block(&[
        ("host", "b.example"),
        ("content-length", "5"),
        ("transfer-encoding", "chunked"),
        ("x-sum", "1"),
    ]);
    trailers::add(Version::V31, None, &mut trailers, &late).expect("trailers");
    assert_eq!(trailers.len(), 1);
    assert_eq!(trailers["x-sum"], "1");
}

#[test]
fn trailers_go_there_and_back() {
    let mut sent = HeaderMap::new();
    for value in ["1", "2"] {
        sent.append("x-sum", HeaderValue::from_static(value));
    }
    let written = trailers::encode(Version::V31, &sent);
    let mut back = HeaderMap::new();
    trailers::add(Version::V31, None, &mut back, &written).expect("trailers");
    assert_eq!(back, sent);
}

mod push {
    use spdy_http::push::{
        BadPush, PushForm, decode_promise, decode_response, encode_one_block, encode_promise,
        encode_response, is_same_origin,
    };

    use super::*;

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
                    .value(std::str::from_utf8(name).expect("ascii"))
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
                assert_eq!(block.value(name).expect("a version"), b"HTTP/1.1");
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
        assert_eq!(
            promise.value("url").expect("a URL"),
            b"http://example.org/a"
        );
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
}

#[test]
fn a_response_without_version_is_accepted() {
    for (version, status) in [(Version::V2, "status"), (Version::V31, ":status")] {
        let read = spdy_http::response::decode(version, &block(&[(status, "200")]));
        assert_eq!(read.expect("a response").status, 200);
    }
}

/// The url ruled and `:host` was not looked at, so that one server could see another host than the next.
#[test]
fn an_absolute_path_and_a_host_that_names_another_are_no_request() {
    for (version, path, host, scheme) in [
        (Version::V2, "url", "host", "scheme"),
        (Version::V31, ":path", ":host", ":scheme"),
    ] {
        let ask = |authority: &'static str, with_scheme: &'static str| {
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
            assert_eq!(ask(same, "http").expect("one host").uri.path(), "/x");
        }
        assert!(
            matches!(ask("b.example", "http"), Err(BadRequest::TwoHosts { .. })),
            "{version}"
        );
        assert!(
            matches!(ask("a.example", "https"), Err(BadRequest::Value { .. })),
            "{version}"
        );
    }
}
