//! Hints for resources that only a style sheet or a module of the page names, which a browser finds late. In virtual time.

use std::future::ready;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, Request, Response, header};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::protocol::Protocol;

use crate::support::stage::{HOME, Stage, links, networks, request};
use crate::support::wire::Between;

const PAGE: &str = "<!DOCTYPE html><link rel=stylesheet href=/a.css>\
    <script type=importmap>{\"imports\": {\"lib/\": \"/lib/\"}}</script>\
    <script type=module>import 'lib/a.js'</script><script type=module src=/app.js></script>";

/// Each variant of `/for-you` names the client's own sheet, and has no validator.
fn origin(request: &Request<Body>) -> Response<Body> {
    let client = request.headers().get("x-client");
    let client = client.map_or("none", |client| client.to_str().expect("ASCII"));
    let for_client =
        format!("<!DOCTYPE html><link rel=stylesheet href=/{client}.css><p>hello, {client}");
    let sheet = request.uri().path().strip_suffix(".css");
    let of_sheet =
        sheet.map(|name| format!("@font-face {{ font-family: F; src: url({name}.woff2) }}"));
    // The name of a font can be its length.
    let font = request.uri().path().strip_suffix(".woff2");
    let font_bytes = font.and_then(|name| name[1..].parse().ok());
    let font = "f".repeat(font_bytes.unwrap_or(6));
    let (kind, control, body) = match request.uri().path() {
        "/" => ("text/html", "max-age=600", PAGE),
        "/no-cache" => ("text/html", "no-cache", PAGE),
        "/for-you" => ("text/html", "no-cache", &for_client[..]),
        "/a.css" => (
            "text/css",
            "max-age=600",
            "@font-face { font-family: F; src: url(/used.woff2) } \
             @font-face { font-family: G; src: url(/unused.woff2) }",
        ),
        "/large-fonts" => (
            "text/html",
            "max-age=600",
            "<!DOCTYPE html><link rel=stylesheet href=/large-fonts.css>",
        ),
        "/large-fonts.css" => (
            "text/css",
            "max-age=600",
            "@font-face { font-family: A; src: url(/60000.woff2) } \
             @font-face { font-family: B; src: url(/50000.woff2) } \
             @font-face { font-family: C; src: url(/42400.woff2) }",
        ),
        path if path.ends_with(".css") => {
            ("text/css", "max-age=600", &of_sheet.unwrap_or_default()[..])
        }
        "/app.js" => (
            "text/javascript",
            "max-age=600",
            "import './part.js'; const comment = \"import '/cart/add?id=1'; import '/account.js'\"",
        ),
        "/lib/a.js" => (
            "text/javascript",
            "max-age=600",
            "export * from './b.js'; import('./never.js')",
        ),
        "/lib/b.js" => ("text/javascript", "max-age=600", "import '/lib/c.js?v=1'"),
        "/cart/add" => ("text/javascript", "no-store", "added"),
        "/account.js" => ("text/javascript", "private, max-age=600", "'of alice'"),
        path if path.ends_with(".js") => ("text/javascript", "max-age=600", "1"),
        _ => ("font/woff2", "max-age=600", &font[..]),
    };
    let response = Response::builder()
        .header("content-type", kind)
        .header("cache-control", control);
    let bytes = Bytes::copy_from_slice(body.as_bytes());
    let body = match client {
        "slow" => {
            Body::from_stream(stream::once(ready(io::Result::Ok(bytes))).chain(stream::pending()))
        }
        _ => Body::full(bytes),
    };
    response.body(body).expect("a response")
}

fn stage() -> Stage {
    let mut between = Between::start("---[site.rewrite]\n");
    between.serve_origin(|request| ready(origin(&request)));
    Stage {
        between,
        visitors: 0,
    }
}

const NAVIGATION: [(&str, &str); 3] = [
    ("accept", "text/html"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
];

/// A client requests `page`, and then what its browser would request: each target, by the document that names it.
async fn load(stage: &Stage, from: IpAddr, page: &str, loaded: &[(&str, &str)]) {
    let client = stage.connect(from, Protocol::Http1, false).await;
    stage.get(&client, page, &NAVIGATION).await;
    for &(referer, target) in loaded {
        let referer = format!("{HOME}{referer}").leak();
        let kind = match target.rsplit('.').next() {
            Some("css") => "style",
            Some("woff2") => "font",
            _ => "script",
        };
        let mode = if kind == "style" { "no-cors" } else { "cors" };
        let fields = [
            ("referer", &*referer),
            ("sec-fetch-dest", kind),
            ("sec-fetch-mode", mode),
        ];
        stage.get(&client, target, &fields).await;
    }
}

/// The `Link` headers that the next client gets with `page`.
async fn hinted(stage: &Stage, page: &str, client: &'static str) -> Vec<String> {
    let (response, _) = response(stage, page, client).await;
    let (head, body) = response.into_parts();
    body.collect_up_to(1 << 20).await.expect("the body");
    for link in head.headers.get_all(header::LINK) {
        let link = link.to_str().expect("ASCII");
        assert!(link.contains("rel=preload"), "{link}");
        let is_sheet = link.ends_with("; as=style");
        assert!(is_sheet || link.ends_with("; crossorigin"), "{link}");
    }
    links(&head.headers)
}

/// The response to the next client that requests `page`, and the time until its head.
async fn response(stage: &Stage, page: &str, client: &'static str) -> (Response<Body>, Duration) {
    let from = IpAddr::from([203, 0, 113, 1]);
    let connection = stage.connect(from, Protocol::Http1, false).await;
    let mut request = request(page, &NAVIGATION);
    let headers = request.headers_mut();
    headers.insert("x-client", HeaderValue::from_static(client));
    let sending = connection.send(request, Priority::HIGHEST);
    let (response, took) = stage.between.wait(sending).await;
    (response.expect("a response"), took)
}

const LOADED: [(&str, &str); 8] = [
    ("/", "/a.css"),
    ("/a.css", "/used.woff2"),
    ("/", "/lib/a.js"),
    ("/", "/app.js"),
    ("/app.js", "/part.js"),
    ("/lib/a.js", "/lib/b.js"),
    ("/lib/b.js", "/lib/c.js?v=1"),
    // No text of the page names these.
    ("/lib/b.js", "/lib/planted.js"),
];
/// What is hinted: first the sheet, which blocks rendering, and the font last.
const DEEP: [&str; 5] = [
    "/a.css",
    "/part.js",
    "/lib/b.js",
    "/lib/c.js?v=1",
    "/used.woff2",
];

#[tokio::test]
async fn one_client_teaches_what_sheets_and_modules_of_the_page_name() {
    let stage = stage();
    let first = networks(1).next().expect("a network");
    load(&stage, first, "/", &LOADED).await;
    assert_eq!(hinted(&stage, "/", "none").await, DEEP);
}

/// A browser requests a hinted font before images. So one that makes the fonts longer than 100 KiB together is left out.
#[tokio::test]
async fn fonts_are_hinted_up_to_a_sum_of_their_bytes() {
    let stage = stage();
    let fonts = ["/60000.woff2", "/50000.woff2", "/42400.woff2"];
    let loaded = fonts.map(|font| ("/large-fonts.css", font));
    let loaded = [&[("/large-fonts", "/large-fonts.css")], &loaded[..]].concat();
    let first = networks(1).next().expect("a network");
    load(&stage, first, "/large-fonts", &loaded).await;
    let mut hinted = hinted(&stage, "/large-fonts", "none").await;
    assert_eq!(hinted.remove(0), "/large-fonts.css");
    let sum = hinted.iter().map(|font| match &font[..] {
        "/60000.woff2" => 60_000,
        "/50000.woff2" => 50_000,
        _ => 42_400,
    });
    assert_eq!(hinted.len(), 2, "{hinted:?}");
    assert!(sum.sum::<u32>() <= 102_400, "{hinted:?}");
}

/// The origin sends the page again for each request, the same text each time.
#[tokio::test]
async fn page_that_is_fetched_each_time_has_hints_of_its_text() {
    let stage = stage();
    let loaded = LOADED.map(|(referer, target)| match referer {
        "/" => ("/no-cache", target),
        referer => (referer, target),
    });
    for from in networks(1) {
        load(&stage, from, "/no-cache", &loaded).await;
    }
    assert_eq!(hinted(&stage, "/no-cache", "none").await, DEEP);
}

/// A head does not wait for the end of a page that never comes.
#[tokio::test]
async fn head_waits_a_limited_time_for_the_end_of_the_page() {
    let stage = stage();
    let loaded = [("/no-cache", "/a.css"), ("/a.css", "/used.woff2")];
    for from in networks(1) {
        load(&stage, from, "/no-cache", &loaded).await;
    }
    let (_, at_once) = response(&stage, "/no-cache", "none").await;
    let (slow, took) = response(&stage, "/no-cache", "slow").await;
    assert_eq!(links(slow.headers()), [""; 0]);
    assert_eq!((at_once, took), (Duration::ZERO, Duration::from_millis(20)));
}

/// The same URL, another text for each client: none gets hints of another's.
#[tokio::test]
async fn names_of_one_clients_text_are_not_hinted_to_another() {
    let stage = stage();
    for from in networks(3) {
        let client = stage.connect(from, Protocol::Http1, false).await;
        let alice = ("x-client", "alice");
        stage
            .get(&client, "/for-you", &[&NAVIGATION[..], &[alice]].concat())
            .await;
        for (referer, target, kind, mode) in [
            (
                "http://www.site.test/for-you",
                "/alice.css",
                "style",
                "no-cors",
            ),
            (
                "http://www.site.test/alice.css",
                "/alice.woff2",
                "font",
                "cors",
            ),
        ] {
            let fields = [
                ("referer", referer),
                ("sec-fetch-dest", kind),
                ("sec-fetch-mode", mode),
                alice,
            ];
            stage.get(&client, target, &fields).await;
        }
    }
    assert_eq!(
        hinted(&stage, "/for-you", "alice").await,
        ["/alice.css", "/alice.woff2"]
    );
    assert_eq!(hinted(&stage, "/for-you", "bob").await, [""; 0]);
    // Bob's text was the last.
    assert_eq!(
        hinted(&stage, "/for-you", "alice").await,
        ["/alice.css", "/alice.woff2"]
    );
}

/// A text that a user has written may look like an import. No client may thereby make others request what is no stored public script.
#[tokio::test]
async fn what_only_looks_like_an_import_is_not_hinted() {
    let stage = stage();
    let loaded = [
        ("/", "/app.js"),
        ("/app.js", "/part.js"),
        ("/app.js", "/cart/add?id=1"),
        ("/app.js", "/account.js"),
    ];
    for from in networks(5) {
        load(&stage, from, "/", &loaded).await;
    }
    assert_eq!(hinted(&stage, "/", "none").await, ["/a.css", "/part.js"]);
}
