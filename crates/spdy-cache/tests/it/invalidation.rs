//! Invalidation by an unsafe request, and the responses that a POST may store instead.

use http::{Method, StatusCode, Uri};
use spdy_cache::freshness::Times;
use spdy_cache::invalidate::invalidated_by;
use spdy_cache::policy::Policy;
use spdy_cache::storable::{Uncacheable, may_store};

use crate::support::{answer, now, request};

fn invalidated_uris(method: &str, status: u16, fields: &str) -> Vec<String> {
    let method: Method = method.parse().unwrap();
    let uri: Uri = "https://site.test/a/b?c".parse().unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    let uris = invalidated_by(&method, &uri, status, &answer(200, fields).headers);
    uris.iter().map(ToString::to_string).collect()
}

#[test]
fn successful_unsafe_request_invalidates_target_and_references() {
    let target = "https://site.test/a/b?c";
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "MADE-UP"] {
        assert_eq!(invalidated_uris(method, 200, ""), [target], "{method}");
    }
    for (method, status) in [
        ("GET", 200),
        ("HEAD", 200),
        ("OPTIONS", 200),
        ("POST", 404),
        ("POST", 500),
    ] {
        assert!(
            invalidated_uris(method, status, "location: /x").is_empty(),
            "{method} {status}"
        );
    }
    for (fields, expected) in [
        ("location: x", &["https://site.test/a/x"][..]),
        ("location: /x#part", &["https://site.test/x"]),
        (
            "content-location: https://site.test/y?z",
            &["https://site.test/y?z"],
        ),
        (
            "location: /x\ncontent-location: /y",
            &["https://site.test/x", "https://site.test/y"],
        ),
        ("content-location: b?c", &[]),
        ("location: https://other.test/x", &[]),
        ("location: http://site.test/x", &[]),
        ("location: https://site.test:444/x", &[]),
        ("location: https://[", &[]),
    ] {
        assert_eq!(
            invalidated_uris("POST", 303, fields),
            [&[target], expected].concat(),
            "{fields}"
        );
    }
}

#[test]
fn post_response_is_stored_if_content_location_is_target() {
    for (fields, expected) in [
        ("cache-control: max-age=60\ncontent-location: /a?b", Ok(())),
        (
            "cache-control: max-age=60\ncontent-location: https://site.test/a?b",
            Ok(()),
        ),
        (
            "cache-control: max-age=60\ncontent-location: /a",
            Err(Uncacheable::Method),
        ),
        ("cache-control: max-age=60", Err(Uncacheable::Method)),
        (
            "content-location: /a?b\netag: \"a\"",
            Err(Uncacheable::Method),
        ),
    ] {
        let stored = may_store(
            &Policy::site(),
            &request("POST", ""),
            &answer(200, fields),
            Times::at(now()),
        );
        assert_eq!(stored.map(drop), expected, "{fields}");
    }
    for method in ["HEAD", "PUT", "OPTIONS"] {
        let fields = answer(200, "cache-control: max-age=60\ncontent-location: /a?b");
        let stored = may_store(
            &Policy::site(),
            &request(method, ""),
            &fields,
            Times::at(now()),
        );
        assert_eq!(stored.map(drop), Err(Uncacheable::Method), "{method}");
    }
}
