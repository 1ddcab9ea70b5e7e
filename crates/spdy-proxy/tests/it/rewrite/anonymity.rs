//! The requests that other hosts get for proxied resources: nothing in them identifies the client.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use spdy_proxy::proxy::Proxy;

use crate::support::{Origin, accelerator_of, get, pages, respond};

const MODIFIED_AT: &str = "Sat, 21 Nov 2026 00:00:00 GMT";

fn before(other: &Origin) -> Arc<Proxy> {
    let own = Origin::start(pages(&[]));
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\n"
    ))
}

/// A host whose answers are private, with a tag and a date, and with ranges on request.
fn stranger() -> Origin {
    Origin::start(|request: Request<Bytes>| async move {
        let mut fields = vec![
            ("content-type", "video/mp4"),
            ("cache-control", "private, max-age=60"),
            ("etag", "\"film\""),
            ("last-modified", MODIFIED_AT),
        ];
        if request
            .headers()
            .get("range")
            .is_some_and(|range| range == "bytes=2-3")
        {
            fields.push(("content-range", "bytes 2-3/8"));
            let mut part = respond(&fields, "34");
            *part.status_mut() = StatusCode::PARTIAL_CONTENT;
            return part;
        }
        respond(&fields, "12345678")
    })
}

#[tokio::test]
async fn third_party_gets_no_client_data() {
    let other = stranger();
    let proxy = before(&other);
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{}/film", other.address.port());
    // The first request leads, and for a while all others are sent on their own.
    get(&proxy, &proxied_path, &[]).await;
    let usual = other.fields("/film");
    for field in [
        ("if-none-match", "\"visitor-42\""),
        ("if-match", "\"film\""),
        ("if-modified-since", "Fri, 20 Nov 2026 00:00:42 GMT"),
        ("if-unmodified-since", "Sun, 22 Nov 2026 00:00:42 GMT"),
        ("if-range", "\"visitor-42\""),
        ("range", "visitors=42-"),
        ("range", "bytes=0-1,42-"),
        ("cache-control", "no-cache, visitor=42"),
        ("pragma", "no-cache, visitor=42"),
    ] {
        let response = get(&proxy, &proxied_path, &[field]).await;
        assert_eq!(
            (response.status, response.text()),
            (StatusCode::OK, "12345678"),
            "{field:?}"
        );
        assert_eq!(other.fields("/film"), usual, "{field:?}");
    }
}

#[tokio::test]
async fn client_conditions_are_evaluated_locally_for_third_party() {
    let other = stranger();
    let proxy = before(&other);
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{}/film", other.address.port());
    for (field, status) in [
        (("if-none-match", "\"film\""), StatusCode::NOT_MODIFIED),
        (("if-modified-since", MODIFIED_AT), StatusCode::NOT_MODIFIED),
        (
            ("if-match", "\"visitor-42\""),
            StatusCode::PRECONDITION_FAILED,
        ),
    ] {
        let response = get(&proxy, &proxied_path, &[field]).await;
        assert_eq!(
            (response.status, response.text()),
            (status, ""),
            "{field:?}"
        );
    }
    let part = ("range", "bytes=,02-3");
    let response = get(&proxy, &proxied_path, &[part]).await;
    assert_eq!(
        (response.status, response.text()),
        (StatusCode::PARTIAL_CONTENT, "34")
    );
    assert_eq!(other.fields("/film")["range"], "bytes=2-3");
    // The rest of the same, and the whole of another.
    for (tag, status, text) in [
        ("\"film\"", StatusCode::PARTIAL_CONTENT, "34"),
        ("\"visitor-42\"", StatusCode::OK, "12345678"),
    ] {
        let response = get(&proxy, &proxied_path, &[part, ("if-range", tag)]).await;
        assert_eq!((response.status, response.text()), (status, text), "{tag}");
        assert!(!other.fields("/film").contains_key("if-range"));
    }
}
