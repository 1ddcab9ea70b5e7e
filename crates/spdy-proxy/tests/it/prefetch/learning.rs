//! Which resources an accelerator learns from clients, and which clients get hints and pushes of them. In virtual time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::protocol::Protocol;
use tokio::sync::Semaphore;

use crate::support::stage::{
    DOCUMENT, HOME, IMAGE, NAMED, PLANTERS, SPDY, STRANGE, Stage, links, networks, page, request,
};
use crate::support::wire::Between;

/// What the text of the page names, for a client that has pushes, and for one that has none.
const OF_TEXT: [&str; 6] = [
    "/a.css",
    "/b.js",
    "/c.png",
    "http://www.site.test/a.css",
    "http://www.site.test/b.js",
    "http://www.site.test/c.png",
];

#[tokio::test]
async fn referenced_and_public_resources_are_learned() {
    let mut stage = Stage::start();
    let targets = ["/a.css", "/b.js", "/c.png", "/other.png"];
    for from in networks(PLANTERS) {
        stage.plant([from], "/", &targets, &IMAGE).await;
        // Browsers request what a sheet names with the sheet as their referrer.
        let client = stage.connect(from, SPDY, false).await;
        for (target, kind) in [("/f.woff2?v=4.7", "font"), ("/d.png", "image")] {
            let fields = [
                ("sec-fetch-dest", kind),
                ("referer", "http://www.site.test/a.css"),
            ];
            stage.get(&client, target, &fields).await;
        }
    }
    let offered = stage.offered("/").await;
    let more = ["/c.png", "/d.png", "/f.woff2?v=4.7", "/other.png"];
    let all = ["/a.css", "/b.js"].iter().chain(&more);
    let mut all: Vec<_> = all
        .flat_map(|path| [(*path).to_owned(), format!("{HOME}{path}")])
        .collect();
    all.sort();
    assert_eq!(offered, all);
}

/// The request of a client with a cookie for its own page is followed by what is its alone.
#[tokio::test]
async fn resources_of_private_page_are_not_hinted_to_others() {
    let mut stage = Stage::start();
    let own = ["/files/x.jpg?cap=SECRET", "/files/of-alice.jpg"];
    for page in ["/account", "/by-cookie"] {
        for address in networks(PLANTERS) {
            let client = stage.connect(address, SPDY, false).await;
            let cookie = ("cookie", "who=alice");
            stage
                .get(&client, page, &[("accept", "text/html"), cookie])
                .await;
            let referer = format!("{HOME}{page}").leak();
            for target in own {
                let fields = [&IMAGE[..], &[("referer", &*referer), cookie]].concat();
                stage.get(&client, target, &fields).await;
            }
        }
        assert_eq!(stage.offered(page).await, [""; 0], "{page}");
    }
}

#[tokio::test]
async fn query_with_cookies_is_not_learned() {
    let mut stage = Stage::start();
    let fields = [&IMAGE[..], &[("cookie", "who=alice")]].concat();
    let own = ["/files/x.jpg?cap=SECRET"];
    stage.plant(networks(PLANTERS), "/", &own, &fields).await;
    assert_eq!(stage.offered("/").await, NAMED);
}

/// When the origin has confirmed the stored text, the client gets what this text names, and nothing else that clients requested.
#[tokio::test]
async fn page_requiring_revalidation_has_hints_of_its_text_only() {
    let gate = Arc::new(Semaphore::new(1000));
    let mut stage = Stage::behind(gate.clone());
    stage
        .plant(
            networks(PLANTERS),
            "/judged",
            &["/c.png", "/other.png"],
            &IMAGE,
        )
        .await;
    assert_eq!(stage.offered("/judged").await, OF_TEXT);
}

/// `public` permits caches to store the page. It does not permit them to answer without the origin.
#[tokio::test]
async fn no_early_hints_for_public_page_requiring_revalidation() {
    for page in ["/judged/public", "/judged/lifetime"] {
        let gate = Arc::new(Semaphore::new(1000));
        let mut stage = Stage::behind(gate.clone());
        stage
            .plant(networks(PLANTERS), page, &["/c.png"], &IMAGE)
            .await;
        assert_eq!(stage.offered(page).await, OF_TEXT, "{page}");

        // Over HTTP/2, while the origin has not answered.
        gate.forget_permits(1000);
        let from = IpAddr::from([203, 0, 200, 1]);
        let client = stage.connect(from, Protocol::Http2, false).await;
        let (heads, mut interim) = InterimResponses::channel();
        let mut request = request(page, &DOCUMENT);
        request.extensions_mut().insert(heads);
        let answering = tokio::spawn(client.send(request, Priority::HIGHEST));
        let clock = &stage.between.clock;
        clock.advance(Duration::from_secs(5)).await;
        assert!(
            !answering.is_finished(),
            "{page}: the origin has not answered"
        );
        assert!(interim.try_recv().is_err(), "{page}: a 103");
        gate.add_permits(1);
        let response = stage.between.wait(answering).await.0.expect("no panic");
        assert_eq!(response.expect("a response").status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn page_variant_references_stay_in_their_variant() {
    let mut stage = Stage::start();
    let english = [("accept-language", "en")];
    let stranger = stage
        .connect(IpAddr::from([192, 0, 2, 1]), SPDY, false)
        .await;
    stage.get(&stranger, "/in-language", &english).await;
    for from in networks(PLANTERS) {
        let client = stage.connect(from, SPDY, false).await;
        let view = [("accept", "text/html"), STRANGE];
        stage.get(&client, "/in-language", &view).await;
        let referer = ("referer", "http://www.site.test/in-language");
        let fields = [&IMAGE[..], &[STRANGE, referer]].concat();
        for planted in ["/logout?confirm=1", "/logout"] {
            stage.get(&client, planted, &fields).await;
        }
    }
    let own = ["/i18n/en.css", "http://www.site.test/i18n/en.css"];
    assert_eq!(stage.offered_to("/in-language", &english).await, own);
    let german = [("accept-language", "de")];
    // The first of these visitors, which takes pushes, gets the page from the origin.
    let own = ["/i18n/de.css"];
    assert_eq!(stage.offered_to("/in-language", &german).await, own);
    let unsaid = stage.offered("/in-language").await;
    assert!(
        unsaid.iter().all(|url| !url.contains("logout")),
        "{unsaid:?}"
    );
}

#[tokio::test]
async fn varying_stylesheet_references_are_not_learned() {
    let mut stage = Stage::start();
    let planted = ["/in-language.css", "/logout?confirm=1"];
    let fields = [&IMAGE[..], &[STRANGE]].concat();
    stage
        .plant(networks(PLANTERS), "/with-sheet", &planted, &fields)
        .await;
    let named = ["/in-language.css", "http://www.site.test/in-language.css"];
    assert_eq!(stage.offered("/with-sheet").await, named);
}

#[tokio::test]
async fn credentialed_path_is_learned_only_if_referenced() {
    for credentials in [("cookie", "who=alice"), ("authorization", "Basic YTpi")] {
        let mut stage = Stage::start();
        let fields = [&IMAGE[..], &[credentials]].concat();
        let targets = ["/files/of-alice.jpg", "/c.png"];
        // It is in the cache for all.
        stage
            .plant(networks(1), "/stored.html", &targets, &IMAGE)
            .await;
        stage
            .plant(networks(PLANTERS), "/", &targets, &fields)
            .await;
        let offered = stage.offered("/").await;
        let secret = |url: &String| url.contains("alice");
        assert!(!offered.iter().any(secret), "{credentials:?}: {offered:?}");
        let image = |url: &String| url == "/c.png";
        assert!(offered.iter().any(image), "{credentials:?}: {offered:?}");
    }
}

/// A page that was public, until its origin answers another one.
#[tokio::test]
async fn page_turned_private_loses_its_hints() {
    let mut between = Between::start("---[site.rewrite]\n");
    let is_private = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let private = is_private.clone();
    between.serve_origin(move |request: Request<Body>| {
        let is_private = private.load(std::sync::atomic::Ordering::Relaxed);
        async move {
            let (kind, mut fields, body) = page(request.uri().path(), false);
            let mut response = Response::builder().header("content-type", kind);
            if request.uri().path() == "/" {
                fields = vec![("cache-control", "max-age=10"), ("etag", "\"1\"")];
                if is_private {
                    response = response.status(StatusCode::FORBIDDEN);
                    fields = vec![("cache-control", "private")];
                }
            }
            for (name, value) in fields {
                response = response.header(name, value);
            }
            response
                .body(Body::full(Bytes::from_static(body.as_bytes())))
                .expect("a response")
        }
    });
    let mut stage = Stage {
        between,
        visitors: 0,
    };
    stage
        .plant(networks(1), "/", &["/a.css", "/b.js"], &[])
        .await;
    assert_eq!(stage.offered("/").await, NAMED);
    is_private.store(true, std::sync::atomic::Ordering::Relaxed);
    // From here on the page is stale, and is revalidated at the origin.
    let clock = &stage.between.clock;
    clock.advance(Duration::from_secs(20)).await;
    let client = stage
        .connect(IpAddr::from([192, 0, 2, 1]), SPDY, false)
        .await;
    let view = stage.get(&client, "/", &[("accept", "text/html")]).await;
    assert_eq!(view.status, StatusCode::FORBIDDEN);
    assert_eq!(
        links(&view.headers),
        [""; 0],
        "the head is that of another page"
    );
    assert_eq!(stage.offered("/").await, [""; 0]);
}
