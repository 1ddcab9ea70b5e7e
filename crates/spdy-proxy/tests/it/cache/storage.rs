//! What is stored, for which clients, and for how long: the accelerator before an origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::Either;
use http::{HeaderValue, Method, Request, StatusCode};
use spdy::body::Body;
use spdy_net::handler::Handler;
use spdy_proxy::serve::connection::ConnectionHandler;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::{
    Origin, accelerator, accelerator_of, collect_response, get, pages, respond, send_request,
    until, until_some,
};

const FRESH: (&str, &str) = ("cache-control", "max-age=60");

#[tokio::test]
async fn public_response_is_fetched_once() {
    let origin = Origin::start(pages(&[("/a", &[FRESH, ("etag", "\"1\"")], "hello")]));
    let proxy = accelerator(&origin, "");
    let first = get(&proxy, "/a", &[]).await;
    assert_eq!((first.status, first.text()), (StatusCode::OK, "hello"));
    let status = first.field("cache-status");
    assert!(status.starts_with("spdy; fwd=uri-miss; ttl=") && status.ends_with("; stored"));
    let second = get(&proxy, "/a", &[]).await;
    assert_eq!(second.text(), "hello");
    assert!(second.field("cache-status").starts_with("spdy; hit; ttl="));
    assert_eq!(origin.times("/a"), 1);
    let not_modified = get(&proxy, "/a", &[("if-none-match", "\"1\"")]).await;
    assert_eq!(
        (not_modified.status, not_modified.text()),
        (StatusCode::NOT_MODIFIED, "")
    );
    let part = get(&proxy, "/a", &[("range", "bytes=1-3")]).await;
    assert_eq!(
        (part.status, part.text()),
        (StatusCode::PARTIAL_CONTENT, "ell")
    );
    let head = send_request(&proxy, Method::HEAD, "/a", &[], "").await;
    assert_eq!((head.field("content-length"), head.text()), ("5", ""));
    assert_eq!(origin.request_lines(), ["GET /a"]);
}

/// The lookup uses the request before its forwarding fields are set for the origin. The client's own forwarding fields must not select a
/// variant.
#[tokio::test]
async fn forged_headers_do_not_select_a_variant() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| async move {
        let forwarded_for = request.headers()["x-forwarded-for"].as_bytes().to_vec();
        respond(&[FRESH, ("vary", "x-forwarded-for")], forwarded_for)
    });
    let proxy = accelerator(&origin, "");
    let send = |from, claim: &str| {
        let request = Request::get("/a").header("host", "www.site.test");
        let request = request.header("x-forwarded-for", claim);
        let request = request.body(Body::empty()).expect("a request");
        let proxy = proxy.clone();
        async move { collect_response(&proxy, request, from).await }
    };
    assert_eq!(send(1, "192.0.2.1").await.text(), "192.0.2.1");
    assert_eq!(send(2, "192.0.2.1").await.text(), "192.0.2.2");
    let again = send(1, "192.0.2.2").await;
    assert_eq!(again.text(), "192.0.2.1");
    assert!(again.field("cache-status").contains("hit"));
    assert_eq!(origin.times("/a"), 2);
}

#[tokio::test]
async fn fresh_hit_is_returned_without_waiting() {
    let varies = ("vary", "accept-language, accept-encoding");
    let origin = Origin::start(pages(&[("/a", &[FRESH, varies], "hello")]));
    let proxy = accelerator(&origin, "");
    let hit = get(&proxy, "/a", &[("accept-language", "de")]).await;
    assert_eq!(hit.text(), "hello");
    let at_once = |language: &str, body: &'static str| {
        let request = Request::get("/a").header("host", "www.site.test");
        let request = request.header("accept-language", language);
        let request = request.body(Body::from(body)).expect("a request");
        matches!(proxy.answer(request, None), Either::Left(_))
    };
    assert!(at_once("de", ""));
    assert!(!at_once("fr", ""), "another variant");
    assert!(
        !at_once("de", "content"),
        "its target is not all that it asks by"
    );
}

#[tokio::test]
async fn hundred_concurrent_requests_are_one_fetch() {
    let (origin, gate) = Origin::start_gated(|_| respond(&[FRESH], "x".repeat(100_000)));
    let proxy = accelerator(&origin, "");
    let all: Vec<_> = (0..100)
        .map(|_| {
            let proxy = proxy.clone();
            tokio::spawn(async move { get(&proxy, "/a", &[]).await })
        })
        .collect();
    until("the origin is contacted", || {
        origin.open.load(Ordering::SeqCst) > 0
    })
    .await;
    gate.add_permits(100);
    let mut collapsed = 0;
    for one in all {
        let one = one.await.expect("no panic");
        assert_eq!(one.text().len(), 100_000);
        collapsed += usize::from(one.field("cache-status").contains("collapsed"));
    }
    assert_eq!(origin.times("/a"), 1);
    assert!(collapsed > 0, "no request was coalesced");
}

#[tokio::test]
async fn private_response_is_not_shared_with_waiters() {
    let (origin, gate) = Origin::start_gated(|request| {
        let cookie = request.headers()["cookie"].to_str().expect("ASCII");
        respond(
            &[("cache-control", "private, max-age=60")],
            cookie.to_owned(),
        )
    });
    let proxy = accelerator(&origin, "");
    let all: Vec<_> = (0..20)
        .map(|cookie| {
            let proxy = proxy.clone();
            tokio::spawn(async move {
                let cookie = format!("user={cookie}");
                let response = get(&proxy, "/me", &[("cookie", &cookie)]).await;
                assert_eq!(response.text(), cookie);
            })
        })
        .collect();
    gate.add_permits(100);
    for one in all {
        one.await.expect("the task completed");
    }
    assert_eq!(origin.times("/me"), 20);
    // And the next request waits for no other.
    let again = get(&proxy, "/me", &[("cookie", "user=again")]).await;
    assert_eq!(again.text(), "user=again");
    let status = again.field("cache-status");
    assert!(status.contains("detail="), "{status}");
}

#[tokio::test]
async fn private_fields_reach_only_the_first_client() {
    const CONTROL: &str = "max-age=60, no-cache=\"set-cookie\", private=\"set-cookie, x-user\"";
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let origin = Origin::start(move |request| {
        let nth = counted.fetch_add(1, Ordering::SeqCst);
        let (cookie, user) = (format!("session={nth}"), format!("user {nth}"));
        let is_revalidation = request.headers().contains_key("if-none-match");
        let fields = [
            ("cache-control", CONTROL),
            ("etag", "\"1\""),
            ("set-cookie", &cookie),
            ("x-user", &user),
            ("x-all", "all"),
        ];
        let mut response = respond(&fields, if is_revalidation { "" } else { "for all" });
        if is_revalidation {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        std::future::ready(response)
    });
    let proxy = accelerator(&origin, "[cache]\nobey_reload = true");
    let reload = [("cache-control", "no-cache")];
    for (fields, expected) in [
        (&[][..], ["session=0", "user 0", "all"]),
        (&[], ["", "", "all"]),
        // The origin answers 304, to this request.
        (&reload, ["session=1", "user 1", "all"]),
        (&[], ["", "", "all"]),
    ] {
        let response = get(&proxy, "/a", fields).await;
        assert_eq!(response.text(), "for all");
        let values = ["set-cookie", "x-user", "x-all"].map(|name| response.field(name));
        assert_eq!(values, expected, "{fields:?} {:?}", response.headers);
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

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

#[tokio::test]
async fn stale_response_is_served_while_revalidating() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let origin = Origin::start(move |_| {
        let nth = counted.fetch_add(1, Ordering::SeqCst);
        let fields = [("cache-control", "max-age=0, stale-while-revalidate=60")];
        std::future::ready(respond(&fields, format!("{nth}")))
    });
    let proxy = accelerator(&origin, "");
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "0");
    let stale = get(&proxy, "/a", &[]).await;
    assert_eq!(stale.text(), "0");
    assert!(stale.field("cache-status").starts_with("spdy; hit; ttl="));
    until_some("it is fetched anew", async || {
        let response = get(&proxy, "/a", &[]).await;
        (response.text() != "0").then_some(())
    })
    .await;
}

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
    until_some("it is fetched anew", async || {
        let response = get(&proxy, "/a", &[]).await;
        (response.text() == "1").then_some(())
    })
    .await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// Regression: its fields are in no key, so one request set the answer for all others while it was fresh.
#[tokio::test]
async fn errors_caused_by_one_client_are_not_shared() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| {
        let (headers, mut response) = (request.headers(), respond(&[FRESH], "good"));
        let bad = [
            ("if-match", StatusCode::PRECONDITION_FAILED),
            ("range", StatusCode::RANGE_NOT_SATISFIABLE),
            ("x-odd", StatusCode::BAD_REQUEST),
            ("x-long", StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        ];
        if let Some((_, status)) = bad.iter().find(|(name, _)| headers.contains_key(*name)) {
            response = respond(&[FRESH], "bad");
            *response.status_mut() = *status;
        }
        std::future::ready(response)
    });
    let proxy = accelerator(&origin, "");
    for (target, name, value) in [
        ("/a", "if-match", "\"other\""),
        ("/b", "range", "bytes=1000-"),
        ("/c", "x-odd", "yes"),
        ("/d", "x-long", "yes"),
    ] {
        let bad = get(&proxy, target, &[(name, value)]).await;
        assert!(bad.status.is_client_error(), "{name}: {bad:?}");
        let good = get(&proxy, target, &[]).await;
        assert_eq!(
            (good.status, good.text()),
            (StatusCode::OK, "good"),
            "{name}"
        );
        // Nor does it replace the stored response.
        get(&proxy, target, &[(name, value)]).await;
        let stored = get(&proxy, target, &[]).await;
        assert!(
            stored.field("cache-status").starts_with("spdy; hit"),
            "{name}"
        );
    }
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
async fn stale_response_is_served_if_origin_is_unreachable() {
    let fields = [("cache-control", "max-age=0, stale-if-error=60")];
    let origin = Origin::start(pages(&[("/a", &fields, "still good")]));
    let proxy = accelerator(&origin, "[upstream]\nconnect_timeout_s = 2\nretries = 0");
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "still good");
    origin.stop();
    let stale = until_some("the origin is missed", async || {
        let stale = get(&proxy, "/a", &[]).await;
        let is_so = stale.field("cache-status").contains("detail");
        is_so.then_some(stale)
    })
    .await;
    assert_eq!(stale.text(), "still good");
    assert!(
        stale
            .field("cache-status")
            .contains("detail=origin-unreachable")
    );
    let other = get(&proxy, "/b", &[]).await;
    assert!(other.status.is_server_error());
    assert!(other.field("proxy-status").starts_with("spdy; error="));
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

#[tokio::test]
async fn truncated_body_is_not_stored() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let origin = listener.local_addr().expect("the listener has an address");
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        while let Ok((mut io, _)) = listener.accept().await {
            let mut head = [0; 4096];
            let _ = io.read(&mut head).await;
            let len = match count.fetch_add(1, Ordering::SeqCst) {
                0 => 100,
                _ => 4,
            };
            let response = format!(
                "HTTP/1.1 200 OK\r\ncache-control: max-age=60\r\ncontent-length: {len}\r\n\r\nhalf"
            );
            let _ = io.write_all(response.as_bytes()).await;
        }
    });
    let proxy = accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n"
    ));
    let cut = get(&proxy, "/a", &[]).await;
    assert!(cut.body.is_err(), "{cut:?}");
    let complete = get(&proxy, "/a", &[]).await;
    assert_eq!(complete.text(), "half");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn body_above_size_limit_is_streamed_unstored() {
    let origin = Origin::start(|_| {
        let pieces = (0..40).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 100_000].into()));
        let mut response = respond(&[FRESH], "");
        *response.body_mut() = Body::from_stream(futures_util::stream::iter(pieces));
        std::future::ready(response)
    });
    let proxy = accelerator(&origin, "[cache]\nmemory_mib = 8\nobject_mib = 1");
    for times in [1, 2] {
        let received = get(&proxy, "/large", &[]).await;
        assert_eq!(received.text().len(), 4_000_000);
        assert_eq!(origin.times("/large"), times, "the response is not stored");
    }
    assert_eq!(proxy.cache.usage().2, 0);
}

/// An origin's own would lead clients past the accelerator.
#[tokio::test]
async fn origin_alt_svc_is_removed() {
    let origin_alt_svc = ("alt-svc", "h3=\":443\", h2=\"origin.test:443\"");
    let origin = Origin::start(pages(&[
        ("/kept", &[FRESH, origin_alt_svc], ""),
        (
            "/alone",
            &[("cache-control", "private=\"alt-svc\""), origin_alt_svc],
            "",
        ),
        (
            "/passed",
            &[("cache-control", "no-store"), origin_alt_svc],
            "",
        ),
    ]));
    let proxy = accelerator(&origin, "");
    for own_alt_svc in [None, Some("h3=\":8443\"")] {
        let visit = ConnectionHandler::new(
            proxy.clone(),
            None,
            own_alt_svc.map(HeaderValue::from_static),
        );
        for target in ["/kept", "/kept", "/alone", "/passed", "/unknown"] {
            let request = Request::get(target).header("host", "www.site.test");
            let request = request.body(Body::empty()).expect("a request");
            let (head, _) = visit.answer(request).await.into_parts();
            let actual: Vec<_> = head.headers.get_all("alt-svc").iter().collect();
            let expected: Vec<_> = own_alt_svc.into_iter().collect();
            assert_eq!(actual, expected, "{target}");
        }
    }
}

/// The account of a visitor who opens `/account/x.css` must not be stored for the next visitor.
#[tokio::test]
async fn html_at_a_stylesheet_path_is_not_stored() {
    let everyones = ("cache-control", "public, max-age=3600");
    let html = ("content-type", "text/html; charset=utf-8");
    let origin = Origin::start(pages(&[
        ("/account/x.css", &[everyones, html], "your account"),
        ("/account", &[everyones, html], "a page"),
    ]));
    let proxy = accelerator(&origin, "");
    for (target, times) in [("/account/x.css", 2), ("/account", 1)] {
        let first = get(&proxy, target, &[]).await;
        let is_mismatch = first.field("cache-status").contains("detail=type-mismatch");
        assert_eq!(is_mismatch, times == 2, "{target}: {first:?}");
        get(&proxy, target, &[]).await;
        assert_eq!(origin.times(target), times, "{target}");
    }
}
