//! Requests that clients plant: they change no hints and no pushes of the next client. In virtual time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::protocol::Protocol;
use tokio::sync::Semaphore;

use crate::support::stage::{
    DOCUMENT, IMAGE, NAMED, PLANTERS, SPDY, Stage, links, networks, origin, request,
};
use crate::support::wire::Between;

#[tokio::test]
async fn planted_action_is_neither_hinted_nor_pushed() {
    let mut stage = Stage::start();
    let planted = [
        "/logout?confirm=1",
        "/logout",
        "/vote.png?for=mallory",
        "/stored.html",
        "/private.png",
        // A browser removes the dot segments, and requests another path.
        "/other.png/../logout",
        "/other.png/%2e%2e/logout",
    ];
    stage.plant(networks(PLANTERS), "/", &planted, &IMAGE).await;
    stage.plant(networks(PLANTERS), "/", &planted, &[]).await;
    assert_eq!(stage.offered("/").await, NAMED);
}

#[tokio::test]
async fn planted_double_slash_target_stays_same_origin() {
    let mut stage = Stage::start();
    let planted = [
        "//evil.test/x.png",
        "/\\evil.test/y.png",
        "///evil.test/z.png",
    ];
    stage.plant(networks(PLANTERS), "/", &planted, &IMAGE).await;
    assert_eq!(stage.offered("/").await, NAMED);
}

#[tokio::test]
async fn one_network_cannot_teach_resources() {
    let mut stage = Stage::start();
    stage.plant(networks(PLANTERS), "/", &[], &[]).await;
    let neighbours = (0..81).map(|n| IpAddr::from([192, 0, 2, n]));
    stage.plant(neighbours, "/", &["/other.png"], &IMAGE).await;
    let site = (0..40).map(|n| IpAddr::from([0x2001, 0xdb8, 1, n, 0, 0, 0, 1]));
    stage.plant(site, "/", &["/other.png"], &IMAGE).await;
    assert_eq!(stage.offered("/").await, NAMED);
}

#[tokio::test]
async fn non_subresource_request_teaches_nothing() {
    let mut stage = Stage::start();
    for kind in ["empty", "document", "iframe", "object", "embed"] {
        let fields = [("sec-fetch-dest", kind), ("sec-fetch-site", "same-origin")];
        stage
            .plant(networks(PLANTERS), "/", &["/c.png"], &fields)
            .await;
        assert_eq!(stage.offered("/").await, NAMED, "{kind}");
    }
    for site in ["cross-site", "same-site", "none"] {
        let fields = [("sec-fetch-dest", "image"), ("sec-fetch-site", site)];
        stage
            .plant(networks(PLANTERS), "/", &["/c.png"], &fields)
            .await;
        assert_eq!(stage.offered("/").await, NAMED, "{site}");
    }
}

#[tokio::test]
async fn request_with_content_neither_gets_nor_removes_hints() {
    let mut stage = Stage::start();
    stage
        .plant(networks(1), "/", &["/a.css", "/b.js"], &[])
        .await;
    let from = IpAddr::from([192, 0, 2, 1]);
    for protocol in [Protocol::Http1, Protocol::Http2, SPDY] {
        let client = stage.connect(from, protocol, true).await;
        let (heads, mut interim) = InterimResponses::channel();
        let mut request = request("/", &DOCUMENT);
        *request.body_mut() = Body::full(Bytes::from_static(b"x"));
        request.extensions_mut().insert(heads);
        let length = HeaderValue::from_static("1");
        request.headers_mut().insert("content-length", length);
        let answering = client.send(request, Priority::HIGHEST);
        let response = stage.between.wait(answering).await.0.expect("a response");
        assert_eq!(response.status(), StatusCode::OK, "{protocol}");
        assert_eq!(links(response.headers()), [""; 0], "{protocol}");
        assert!(interim.try_recv().is_err(), "{protocol}: a 103");
        assert!(client.take_pushes().is_empty(), "{protocol}: a push");
        assert_eq!(stage.offered("/").await, NAMED, "{protocol}");
    }
}

#[tokio::test]
async fn rejected_request_removes_no_hints() {
    let stage = Stage::start();
    stage
        .plant(networks(1), "/", &["/a.css", "/b.js"], &[])
        .await;
    // The page is stale then.
    stage.between.clock.advance(Duration::from_secs(700)).await;
    let from = IpAddr::from([192, 0, 2, 1]);
    let client = stage.connect(from, SPDY, false).await;
    let refused = [("accept", "text/html"), ("x-refused", "yes")];
    let head = stage.get(&client, "/", &refused).await;
    assert_eq!(head.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    let client = stage.connect(from, SPDY, false).await;
    let head = stage.get(&client, "/", &[("accept", "text/html")]).await;
    assert_eq!(links(&head.headers), ["/a.css", "/b.js"]);
}

/// `http://www.site.test` is the beginning of `http://www.site.test.br/`.
#[tokio::test]
async fn referer_with_host_prefix_teaches_nothing() {
    let mut between = Between::start(
        "---[site.rewrite]\n[[site]]\nnames = ['www.site.test.br']\norigin = 'http://origin.test:8001'\n[site.rewrite]\n",
    );
    let gate = Arc::new(Semaphore::new(1000));
    between.serve_origin(move |request| origin(request, gate.clone()));
    let mut stage = Stage {
        between,
        visitors: 0,
    };
    let other = "http://www.site.test.br/";
    for from in networks(PLANTERS) {
        let client = stage.connect(from, SPDY, false).await;
        let picture = "http://www.site.test.br/other.png";
        stage.get(&client, picture, &[]).await;
        stage.get(&client, other, &[("accept", "text/html")]).await;
        let referer = ("referer", other);
        stage.get(&client, "/other.png", &[referer]).await;
    }
    let offered = stage.offered(other).await;
    let is_learned = |url: &String| url.contains("other.png");
    assert!(!offered.iter().any(is_learned), "{offered:?}");
    assert!(
        offered.iter().any(|url| url.contains("a.css")),
        "{offered:?}"
    );
}
