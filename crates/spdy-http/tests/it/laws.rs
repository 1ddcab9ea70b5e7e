//! What holds for any message.

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, request};
use proptest::prelude::*;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_http::header_names::{Names, is_hop_by_hop};

fn any_version() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

/// Headers that may travel in every version, several values of one name among them.
fn any_headers() -> impl Strategy<Value = HeaderMap> {
    let name = "[a-z][a-z0-9-]{0,12}".prop_filter("only names without a special meaning", |name| {
        !is_hop_by_hop(name.as_bytes())
            && !["host", "url", "cookie", "content-length"].contains(&name.as_str())
            && !Names::of(Version::V2).contains(name)
    });
    let value = "[!-~][ -~]{0,20}";
    prop::collection::vec((name, prop::collection::vec(value, 1..3)), 0..12).prop_map(|pairs| {
        let mut headers = HeaderMap::new();
        for (name, values) in pairs {
            let name = HeaderName::try_from(name).expect("a token");
            for value in values {
                headers.append(
                    name.clone(),
                    HeaderValue::try_from(value).expect("printable"),
                );
            }
        }
        headers
    })
}

fn any_request() -> impl Strategy<Value = request::Parts> {
    let method = prop::sample::select(vec![
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
    ]);
    let uri = (
        "https?",
        "[a-z]{1,10}(:[1-9][0-9]{3})?",
        "/[a-zA-Z0-9/._-]{0,20}",
        "(\\?[a-z=&0-9]{1,20})?",
    )
        .prop_map(|(scheme, host, path, query)| format!("{scheme}://{host}{path}{query}"));
    (method, uri, any_headers()).prop_map(|(method, uri, headers)| {
        let (mut head, ()) = Request::new(()).into_parts();
        (head.method, head.uri, head.headers) =
            (method, uri.parse::<Uri>().expect("valid"), headers);
        head
    })
}

proptest! {
    /// What is written as a block is read back as itself, in every version.
    #[test]
    fn a_request_goes_there_and_back(version in any_version(), head in any_request()) {
        let block = spdy_http::request::encode(version, &head).expect("a request");
        let back = spdy_http::request::decode(version, &block).expect("a request");
        prop_assert_eq!(back.method, head.method);
        prop_assert_eq!(back.uri, head.uri);
        prop_assert_eq!(back.headers, head.headers);
    }

    #[test]
    fn a_response_goes_there_and_back(version in any_version(), status in 100_u16..1000, headers in any_headers()) {
        let (mut head, ()) = Response::new(()).into_parts();
        (head.status, head.headers) = (StatusCode::from_u16(status).expect("in range"), headers);
        let back = spdy_http::response::decode(version, &spdy_http::response::encode(version, &head)).expect("a response");
        prop_assert_eq!(back.status, head.status);
        prop_assert_eq!(back.headers, head.headers);
    }

    /// No block makes a reader panic, or a request that HTTP/1.1 could not carry.
    #[test]
    fn any_block_is_read_or_refused(
        version in any_version(),
        pairs in prop::collection::vec((
            prop_oneof![
                prop::sample::select(vec![":method", ":path", ":version", ":host", ":scheme", ":status", "method", "url",
                    "version", "host", "scheme", "status", "cookie", "content-length", "te"]).prop_map(|name| name.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 1..8),
            ],
            prop_oneof![
                prop::sample::select(vec!["GET", "/", "HTTP/1.1", "example.org", "http", "200 OK", "5"]).prop_map(|value| value.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..16),
            ],
        ), 0..12),
    ) {
        let block: HeaderBlock = pairs.into_iter().collect();
        if let Ok(head) = spdy_http::request::decode(version, &block) {
            prop_assert!(head.method == Method::CONNECT || head.uri.scheme().is_some());
            prop_assert!(head.uri.authority().is_some());
            prop_assert!(!head.headers.contains_key("host") && !head.headers.contains_key("transfer-encoding"));
            let again = spdy_http::request::decode(version, &spdy_http::request::encode(version, &head).expect("a request"));
            prop_assert_eq!(again.expect("a request").method, head.method);
        }
        let _ = spdy_http::response::decode(version, &block);
        for head in [None, Some(&block)] {
            let _ = spdy_http::trailers::add(version, head, &mut HeaderMap::new(), &block);
        }
        let _ = spdy_http::push::decode_promise(version, &block);
    }
}
