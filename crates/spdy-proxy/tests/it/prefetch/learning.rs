//! What clients can teach the accelerator, and what they cannot: clients plant requests, and the tests check which pushes and hints
//! the next client gets. In virtual time.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, response};
use spdy::body::Body;
use spdy::client::PushLimits;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::network::BoxIo;
use spdy_net::options::SpdyClientOptions;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use tokio::sync::Semaphore;

use crate::support::wire::Between;

const SPDY: Protocol = Protocol::Spdy(Version::V31);
const HOME: &str = "http://www.site.test";
const PAGE: &str =
    "<!DOCTYPE html><link rel=stylesheet href=/a.css><script src=/b.js></script><img src=/c.png>";

/// Enough networks to outvote the visitors of a test, and not as many as bring a control view.
const PLANTERS: u8 = 9;

const DOCUMENT: [(&str, &str); 3] = [
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
];
const IMAGE: [(&str, &str); 3] = [
    ("sec-fetch-dest", "image"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-site", "same-origin"),
];

/// An answer of the origin: content type, `Cache-Control` and other fields, body.
fn page(
    path: &str,
    has_session: bool,
) -> (
    &'static str,
    Vec<(&'static str, &'static str)>,
    &'static str,
) {
    let cached = ("cache-control", "max-age=600");
    let tag = ("etag", "\"1\"");
    match path {
        "/" => ("text/html", vec![cached], PAGE),
        "/judged" => ("text/html", vec![("cache-control", "no-cache"), tag], PAGE),
        "/judged/public" => (
            "text/html",
            vec![("cache-control", "public, no-cache"), tag],
            PAGE,
        ),
        "/judged/lifetime" => (
            "text/html",
            vec![("cache-control", "public, max-age=0, must-revalidate"), tag],
            PAGE,
        ),
        "/with-sheet" => (
            "text/html",
            vec![cached],
            "<!DOCTYPE html><link rel=stylesheet href=/in-language.css>",
        ),
        "/account" => ("text/html", vec![("cache-control", "private")], PAGE),
        "/by-cookie" => (
            "text/html",
            vec![("cache-control", "public, max-age=600"), ("vary", "cookie")],
            match has_session {
                true => "<!DOCTYPE html><link rel=stylesheet href=/of-alice.css>",
                false => "<!DOCTYPE html>who are you?",
            },
        ),
        "/logout" => ("text/html", vec![("cache-control", "no-store")], "good bye"),
        "/stored.html" => ("text/html", vec![cached], "another page"),
        "/a.css" => (
            "text/css",
            vec![cached],
            "@font-face { font-family: F; src: url(/f.woff2?v=4.7) } p { background: url(/d.png) }",
        ),
        "/b.js" => ("text/javascript", vec![cached], "document.title = 'a'"),
        "/f.woff2" => ("font/woff2", vec![cached], "a font"),
        "/private.png" => ("image/png", vec![("cache-control", "private")], "one's own"),
        _ => ("image/png", vec![cached], "a picture"),
    }
}

/// A page and a sheet whose text has the `Accept-Language` of the request in a URL.
fn in_language(request: &Request<Body>) -> Option<Response<Body>> {
    let language = request.headers().get("accept-language");
    let language = language.map_or("en", |value| value.to_str().expect("ASCII"));
    let (kind, text) = match request.uri().path() {
        "/in-language" => (
            "text/html",
            format!("<!DOCTYPE html><link rel=stylesheet href=\"/i18n/{language}.css\">"),
        ),
        "/in-language.css" => (
            "text/css",
            format!("p {{ background: url(\"/i18n/{language}.png\") }}"),
        ),
        _ => return None,
    };
    let response = Response::builder()
        .header("content-type", kind)
        .header("cache-control", "max-age=600")
        .header("vary", "accept-language");
    Some(
        response
            .body(Body::from(text.into_bytes()))
            .expect("a response"),
    )
}

async fn origin(request: Request<Body>, gate: Arc<Semaphore>) -> Response<Body> {
    if let Some(response) = in_language(&request) {
        return response;
    }
    if request.headers().contains_key("x-refused") {
        let response = Response::builder().status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        return response.body(Body::empty()).expect("a response");
    }
    let has_session = request.headers().contains_key("cookie");
    let (kind, fields, body) = page(request.uri().path(), has_session);
    let mut response = Response::builder().header("content-type", kind);
    for (name, value) in fields {
        response = response.header(name, value);
    }
    if request.headers().contains_key("if-none-match") {
        gate.acquire()
            .await
            .expect("the semaphore is never closed")
            .forget();
        response = response.status(StatusCode::NOT_MODIFIED);
        return response.body(Body::empty()).expect("a response");
    }
    let body = Body::full(Bytes::from_static(body.as_bytes()));
    response.body(body).expect("a response")
}

/// An accelerator before the origin, and how many visitors it had.
struct Stage {
    between: Between,
    visitors: u8,
}

impl Stage {
    fn start() -> Self {
        Self::behind(Arc::new(Semaphore::new(1000)))
    }

    /// A request that validates a page waits for `gate`.
    fn behind(gate: Arc<Semaphore>) -> Self {
        let mut between = Between::start("---[site.rewrite]\n");
        between.serve_origin(move |request| origin(request, gate.clone()));
        Self {
            between,
            visitors: 0,
        }
    }

    async fn connect(&self, from: IpAddr, protocol: Protocol, accepts_pushes: bool) -> Connection {
        let server = ServerOptions::default();
        let (io, _) = self.between.client_at(from, protocol, server);
        let options = ClientOptions {
            spdy: SpdyClientOptions {
                pushes: accepts_pushes.then(PushLimits::default),
                ..SpdyClientOptions::default()
            },
            ..ClientOptions::default()
        };
        let io: BoxIo = Box::new(io);
        let runtime = &self.between.runtime;
        let connection = Connection::start(io, protocol, 0, &options, runtime).await;
        connection.expect("a connection")
    }

    async fn get(
        &self,
        client: &Connection,
        target: &str,
        fields: &[(&'static str, &'static str)],
    ) -> response::Parts {
        let request = request(target, fields);
        let response = async {
            let response = client.send(request, Priority::new(1)).await;
            let (head, body) = response.expect("a response").into_parts();
            body.collect_up_to(1 << 20)
                .await
                .expect("the body is complete");
            head
        };
        let head = self.between.wait(response).await.0;
        // A response is stored shortly after its reader has it.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        head
    }

    /// Clients at these addresses view `page`, and request `targets` in its name, each client on a connection of its own.
    async fn plant(
        &self,
        from: impl IntoIterator<Item = IpAddr>,
        page: &str,
        targets: &[&str],
        fields: &[(&'static str, &'static str)],
    ) {
        for address in from {
            let client = self.connect(address, SPDY, false).await;
            self.get(&client, page, &[("accept", "text/html")]).await;
            let referer = format!("{HOME}{page}").leak();
            let fields = [fields, &[("referer", &*referer)]].concat();
            for target in targets {
                self.get(&client, target, &fields).await;
            }
        }
    }

    /// The pushes and hints that visitors without cookies get for `target`: over SPDY with and without pushes, and over HTTP/2.
    /// URLs in order.
    async fn offered(&mut self, target: &str) -> Vec<String> {
        self.offered_to(target, &[]).await
    }

    /// The same for visitors that send these fields.
    async fn offered_to(
        &mut self,
        target: &str,
        fields: &[(&'static str, &'static str)],
    ) -> Vec<String> {
        let fields = [&DOCUMENT[..], fields].concat();
        let mut offered = Vec::new();
        for (protocol, accepts_pushes) in [(SPDY, true), (SPDY, false), (Protocol::Http2, false)] {
            self.visitors += 1;
            let from = IpAddr::from([203, 0, self.visitors, 1]);
            let client = self.connect(from, protocol, accepts_pushes).await;
            let (heads, mut interim) = InterimResponses::channel();
            let mut request = request(target, &fields);
            request
                .headers_mut()
                .insert("accept", HeaderValue::from_static("text/html"));
            request.extensions_mut().insert(heads);
            let response = self
                .between
                .wait(client.send(request, Priority::HIGHEST))
                .await
                .0;
            let (head, body) = response.expect("a response").into_parts();
            body.collect_up_to(1 << 20)
                .await
                .expect("the body is complete");
            offered.extend(links(&head.headers));
            while let Ok(early) = interim.try_recv() {
                offered.extend(links(&early.headers));
            }
            let pushes = client.take_pushes();
            offered.extend(pushes.iter().map(|push| push.request().uri.to_string()));
        }
        offered.sort();
        offered.dedup();
        offered
    }
}

fn request(target: &str, fields: &[(&'static str, &'static str)]) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    let url = match target.starts_with('/') {
        true => format!("{HOME}{target}"),
        false => target.to_owned(),
    };
    *request.uri_mut() = url.parse().expect("a URL");
    for &(name, value) in fields {
        let name = HeaderName::from_static(name);
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    request
}

fn links(headers: &http::HeaderMap) -> Vec<String> {
    let links = headers.get_all("link").iter();
    let url = |link: &HeaderValue| {
        let link = link.to_str().expect("ASCII");
        link.split(['<', '>']).nth(1).unwrap_or_default().to_owned()
    };
    links.map(url).collect()
}

/// One client in each of so many networks.
fn networks(count: u8) -> impl Iterator<Item = IpAddr> {
    (0..count).map(|n| IpAddr::from([198, 51, n, 1]))
}

/// The resources that the page names and cannot be drawn without.
const NAMED: [&str; 4] = [
    "/a.css",
    "/b.js",
    "http://www.site.test/a.css",
    "http://www.site.test/b.js",
];

#[tokio::test]
async fn planted_action_is_neither_hinted_nor_pushed() {
    let mut stage = Stage::start();
    let planted = [
        "/logout?confirm=1",
        "/logout",
        "/vote.png?for=mallory",
        "/stored.html",
        "/private.png",
        // A browser takes the dots out, and requests something else.
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

/// Until the origin has responded, it is unknown whether the client may have the page.
#[tokio::test]
async fn no_hints_for_page_requiring_revalidation() {
    let gate = Arc::new(Semaphore::new(1000));
    let mut stage = Stage::behind(gate.clone());
    stage
        .plant(networks(PLANTERS), "/judged", &["/c.png"], &IMAGE)
        .await;
    assert_eq!(stage.offered("/judged").await, [""; 0]);
    assert_eq!(stage.offered("/judged").await, [""; 0]);
}

/// `public` permits caches to store the page. It does not permit them to answer without the origin.
#[tokio::test]
async fn no_hints_for_public_page_requiring_revalidation() {
    for page in ["/judged/public", "/judged/lifetime"] {
        let gate = Arc::new(Semaphore::new(1000));
        let mut stage = Stage::behind(gate.clone());
        stage
            .plant(networks(PLANTERS), page, &["/c.png"], &IMAGE)
            .await;
        assert_eq!(stage.offered(page).await, [""; 0], "{page}");

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

const STRANGE: (&str, &str) = ("accept-language", "../logout?confirm=1#");

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
