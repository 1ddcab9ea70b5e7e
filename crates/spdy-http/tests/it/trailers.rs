//! HEADERS behind the head of a message: more headers, or trailers.

use http::HeaderMap;
use http::header::HeaderValue;
use spdy_frame::version::Version;
use spdy_http::header_names::Names;
use spdy_http::trailers::{self, BadTrailers};

use crate::support::block;

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
