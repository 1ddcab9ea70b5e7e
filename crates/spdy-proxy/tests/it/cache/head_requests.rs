//! HEAD requests that a stored GET can answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};

use crate::support::fields::FRESH;
use crate::support::{Origin, accelerator, get, pages, respond, send_request, until_some};

#[tokio::test]
async fn head_is_answered_from_stored_get() {
    let now = Arc::new(AtomicUsize::new(0));
    let tag = now.clone();
    // An origin that knows no conditions.
    let origin = Origin::start(move |request| {
        let tag = format!("\"{}\"", tag.load(Ordering::SeqCst));
        let body = match *request.method() {
            Method::HEAD => "",
            _ => "the body",
        };
        let fields = [
            FRESH,
            ("etag", tag.as_str()),
            ("x-asked", request.method().as_str()),
        ];
        std::future::ready(respond(&fields, body))
    });
    let proxy = accelerator(&origin, "[cache]\nobey_reload = true");
    let reload = [("cache-control", "no-cache")];
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "the body");
    until_some("it is kept", async || {
        let response = get(&proxy, "/a", &[]).await;
        response.field("cache-status").contains("hit").then_some(())
    })
    .await;
    let head = send_request(&proxy, Method::HEAD, "/a", &reload, "").await;
    assert_eq!((head.field("content-length"), head.text()), ("8", ""));
    let stored = get(&proxy, "/a", &[]).await;
    assert_eq!(
        (stored.field("x-asked"), stored.text()),
        ("HEAD", "the body")
    );
    // That of another makes it stale.
    now.store(1, Ordering::SeqCst);
    let head = send_request(&proxy, Method::HEAD, "/a", &reload, "").await;
    assert_eq!(head.field("etag"), "\"1\"");
    let new = get(&proxy, "/a", &[]).await;
    assert_eq!((new.field("x-asked"), new.field("etag")), ("GET", "\"1\""));
    assert_eq!(origin.times("/a"), 2);
}

/// Regression: HEAD stated the length of the decoded text, a 304 had its tag, and digests were those of other bytes.
#[tokio::test]
async fn head_304_and_digest_match_the_stored_get() {
    let text: &'static str = Box::leak("what is said again and again ".repeat(40).into());
    let fields = [
        FRESH,
        ("content-type", "text/plain"),
        ("etag", "\"d\""),
        ("content-digest", "sha-256=:AAAA:"),
        ("repr-digest", "sha-256=:AAAA:"),
        ("content-md5", "AAAA"),
    ];
    let origin = Origin::start(pages(&[("/a", &fields, text)]));
    let proxy = accelerator(&origin, "");
    let length = text.len().to_string();
    let plain = get(&proxy, "/a", &[]).await;
    assert_eq!(plain.field("content-digest"), "sha-256=:AAAA:");
    let gzip = ("accept-encoding", "gzip");
    let coded = get(&proxy, "/a", &[gzip]).await;
    assert_eq!(coded.field("content-encoding"), "gzip");
    let head = send_request(&proxy, Method::HEAD, "/a", &[gzip], "").await;
    assert_eq!(head.field("content-encoding"), "gzip");
    assert_ne!(head.field("content-length"), length);
    let not_modified = get(&proxy, "/a", &[gzip, ("if-none-match", "W/\"d\"")]).await;
    assert_eq!(not_modified.status, StatusCode::NOT_MODIFIED);
    for response in [&coded, &head, &not_modified] {
        assert_eq!(response.field("etag"), "W/\"d\"");
        assert_eq!(response.field("vary"), "accept-encoding");
        for digest in ["content-digest", "repr-digest", "content-md5"] {
            assert_eq!(response.field(digest), "", "{digest}");
        }
    }
    let part = get(&proxy, "/a", &[("range", "bytes=0-9")]).await;
    assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.field("vary"), "accept-encoding", "as the whole");
    assert_eq!(part.field("content-digest"), "");
    assert_eq!(part.field("content-md5"), "");
    assert_eq!(part.field("repr-digest"), "sha-256=:AAAA:");
    let none = get(&proxy, "/a", &[gzip, ("range", "bytes=1000000-")]).await;
    assert_eq!(none.status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(
        (none.field("vary"), none.field("content-encoding")),
        ("", ""),
        "it is of no bytes"
    );
    let not_modified = get(&proxy, "/a", &[("if-none-match", "\"d\"")]).await;
    assert_eq!(
        (not_modified.status, not_modified.field("etag")),
        (StatusCode::NOT_MODIFIED, "\"d\"")
    );
    assert_eq!(origin.times("/a"), 1);
}

/// Regression: the origin got a HEAD, which did not renew the stored response, and for ten seconds no request fetched the whole.
#[tokio::test]
async fn head_of_stale_response_refetches_the_body() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let origin = Origin::start(move |_| {
        let nth = counted.fetch_add(1, Ordering::SeqCst);
        let age = ["0", "60"][nth.min(1)];
        let control = format!("max-age={age}, stale-while-revalidate=60");
        std::future::ready(respond(&[("cache-control", &control)], format!("{nth}")))
    });
    let proxy = accelerator(&origin, "");
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "0");
    let head = send_request(&proxy, Method::HEAD, "/a", &[], "").await;
    assert!(head.field("cache-status").starts_with("spdy; hit; ttl="));
    until_some("it is fetched again", async || {
        let response = get(&proxy, "/a", &[]).await;
        (response.text() == "1").then_some(())
    })
    .await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
}
