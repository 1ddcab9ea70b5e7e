//! Replacing, invalidating and purging a stored response.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, Request, StatusCode};
use spdy::body::Body;

use crate::support::fields::FRESH;
use crate::support::{Origin, accelerator, get, pages, respond, send_request, until, until_some};

/// Regression: it was served as long as stale responses are allowed, whatever the origin sent since.
#[tokio::test]
async fn uncacheable_replacement_removes_the_stored_response() {
    let others = [
        (StatusCode::OK, "no-store"),
        (StatusCode::OK, "private"),
        (StatusCode::NOT_FOUND, "no-store"),
        (StatusCode::GONE, "no-store"),
        (StatusCode::FORBIDDEN, "no-store"),
    ];
    for (status, control) in others {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let origin = Origin::start(move |_| {
            let old = "max-age=0, stale-while-revalidate=600, stale-if-error=600";
            std::future::ready(match counted.fetch_add(1, Ordering::SeqCst) {
                0 => respond(&[("cache-control", old)], "old"),
                _ => {
                    let mut other = respond(&[("cache-control", control)], "new");
                    *other.status_mut() = status;
                    other
                }
            })
        });
        let proxy = accelerator(&origin, "");
        assert_eq!(get(&proxy, "/a", &[]).await.text(), "old");
        until_some("the origin's word is taken", async || {
            let response = get(&proxy, "/a", &[]).await;
            (response.text() == "new").then_some(())
        })
        .await;
        for _ in 0..3 {
            let response = get(&proxy, "/a", &[]).await;
            assert_eq!(
                (response.status, response.text()),
                (status, "new"),
                "{control}"
            );
        }
    }
}

/// A visitor with a cookie gets a private response. The stored response for all others is still valid.
#[tokio::test]
async fn private_response_does_not_remove_stored_one() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| {
        std::future::ready(match request.headers().contains_key("cookie") {
            true => respond(&[("cache-control", "private")], "personal"),
            false => respond(
                &[("cache-control", "max-age=0, stale-while-revalidate=600")],
                "all",
            ),
        })
    });
    let proxy = accelerator(&origin, "");
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "all");
    until("the response is stored", || proxy.cache.usage().2 == 1).await;
    get(&proxy, "/a", &[("cookie", "who=me")]).await;
    until("the origin is contacted", || origin.times("/a") == 2).await;
    let response = get(&proxy, "/a", &[]).await;
    assert!(
        response.field("cache-status").starts_with("spdy; hit"),
        "{response:?}"
    );
    assert_eq!(proxy.cache.usage().2, 1);
}

/// Regression: a response with another Vary is stored beside the earlier one, which had no Vary and so matched every request.
#[tokio::test]
async fn negotiated_404_replaces_the_stored_response() {
    let count = Arc::new(AtomicUsize::new(0));
    let origin = Origin::start(move |_| {
        std::future::ready(match count.fetch_add(1, Ordering::SeqCst) {
            0 => respond(&[("cache-control", "max-age=0")], "there"),
            _ => {
                let mut not_found = respond(&[FRESH, ("vary", "x-lang")], "gone");
                *not_found.status_mut() = StatusCode::NOT_FOUND;
                not_found
            }
        })
    });
    let proxy = accelerator(&origin, "");
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "there");
    for lang in ["de", "de", "en", "en"] {
        let response = get(&proxy, "/a", &[("x-lang", lang)]).await;
        assert_eq!(
            (response.status, response.text()),
            (StatusCode::NOT_FOUND, "gone")
        );
    }
    assert_eq!(origin.times("/a"), 3, "once for each language");
    let stale = [("x-lang", "fr"), ("cache-control", "max-stale=600")];
    assert_eq!(get(&proxy, "/a", &stale).await.text(), "gone");
}

#[tokio::test]
async fn unsafe_request_invalidates_stored_response() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| {
        std::future::ready(match *request.method() {
            Method::POST => respond(&[("location", "/b")], "done"),
            _ => respond(&[FRESH], request.uri().path().to_owned()),
        })
    });
    let proxy = accelerator(&origin, "");
    for target in ["/a", "/b", "/c"] {
        get(&proxy, target, &[]).await;
    }
    assert_eq!(
        send_request(&proxy, Method::POST, "/a", &[], "new")
            .await
            .text(),
        "done"
    );
    for target in ["/a", "/b", "/c"] {
        get(&proxy, target, &[]).await;
    }
    assert_eq!(
        (origin.times("/a"), origin.times("/b"), origin.times("/c")),
        (2, 2, 1)
    );
}

#[tokio::test]
async fn purge_affects_exactly_its_scope() {
    let tagged = [FRESH, ("surrogate-key", "news sport")];
    let fresh = [FRESH];
    let origin = Origin::start(pages(&[
        ("/a/1", &tagged, "1"),
        ("/a/2", &fresh, "2"),
        ("/b", &tagged, "b"),
    ]));
    let proxy = accelerator(&origin, "");
    let fill = async || {
        for target in ["/a/1", "/a/2", "/b"] {
            get(&proxy, target, &[]).await;
        }
        origin.request_lines().len()
    };
    let mut before = fill().await;
    for (wish, meant) in [
        (r#"{"url": "https://www.site.test:8443/a/1"}"#, 1),
        (r#"{"prefix": "https://www.site.test/a/"}"#, 2),
        (r#"{"tag": "sport", "site": "www.site.test"}"#, 2),
        (r#"{"tag": "other", "site": "www.site.test"}"#, 0),
        (r#"{"site": "www.site.test"}"#, 3),
        (r#"{"url": "https://elsewhere.test/a/1"}"#, 0),
    ] {
        let purge = serde_json::from_str(wish).expect("a purge");
        assert_eq!(proxy.purge(&purge).map(|done| done.0), Ok(meant), "{wish}");
        let after = fill().await;
        assert_eq!(after - before, meant, "{wish}");
        before = after;
    }
    for wrong in [
        r#"{"tag": "sport"}"#,
        r#"{"site": "other.test"}"#,
        r#"{"url": "no url"}"#,
        "{}",
    ] {
        let purge = serde_json::from_str(wrong).expect("JSON");
        assert!(proxy.purge(&purge).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn soft_purged_response_is_revalidated() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| {
        let mut response = respond(&[FRESH, ("etag", "\"1\"")], "same");
        if request.headers().contains_key("if-none-match") {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = Body::empty();
        }
        std::future::ready(response)
    });
    let proxy = accelerator(&origin, "");
    get(&proxy, "/a", &[]).await;
    let purge = r#"{"url": "https://www.site.test/a", "soft": true}"#;
    let purge = serde_json::from_str(purge).expect("a purge");
    assert_eq!(proxy.purge(&purge).map(|done| done.0), Ok(1));
    let after = get(&proxy, "/a", &[]).await;
    assert_eq!(after.text(), "same");
    let status = after.field("cache-status");
    assert!(
        status.starts_with("spdy; fwd=stale; fwd-status=304; ttl="),
        "{status}"
    );
    assert_eq!(origin.fields("/a")["if-none-match"], "\"1\"");
}
