//! Which responses are stored, for which clients, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::Either;
use http::{HeaderValue, Method, Request, StatusCode};
use spdy::body::Body;
use spdy_net::handler::Handler;
use spdy_proxy::serve::connection::ConnectionHandler;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support::fields::FRESH;
use crate::support::{
    Origin, accelerator, accelerator_of, collect_response, get, pages, respond, send_request,
    until, until_some,
};

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
    until_some("it is fetched again", async || {
        let response = get(&proxy, "/a", &[]).await;
        (response.text() != "0").then_some(())
    })
    .await;
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
