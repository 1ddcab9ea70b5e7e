//! What an origin keeps together (`Cache-Groups`, RFC 9875), and ends together; and what an operator ends by the same names.

use std::sync::Arc;

use http::{Method, StatusCode};
use spdy_proxy::proxy::Proxy;

use crate::support::fields::FRESH;
use crate::support::{Origin, accelerator, get, respond, send_request};

/// Three things in two groups, and forms that end one of them, or fail, or end it by a request that changes nothing.
fn origin() -> Origin {
    let ends: String = (0..40).map(|number| format!("\"{number}\", ")).collect();
    let ends_many = format!("{ends}\"last\"");
    Origin::start(move |request: http::Request<bytes::Bytes>| {
        let ends_x = ("cache-group-invalidation", "\"x\"");
        let ends_many = ("cache-group-invalidation", ends_many.as_str());
        let mut response = match request.uri().path() {
            "/1" => respond(&[FRESH, ("cache-groups", "\"x\", \"y\"")], "1"),
            "/2" => respond(&[FRESH, ("cache-groups", "\"y\"")], "2"),
            "/3" => respond(&[FRESH], "3"),
            "/many" => respond(&[ends_many], "done"),
            _ => respond(&[ends_x], "done"),
        };
        if request.uri().path() == "/fails" {
            *response.status_mut() = StatusCode::BAD_REQUEST;
        }
        std::future::ready(response)
    })
}

/// How often each of the three was requested from the origin, after requests for all.
async fn request_counts(proxy: &Arc<Proxy>, origin: &Origin) -> [usize; 3] {
    for path in ["/1", "/2", "/3"] {
        get(proxy, path, &[]).await;
    }
    ["/1", "/2", "/3"].map(|path| origin.times(path))
}

#[tokio::test]
async fn unsafe_request_invalidates_cache_group() {
    let origin = origin();
    let proxy = accelerator(&origin, "");
    assert_eq!(request_counts(&proxy, &origin).await, [1, 1, 1]);
    send_request(&proxy, Method::POST, "/fails", &[], "a=b").await;
    get(&proxy, "/form", &[]).await;
    assert_eq!(
        request_counts(&proxy, &origin).await,
        [1, 1, 1],
        "nothing changed"
    );
    send_request(&proxy, Method::POST, "/form", &[], "a=b").await;
    assert_eq!(request_counts(&proxy, &origin).await, [2, 1, 1]);
}

#[tokio::test]
async fn too_many_invalidated_groups_purge_the_origin() {
    let origin = origin();
    let proxy = accelerator(&origin, "");
    assert_eq!(request_counts(&proxy, &origin).await, [1, 1, 1]);
    send_request(&proxy, Method::POST, "/many", &[], "a=b").await;
    assert_eq!(request_counts(&proxy, &origin).await, [2, 2, 2]);
}

#[tokio::test]
async fn purge_tag_matches_cache_groups() {
    let origin = origin();
    let proxy = accelerator(&origin, "");
    assert_eq!(request_counts(&proxy, &origin).await, [1, 1, 1]);
    let wish = r#"{"tag": "y", "site": "www.site.test"}"#;
    let wish = serde_json::from_str(wish).expect("a purge");
    assert_eq!(proxy.purge(&wish).expect("a valid value").0, 2);
    assert_eq!(request_counts(&proxy, &origin).await, [2, 2, 1]);
}
