//! Heads of responses to header blocks, and back.

use http::StatusCode;
use spdy_frame::version::Version;
use spdy_http::response::BadResponse;

use crate::support::{block, pairs, response, text};

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
fn a_response_without_version_is_accepted() {
    for (version, status) in [(Version::V2, "status"), (Version::V31, ":status")] {
        let read = spdy_http::response::decode(version, &block(&[(status, "200")]));
        assert_eq!(read.expect("a response").status, 200);
    }
}
