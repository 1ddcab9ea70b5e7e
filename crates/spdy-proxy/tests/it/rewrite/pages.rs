//! Pages and the resources that they reference: what is rewritten, when it is sent, and which resources are prefetched.

use std::future::poll_fn;
use std::pin::pin;

use futures_util::FutureExt;
use http::{Request, StatusCode};
use http_body::Body as _;
use spdy::body::Body;
use spdy_proxy::body::content_coding::Coding;
use spdy_proxy::telemetry::counters::CounterFamily;

use crate::support::cdn_site::{before, html, other, own};
use crate::support::fields::{CSS, FRESH, HTML};
use crate::support::{Origin, accelerator_of, get, respond, until};

#[tokio::test]
async fn page_is_rewritten_and_references_are_prefetched() {
    let other = other();
    let own = own(html(&other));
    let proxy = before(&own, &other, "");
    let port = other.address.port();
    let page = get(&proxy, "/", &[]).await;
    let proxied_path = |path: &str| format!("/.spdy/1/-/p/cdn.test~{port}{path}");
    assert_eq!(
        page.text(),
        format!(
            "<!doctype html><link rel=stylesheet href=\"{}\"><img src=\"{}\">",
            proxied_path("/a.css"),
            proxied_path("/b.png")
        )
    );
    until("all is fetched ahead", || {
        let all = ["/a.css", "/b.png", "/c.css"];
        all.iter().all(|path| other.times(path) > 0)
    })
    .await;
    let sheet = get(&proxy, &proxied_path("/a.css"), &[]).await;
    assert_eq!(
        sheet.text(),
        format!(
            "body {{ background: url(b.png) }} @import '{}';",
            proxied_path("/c.css")
        )
    );
    assert_eq!(sheet.field("set-cookie"), "", "it would be the site's");
    assert_eq!(sheet.field("x-content-type-options"), "nosniff");
    assert_eq!(other.times("/a.css"), 1);
    let headers = other.fields("/a.css");
    assert!(!headers.contains_key("cookie") && !headers.contains_key("x-forwarded-for"));
}

/// What the origin sent with its head waited for a thread to rewrite it, and for all that had come of it.
#[tokio::test]
async fn page_head_is_sent_with_first_bytes() {
    let text = format!("<!doctype html>{}", "<p>A line of it.</p>".repeat(3000));
    let origin = own(text.clone());
    let proxy = before(&origin, &other(), "");
    for coding in ["identity", "br"] {
        let request = Request::get(format!("/?{coding}"));
        let request = request
            .header("host", "www.site.test")
            .header("accept-encoding", coding)
            .body(Body::empty());
        let response = proxy.answer(request.expect("a request"), None).await;
        let mut body = pin!(response.into_body());
        let first = poll_fn(|cx| body.as_mut().poll_frame(cx)).now_or_never();
        let first = first
            .expect("the body has arrived")
            .expect("at least one byte");
        let first = first
            .expect("the body is complete")
            .into_data()
            .expect("the frame is data");
        match coding {
            "br" => assert!(!first.is_empty()),
            _ => {
                assert!(text.as_bytes().starts_with(&first));
                assert!(first.len() <= 1024, "got {} bytes", first.len());
            }
        }
    }
}

/// Of what an origin coded little is undone at first, until something comes of it.
#[tokio::test]
async fn page_head_is_sent_for_compressed_page_without_charset() {
    let text = format!("<!doctype html>{}", lines());
    let coded = spdy_proxy::body::encoder::encode(&[text.clone().into()], Coding::Gzip);
    let origin = Origin::start(move |_| {
        let fields = [("content-type", "text/html"), ("content-encoding", "gzip")];
        std::future::ready(respond(&fields, coded.clone()))
    });
    let proxy = before(&origin, &other(), "");
    let request = Request::get("/").header("host", "www.site.test");
    let request = request.header("accept-encoding", "gzip");
    let request = request.body(Body::empty()).expect("a request");
    let response = proxy.answer(request, None).await;
    let mut body = pin!(response.into_body());
    let first = poll_fn(|cx| body.as_mut().poll_frame(cx)).now_or_never();
    let first = first
        .expect("the body has arrived")
        .expect("at least one byte");
    let first = first
        .expect("the body is complete")
        .into_data()
        .expect("the frame is data");
    let mut decoder = spdy_proxy::body::decoder::Decoder::new(Coding::Gzip, text.len());
    let first = decoder.write(&first).expect("the body is valid gzip");
    assert!(
        !first.is_empty() && first.len() < 16 * 1024,
        "{}",
        first.len()
    );
    assert!(text.as_bytes().starts_with(&first));
}

/// Lines that are all different, some 200 KB.
fn lines() -> String {
    let lines = (0..4000_u64).map(|nth| {
        let word = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("<p>Line {nth} says {word:x}.</p>")
    });
    lines.collect()
}

/// Its reader had nothing until all of it was rewritten.
#[tokio::test]
async fn long_page_streams_while_rewriting() {
    let text = format!("<!doctype html>{}", "<p>A line of it.</p>".repeat(30_000));
    let origin = own(text.clone());
    let proxy = before(&origin, &other(), "");
    let request = Request::get("/").header("host", "www.site.test");
    let request = request.body(Body::empty()).expect("a request");
    let mut body = pin!(proxy.answer(request, None).await.into_body());
    let mut received = 0;
    while received < text.len() {
        let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
        let frame = frame
            .expect("the page has more bytes")
            .expect("the body is complete");
        let received_before = received;
        received += frame.into_data().expect("the frame is data").len();
        assert!(
            received - received_before <= 20 * 1024,
            "about as much as one poll processes"
        );
        let is_done = !proxy
            .telemetry
            .counters
            .read(CounterFamily::Pages)
            .is_empty();
        assert!(
            !is_done || received_before > 0,
            "all of it was rewritten before"
        );
    }
    assert_eq!(received, text.len());
}

#[tokio::test]
async fn prefetch_can_be_disabled() {
    let other = other();
    let own = own(html(&other));
    let proxy = before(&own, &other, "[learn]\nprefetch = false");
    get(&proxy, "/", &[]).await;
    get(&proxy, "/own", &[]).await;
    assert_eq!(other.request_lines(), [""; 0]);
}

#[tokio::test]
async fn endless_imports_are_not_followed() {
    let endless = Origin::start(|request: Request<bytes::Bytes>| {
        let nth: u64 = request.uri().path()[1..].parse().unwrap_or_default();
        let next = format!("@import '/{}';", nth + 1);
        std::future::ready(respond(&[CSS, FRESH], next))
    });
    let port = endless.address.port();
    let many: String = (1..=100)
        .map(|nth| format!("<img src='http://cdn.test:{port}/{nth}00'>"))
        .collect();
    let first = format!("<link rel=stylesheet href='http://cdn.test:{port}/1'>");
    let own = own(format!("<!doctype html>{first}{many}"));
    // What it all leads to is bounded elsewhere.
    let proxy = before(&own, &endless, "[learn]\nprefetch_per_page = 1000\n");
    get(&proxy, "/", &[]).await;
    until("all is fetched ahead", || {
        endless.times("/3") > 0 && endless.times("/10000") > 0
    })
    .await;
    // All other prefetches are requested before this one.
    get(&proxy, &format!("/.spdy/1/-/p/cdn.test~{port}/99"), &[]).await;
    assert_eq!(endless.times("/4"), 0, "one step too far");
}

#[tokio::test]
async fn refused_proxied_urls_give_404() {
    let other = other();
    let own = own(html(&other));
    let proxy = before(&own, &other, "");
    let port = other.address.port();
    for target in [
        format!("/.spdy/1/-/p/cdn.test~{port}/page.html"),
        format!("/.spdy/1/-/p/cdn.test~{port}/jump.png"),
        format!("/.spdy/1/-/s/cdn.test~{port}/a.css"),
        format!("/.spdy/1/-/p/127.0.0.1~{port}/a.css"),
        format!("/.spdy/1/-/p/localhost~{port}/a.css"),
        format!("/.spdy/1/-/p/cdn.test~{port}/%2e%2e/a.css"),
        "/.spdy/1/-/s/other.test/a.css".to_owned(),
        "/.spdy/2/-/s/cdn.test/a.css".to_owned(),
    ] {
        let response = get(&proxy, &target, &[]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{target}");
        assert_eq!(response.field("cache-control"), "no-store", "{target}");
        assert_eq!(response.text(), "", "{target}");
    }
    let frame = [("sec-fetch-dest", "iframe"), ("sec-fetch-mode", "navigate")];
    let target = format!("/.spdy/1/-/p/cdn.test~{port}/a.css");
    assert_eq!(
        get(&proxy, &target, &frame).await.status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        own.request_lines(),
        [""; 0],
        "the prefix is the accelerator's own"
    );
}

#[tokio::test]
async fn private_address_is_not_contacted() {
    let other = other();
    let own = own(html(&other));
    let (origin, port) = (own.address, other.address.port());
    let proxy = accelerator_of(&format!(
        "[upstream]\nallow_ports = [{port}]\nretries = 0\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\n"
    ));
    let response = get(&proxy, &format!("/.spdy/1/-/p/cdn.test~{port}/a.css"), &[]).await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    assert_eq!(other.request_lines(), [""; 0]);
}

/// Regression: error pages kept their references to other hosts, and no counter showed it.
#[tokio::test]
async fn error_page_is_rewritten() {
    let other = other();
    let text = html(&other).repeat(20);
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let mut response = respond(&[HTML], text.clone());
        let status = request.uri().path()[1..].parse().expect("a status");
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        if status == 206 {
            let part = "bytes 0-9/2000".parse().expect("a range");
            response.headers_mut().insert("content-range", part);
        }
        std::future::ready(response)
    });
    let proxy = before(&own, &other, "");
    for status in ["201", "404", "500"] {
        let fields = [("accept-encoding", "gzip")];
        let page = get(&proxy, &format!("/{status}"), &fields).await;
        assert_eq!(page.status.as_str(), status);
        assert_eq!(page.field("content-encoding"), "gzip");
        let body = page.body.expect("the body is complete");
        let mut decoder = spdy_proxy::body::decoder::Decoder::new(Coding::Gzip, 1 << 20);
        let text = decoder.write(&body).expect("the body is valid gzip");
        let text = String::from_utf8(text).expect("the text is UTF-8");
        assert!(text.contains("/.spdy/1/-/p/cdn.test~"), "{status}: {text}");
    }
    let part = get(&proxy, "/206", &[]).await;
    assert!(part.text().contains("http://cdn.test"), "a part is left");
    let pages = proxy.telemetry.counters.read(CounterFamily::Pages);
    assert_eq!(pages, [("partial", 1), ("rewritten", 3)]);
}

#[tokio::test]
async fn debug_cookie_returns_unrewritten_page() {
    let other = other();
    let text = html(&other);
    let own = own(text.clone());
    let proxy = before(&own, &other, "");
    for (cookie, is_rewritten) in [("a=1", true), ("a=1; spdy=off", false), ("", true)] {
        let page = get(&proxy, "/", &[("cookie", cookie)]).await;
        assert_eq!(page.text() != text, is_rewritten, "{cookie}");
    }
}
