//! Pages, what they name, and what of that is moved: the accelerator before a site's origin and others.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::handler::RequestInfo;
use spdy_net::protocol::Protocol;
use spdy_proxy::body::content_coding::Coding;
use spdy_proxy::cache::purge::PurgeRequest;
use spdy_proxy::telemetry::counters::CounterFamily;

use crate::support::{self, Origin, accelerator_of, get, pages, respond, send_request, until};

const FRESH: (&str, &str) = ("cache-control", "max-age=60");
const HTML: (&str, &str) = ("content-type", "text/html; charset=utf-8");
const CSS: (&str, &str) = ("content-type", "text/css");

/// The accelerator before `own`, which moves what `cdn.test`, at `other`, has.
fn before(own: &Origin, other: &Origin, more: &str) -> Arc<spdy_proxy::proxy::Proxy> {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         {more}\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style', 'script', 'font']\n"
    ))
}

fn own(text: String) -> Origin {
    Origin::start(move |request: Request<bytes::Bytes>| {
        std::future::ready(match request.uri().path() {
            "/" => respond(&[HTML, FRESH], text.clone()),
            "/private" => respond(&[HTML, ("cache-control", "private")], text.clone()),
            _ => respond(&[FRESH], "own"),
        })
    })
}

fn other() -> Origin {
    Origin::start(pages(&[
        (
            "/a.css",
            &[CSS, FRESH, ("set-cookie", "third=party")],
            "body { background: url(b.png) } @import '/c.css';",
        ),
        ("/c.css", &[CSS, FRESH], "p { color: red }"),
        (
            "/b.png",
            &[("content-type", "image/png"), FRESH],
            "a picture",
        ),
        ("/page.html", &[HTML, FRESH], "<script>alert(1)</script>"),
        (
            "/jump.png",
            &[("location", "http://169.254.169.254/latest")],
            "",
        ),
    ]))
}

/// What a page of the site names.
fn html(other: &Origin) -> String {
    let port = other.address.port();
    format!(
        "<!doctype html><link rel=stylesheet href='http://cdn.test:{port}/a.css'><img src='http://cdn.test:{port}/b.png'>"
    )
}

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

#[tokio::test]
async fn compressed_page_is_rewritten_and_recompressed_per_client() {
    for origin_coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli] {
        let other = other();
        let text = html(&other).repeat(20);
        let coded = spdy_proxy::body::encoder::encode(&[text.into()], origin_coding);
        let origin = Origin::start(move |_| {
            let coding = ("content-encoding", origin_coding.name());
            let fields = [HTML, FRESH, coding, ("etag", "\"1\"")];
            std::future::ready(respond(&fields, coded.clone()))
        });
        let proxy = before(&origin, &other, "");
        let mut bodies = Vec::new();
        // The first from the arriving response, the others from the stored one.
        for (accept, coding) in [
            ("gzip, br, zstd", "zstd"),
            ("gzip, br, zstd", "br"),
            ("identity", ""),
            ("gzip", "gzip"),
            ("zstd", "zstd"),
            ("br", "br"),
        ] {
            let response = get(&proxy, "/", &[("accept-encoding", accept)]).await;
            assert_eq!(
                response.field("content-encoding"),
                coding,
                "{origin_coding:?} {accept}"
            );
            assert_eq!(response.field("vary"), "accept-encoding");
            let body = response.body.expect("the body is complete");
            let spoken = match coding {
                "br" => Coding::Brotli,
                "gzip" => Coding::Gzip,
                "zstd" => Coding::Zstd,
                _ => Coding::Identity,
            };
            let mut decoder = spdy_proxy::body::decoder::Decoder::new(spoken, 1 << 20);
            let mut text = decoder
                .write(&body)
                .expect("the body is valid in its coding");
            text.extend(decoder.finish().expect("the body is complete"));
            bodies.push(String::from_utf8(text).expect("the text is UTF-8"));
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]));
        assert!(bodies[0].contains("/.spdy/1/-/p/cdn.test~"));
        assert_eq!(
            origin.times("/"),
            1,
            "one coding is stored, the others are made from it"
        );
    }
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

/// An origin of a page at `/` that answers each condition of a GET by 304; `more` has fields of the first request, of the second and so on.
fn changing(
    text: String,
    more: impl Fn(usize) -> Vec<(&'static str, &'static str)> + Send + Sync + 'static,
) -> Origin {
    let (count, more) = (Arc::new(AtomicUsize::new(0)), Arc::new(more));
    Origin::start(move |request: Request<bytes::Bytes>| {
        let nth = count.fetch_add(1, Ordering::SeqCst);
        let mut fields = vec![HTML, ("etag", "\"v1\"")];
        fields.extend(more(nth));
        let is_revalidation =
            request.method() == Method::GET && request.headers().contains_key("if-none-match");
        let mut response = respond(
            &fields,
            if is_revalidation {
                String::new()
            } else {
                text.clone()
            },
        );
        if is_revalidation {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        std::future::ready(response)
    })
}

/// The body that the old policy had made went out under the new one.
#[tokio::test]
async fn policy_changed_by_304_triggers_refetch() {
    let other = other();
    let policies: [&[(&str, &str)]; 3] = [
        &[(
            "content-security-policy",
            "img-src 'self'; style-src 'self'",
        )],
        &[("cache-control", "max-age=0, no-transform")],
        &[("content-security-policy", "sandbox")],
    ];
    for policy in policies {
        let new = policy.to_vec();
        let own = changing(html(&other), move |nth| match nth {
            0 => vec![("cache-control", "max-age=0")],
            _ => new.clone(),
        });
        let proxy = before(&own, &other, "");
        let old = get(&proxy, "/", &[]).await;
        assert!(old.text().contains("/.spdy/1/"), "{}", old.text());
        until("it is kept", || proxy.cache.usage().2 > 0).await;
        let new = get(&proxy, "/", &[]).await;
        assert_eq!(new.status, StatusCode::OK);
        assert!(
            !new.text().contains("/.spdy/1/"),
            "{policy:?}: {}",
            new.text()
        );
        assert_eq!(own.times("/"), 3, "as it is known, and all of it");
    }
}

/// A 200 to HEAD under another policy made the page fresh that the old policy had made.
#[tokio::test]
async fn policy_changed_by_head_triggers_refetch() {
    let other = other();
    let own = changing(html(&other), |nth| match nth {
        0 => vec![("cache-control", "max-age=0")],
        _ => vec![FRESH, ("content-security-policy", "sandbox")],
    });
    let proxy = before(&own, &other, "");
    let old = get(&proxy, "/", &[]).await;
    assert!(old.text().contains("/.spdy/1/"), "{}", old.text());
    until("it is kept", || proxy.cache.usage().2 > 0).await;
    let head = send_request(&proxy, Method::HEAD, "/", &[], "").await;
    assert_eq!(head.field("content-security-policy"), "sandbox");
    let new = get(&proxy, "/", &[]).await;
    assert_eq!(new.field("content-security-policy"), "sandbox");
    assert!(!new.text().contains("/.spdy/1/"), "{}", new.text());
}

/// It broke off where browsers do not: behind what was compressed stands what a script printed last, or nothing was printed at all.
#[tokio::test]
async fn bytes_after_gzip_are_ignored_and_empty_body_is_valid() {
    let sheet = "body { background: url(http://cdn.test/b.png) }";
    let coded = spdy_proxy::body::encoder::encode(&[sheet.into()], Coding::Gzip);
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let gzip = ("content-encoding", "gzip");
        let padded = [&coded[..], b"\n\0\0"].concat();
        std::future::ready(match request.uri().path() {
            "/padded.css" => respond(&[CSS, FRESH, gzip], padded),
            "/padded" => respond(&[HTML, FRESH, gzip], padded),
            "/empty.css" => respond(&[CSS, FRESH, gzip], ""),
            _ => respond(&[HTML, FRESH, gzip], ""),
        })
    });
    let proxy = before(&own, &other(), "");
    for (target, text) in [
        ("/padded.css", "url(http://cdn.test/b.png)"),
        ("/padded", "body { background"),
        ("/empty.css", ""),
        ("/empty", ""),
    ] {
        for _ in 0..2 {
            let response = get(&proxy, target, &[]).await;
            assert_eq!(response.status, StatusCode::OK, "{target}");
            let body = response.body.as_ref().expect("the body is complete");
            let body = String::from_utf8_lossy(body);
            assert!(body.contains(text), "{target}: {body}");
            assert_eq!(text.is_empty(), body.is_empty(), "{target}: {body}");
        }
    }
}

/// Regression: a purge by the URL that browsers see matched nothing, and reported success.
#[tokio::test]
async fn purge_by_original_url_removes_proxied_entry() {
    let (other, own) = (other(), own(String::new()));
    let proxy = before(&own, &other, "");
    let port = other.address.port();
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{port}/b.png");
    let purge = |wish: PurgeRequest| proxy.purge(&wish);
    let of = |target: &str| Some(format!("https://www.site.test{target}"));
    let wishes = [
        PurgeRequest {
            url: of(&proxied_path),
            ..Default::default()
        },
        PurgeRequest {
            prefix: of(&format!("/.spdy/1/-/p/cdn.test~{port}/")),
            ..Default::default()
        },
        PurgeRequest {
            url: Some(format!("http://cdn.test:{port}/b.png")),
            ..Default::default()
        },
    ];
    for (round, wish) in wishes.into_iter().enumerate() {
        get(&proxy, &proxied_path, &[]).await;
        until("it is kept", || proxy.cache.usage().2 == 1).await;
        assert_eq!(other.times("/b.png"), round + 1);
        purge(wish).expect("a valid value");
        assert_eq!(proxy.cache.usage().2, 0);
    }
    let own_unrewritten = PurgeRequest {
        url: of("/a.css?spdy=off"),
        ..Default::default()
    };
    get(&proxy, "/a.css", &[]).await;
    until("it is kept", || proxy.cache.usage().2 == 1).await;
    purge(own_unrewritten).expect("a valid value");
    assert_eq!(proxy.cache.usage().2, 0);
    for target in ["/.spdy/", "/.spdy/1/-/p/unlisted.test/b.png"] {
        let wish = PurgeRequest {
            prefix: of(target),
            ..Default::default()
        };
        let Err(why) = purge(wish) else {
            panic!("{target} means nothing");
        };
        assert!(why.contains("expected the URL of the host itself"), "{why}");
    }
}

/// It was served on, since what is not served of another host was not taken for its word.
#[tokio::test]
async fn third_party_404_removes_stored_response() {
    let count = Arc::new(AtomicUsize::new(0));
    let other = Origin::start(move |_| {
        let control = ("cache-control", "max-age=0, stale-while-revalidate=600");
        let mut picture = respond(&[("content-type", "image/png"), control], "a picture");
        if count.fetch_add(1, Ordering::SeqCst) > 0 {
            *picture.status_mut() = StatusCode::NOT_FOUND;
        }
        std::future::ready(picture)
    });
    let own = own(String::new());
    let proxy = before(&own, &other, "");
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{}/b.png", other.address.port());
    assert_eq!(get(&proxy, &proxied_path, &[]).await.text(), "a picture");
    until("it is kept", || proxy.cache.usage().2 == 1).await;
    get(&proxy, &proxied_path, &[]).await;
    until("its host's word is taken", || proxy.cache.usage().2 == 0).await;
    let response = get(&proxy, &proxied_path, &[]).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
}

/// Regression: each set of accepted codings caused a revalidation.
#[tokio::test]
async fn stored_page_serves_all_codings_after_304() {
    let other = other();
    let own = changing(html(&other), |nth| match nth {
        0 => vec![("vary", "accept-encoding"), ("cache-control", "max-age=0")],
        _ => vec![("vary", "accept-encoding"), ("cache-control", "max-age=60")],
    });
    let proxy = before(&own, &other, "");
    get(&proxy, "/", &[]).await;
    until("it is kept", || proxy.cache.usage().2 > 0).await;
    for codings in ["gzip", "br", "zstd", "identity"] {
        let response = get(&proxy, "/", &[("accept-encoding", codings)]).await;
        assert_eq!(response.status, StatusCode::OK);
    }
    assert_eq!(own.times("/"), 2);
}

/// Regression: an answer that its origin does not compress, so that its length reveals nothing, was compressed here.
#[tokio::test]
async fn private_response_is_compressed_only_if_origin_did() {
    let other = other();
    let text = html(&other).repeat(20);
    let coded = spdy_proxy::body::encoder::encode(&[text.clone().into()], Coding::Gzip);
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let (text, coded) = (text.clone(), coded.clone());
        let private = ("cache-control", "private");
        let public = ("cache-control", "public, max-age=60");
        std::future::ready(match request.uri().path() {
            "/private" => respond(&[HTML, private], text),
            "/no-store" => respond(&[HTML, ("cache-control", "no-store")], text),
            "/login" => respond(&[HTML, ("set-cookie", "id=1")], text),
            "/json" => respond(&[("content-type", "application/json"), private], text),
            "/coded" => respond(&[HTML, private, ("content-encoding", "gzip")], coded),
            "/public" => respond(&[HTML, public], text),
            "/too-long" => respond(&[HTML, public], text.repeat(1000)),
            _ => respond(&[HTML], text),
        })
    });
    let careful = before(&own, &other, "[cache]\nobject_mib = 1\n");
    let (origin, port) = (own.address, other.address.port());
    let knowing = accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\ncompress_private = true\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style']\n"
    ));
    let (anybody, somebody) = (("x", "y"), ("cookie", "id=1"));
    let basic = ("authorization", "Basic eDp5");
    for (target, client, is_coded) in [
        ("/private", anybody, false),
        ("/no-store", anybody, false),
        ("/login", anybody, false),
        ("/json", anybody, false),
        ("/plain", somebody, false),
        ("/plain", basic, false),
        ("/plain", anybody, true),
        ("/coded", somebody, true),
        ("/public", somebody, true),
        ("/too-long", somebody, true),
    ] {
        let fields = [("accept-encoding", "gzip"), client];
        let response = get(&careful, target, &fields).await;
        let expected = ["", "gzip"][usize::from(is_coded)];
        assert_eq!(
            response.field("content-encoding"),
            expected,
            "{target} {client:?}"
        );
        let vary = ["", "accept-encoding"][usize::from(is_coded)];
        assert_eq!(response.field("vary"), vary, "{target} {client:?}");
        let response = get(&knowing, target, &fields).await;
        assert_eq!(
            response.field("content-encoding"),
            "gzip",
            "{target} {client:?}"
        );
    }
}

/// Regression: it was compressed like a public response, since it is stored.
#[tokio::test]
async fn cookie_variant_is_not_compressed() {
    let other = other();
    let text = html(&other).repeat(20);
    let own = Origin::start(move |_| {
        let (shared, vary) = (("cache-control", "s-maxage=60"), ("vary", "cookie"));
        std::future::ready(respond(&[HTML, shared, vary], text.clone()))
    });
    let proxy = before(&own, &other, "");
    for status in ["fwd=", "hit"] {
        for (client, expected) in [(("cookie", "id=1"), ""), (("x", "y"), "gzip")] {
            let response = get(&proxy, "/search", &[("accept-encoding", "gzip"), client]).await;
            assert!(
                response.field("cache-status").contains(status),
                "{response:?}"
            );
            assert_eq!(
                response.field("content-encoding"),
                expected,
                "{status} {client:?}"
            );
        }
    }
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

#[tokio::test]
async fn redirect_to_origin_name_becomes_site_name() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| {
        let host = request.headers()["host"]
            .to_str()
            .expect("ASCII")
            .to_owned();
        let mut response = respond(&[], "");
        *response.status_mut() = StatusCode::FOUND;
        let location = format!("http://{host}/there?x=1");
        response
            .headers_mut()
            .insert("location", location.parse().expect("a value"));
        std::future::ready(response)
    });
    let proxy = accelerator_of(&format!(
        "[listen]\ntls = ['0.0.0.0:443']\n[[site]]\nnames = ['www.site.test', 'site.test']\norigin = 'http://{}'\n",
        origin.address
    ));
    let redirect = get(&proxy, "/here", &[]).await;
    assert_eq!(
        redirect.field("location"),
        "https://www.site.test/there?x=1"
    );
    // To where the client has it from: by that name, at that door.
    for (secure, host, home) in [
        (true, "www.site.test", "https://www.site.test"),
        (true, "site.test", "https://site.test"),
        (false, "www.site.test:8080", "http://www.site.test:8080"),
    ] {
        let arrival = RequestInfo {
            protocol: Protocol::Http1,
            secure,
            priority: Priority::HIGHEST,
        };
        let request = Request::get("/here").header("host", host);
        let request = request.extension(arrival).body(Body::empty());
        let request = request.expect("a request");
        let redirect = proxy.answer(request, None).await;
        assert_eq!(redirect.headers()["location"], format!("{home}/there?x=1"));
    }
}

/// Regression: the host had the origin's port, and redirects and links led browsers there.
#[tokio::test]
async fn preserve_host_sends_client_host() {
    let origin = Origin::start(pages(&[("/a", &[FRESH], "a")]));
    let proxy = accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\naddress = '127.0.0.1'\nkeep_host = true\n",
        origin.address
    ));
    for host in ["www.site.test", "www.site.test:8443"] {
        let mut request = Request::get("/a")
            .body(Body::empty())
            .expect("the value is valid");
        let host = http::HeaderValue::from_static(host);
        request.headers_mut().insert("host", host.clone());
        support::collect_response(&proxy, request, 1).await;
        assert_eq!(origin.fields("/a")["host"], host);
    }
}

#[tokio::test]
async fn origin_gets_client_address_that_cannot_be_forged() {
    let origin = Origin::start(pages(&[("/a", &[FRESH], "a")]));
    let proxy = support::accelerator(&origin, "");
    let claims = [
        ("x-forwarded-for", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
        ("connection", "x-secret, close"),
        ("x-secret", "1"),
        ("accept-encoding", "zstd;q=1, br"),
    ];
    get(&proxy, "/a", &claims).await;
    let headers = origin.fields("/a");
    assert_eq!(headers["x-forwarded-for"], "192.0.2.1");
    assert_eq!(headers["x-forwarded-host"], "www.site.test");
    assert_eq!(headers["accept-encoding"], "br, zstd;q=0.9");
    assert_eq!(headers["cdn-loop"], "www.site.test");
    assert!(!headers.contains_key("forwarded") && !headers.contains_key("x-secret"));
    let looped = get(&proxy, "/a?2", &[("cdn-loop", "other, www.site.test;x=1")]).await;
    assert_eq!(looped.status, StatusCode::LOOP_DETECTED);
}

#[tokio::test]
async fn unknown_host_is_misdirected() {
    let origin = Origin::start(pages(&[]));
    let proxy = support::accelerator(&origin, "");
    let request = Request::get("/").header("host", "other.test");
    let request = request.body(Body::empty()).expect("a request");
    let response = proxy.answer(request, None).await;
    assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(origin.request_lines(), [""; 0]);
}
