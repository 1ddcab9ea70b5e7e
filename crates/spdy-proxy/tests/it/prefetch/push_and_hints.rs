//! What is sent with a page that was stored before: pushed over SPDY, or hinted by 103 or `Link` to clients that accept no pushes. In
//! virtual time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, response};
use spdy::body::Body;
use spdy::client::{Push, PushLimits};
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use tokio::sync::Semaphore;

use crate::support::wire::Between;

const SPDY: Protocol = Protocol::Spdy(Version::V31);
const PAGE: &str =
    "<!DOCTYPE html><link rel=stylesheet href=/a.css><script src=/b.js></script><img src=/c.png>";
const SHEET: &str = "p { color: red }";
const SCRIPT: &str = "document.title = 'a'";
/// `max-age` of the page.
const LIFETIME: Duration = Duration::from_secs(10);
const ALL: [&str; 4] = ["/", "/a.css", "/b.js", "/c.png"];

/// Page, sheet and script; the script's `Cache-Control` is `script`. The page is fresh for [`LIFETIME`]. Its revalidation waits for `gate`.
async fn origin(
    request: Request<Body>,
    script: &'static str,
    gate: Arc<Semaphore>,
) -> Response<Body> {
    let (kind, control, body) = match request.uri().path() {
        "/" => ("text/html", "max-age=10", PAGE),
        "/a.css" => ("text/css", "max-age=86400", SHEET),
        "/b.js" => ("text/javascript", script, SCRIPT),
        _ => ("image/png", "max-age=86400", "not quite"),
    };
    let response = Response::builder()
        .header("content-type", kind)
        .header("cache-control", control)
        .header("etag", "\"1\"");
    if request.headers().contains_key("if-none-match") {
        gate.acquire()
            .await
            .expect("the semaphore is never closed")
            .forget();
        let response = response
            .status(StatusCode::NOT_MODIFIED)
            .body(Body::empty());
        return response.expect("a response");
    }
    let body = Body::full(Bytes::from_static(body.as_bytes()));
    response.body(body).expect("a response")
}

/// A client that accepts pushes if the protocol supports them.
fn taking() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.spdy.pushes = Some(PushLimits::default());
    options
}

async fn connected(between: &Between, protocol: Protocol, options: &ClientOptions) -> Connection {
    let (io, _) = between.client_by(protocol, ServerOptions::default());
    let io: BoxIo = Box::new(io);
    let connection = Connection::start(io, protocol, 0, options, &between.runtime).await;
    connection.expect("a connection")
}

fn request_for(target: &str) -> Request<Body> {
    let accept = match target {
        "/" => "text/html",
        _ => "*/*",
    };
    let request = Request::get(format!("http://www.site.test{target}"));
    let request = request.header("accept", accept).body(Body::empty());
    request.expect("a request")
}

/// The navigation of a browser with Fetch Metadata.
fn navigation_request() -> Request<Body> {
    let mut request = request_for("/");
    for (name, word) in [
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "none"),
    ] {
        let headers = request.headers_mut();
        headers.insert(name, http::HeaderValue::from_static(word));
    }
    request
}

async fn text(body: Body) -> Bytes {
    body.collect_up_to(1 << 20)
        .await
        .expect("the body is complete")
}

/// The response for `target`.
async fn get(between: &Between, client: &Connection, target: &str) -> (response::Parts, Bytes) {
    let response = async {
        let response = client.send(request_for(target), Priority::new(1)).await;
        let (head, body) = response.expect("a response").into_parts();
        (head, text(body).await)
    };
    between.wait(response).await.0
}

fn is_hit(head: &response::Parts) -> bool {
    let cache_status = head.headers.get("cache-status");
    cache_status.is_some_and(|cache_status| {
        cache_status
            .as_bytes()
            .windows(5)
            .any(|word| word == b"; hit")
    })
}

/// An accelerator from which a client already got the page and all that it names. The script has the `Cache-Control` `script`. Later
/// requests for the page reach the origin when `gate` lets them.
async fn visit_pages(more: &str, script: &'static str, gate: &Arc<Semaphore>) -> Between {
    let mut between = Between::start(&format!("{more}---[site.rewrite]\n"));
    let permits = gate.clone();
    between.serve_origin(move |request| origin(request, script, permits.clone()));
    let first = connected(&between, SPDY, &taking()).await;
    for target in ALL {
        let (head, _) = get(&between, &first, target).await;
        assert_eq!(head.status, StatusCode::OK);
        assert!(!head.headers.contains_key("link"), "no history yet");
    }
    assert!(first.take_pushes().is_empty(), "no history yet");
    // A response is stored slightly after its reader has it.
    while !is_hit(&get(&between, &first, "/a.css").await.0) {}
    // From here on the page is stale, and the origin is contacted for it.
    between.clock.advance(LIFETIME * 2).await;
    between
}

/// The same, all of it there to be had at once.
async fn open(more: &str, script: &'static str) -> Between {
    visit_pages(more, script, &Arc::new(Semaphore::new(1000))).await
}

const GOOD: &str = "max-age=86400";

/// The pushes, in order: URL, and the stream of the page.
fn pushed_urls(pushes: &[Push]) -> Vec<(String, StreamId)> {
    let one = |push: &Push| (push.request().uri.to_string(), push.associated_to());
    pushes.iter().map(one).collect()
}

fn links(headers: &HeaderMap) -> Vec<&str> {
    let links = headers.get_all("link").iter();
    links.map(|link| link.to_str().expect("ASCII")).collect()
}

const EARLY: [&str; 2] = [
    "</a.css>; rel=preload; as=style",
    "</b.js>; rel=preload; as=script",
];
const LATE: [&str; 2] = [
    "</a.css>; rel=\"subresource preload\"; as=style",
    "</b.js>; rel=\"subresource preload\"; as=script",
];

#[tokio::test]
async fn spdy_pushes_render_critical_resources() {
    for version in [Version::V2, Version::V3, Version::V31] {
        let between = open("", GOOD).await;
        let client = connected(&between, Protocol::Spdy(version), &taking()).await;
        let (page, text_of_page) = get(&between, &client, "/").await;
        assert_eq!(&text_of_page[..], PAGE.as_bytes());
        assert_eq!(links(&page.headers), [""; 0], "it has them");
        let stream = *page
            .extensions
            .get::<StreamId>()
            .expect("the response has a stream ID");
        let pushes = client.take_pushes();
        let expected =
            ["a.css", "b.js"].map(|name| (format!("http://www.site.test/{name}"), stream));
        assert_eq!(pushed_urls(&pushes), expected, "{version:?}");
        for (push, body) in pushes.into_iter().zip([SHEET, SCRIPT]) {
            let pushed = between
                .wait(push.response())
                .await
                .0
                .expect("the response arrives");
            assert_eq!(pushed.status(), StatusCode::OK);
            assert_eq!(&text(pushed.into_body()).await[..], body.as_bytes());
        }
    }
}

#[tokio::test]
async fn resource_received_in_this_session_is_not_pushed() {
    let between = open("", GOOD).await;
    let client = connected(&between, SPDY, &taking()).await;
    get(&between, &client, "/a.css").await;
    get(&between, &client, "/").await;
    let pushes = client.take_pushes();
    let [(url, _)] = &pushed_urls(&pushes)[..] else {
        panic!("expected only the script: {pushes:?}");
    };
    assert_eq!(url, "http://www.site.test/b.js");
    get(&between, &client, "/").await;
    assert!(client.take_pushes().is_empty(), "it was pushed before");
}

#[tokio::test]
async fn spdy_client_without_push_gets_link_headers() {
    let between = open("", GOOD).await;
    let client = connected(&between, SPDY, &ClientOptions::default()).await;
    assert_eq!(links(&get(&between, &client, "/").await.0.headers), LATE);
    let again = get(&between, &client, "/b.js").await;
    assert_eq!(&again.1[..], SCRIPT.as_bytes());

    let between = open("[learn]\npush = false\n", GOOD).await;
    let client = connected(&between, SPDY, &taking()).await;
    assert_eq!(links(&get(&between, &client, "/").await.0.headers), LATE);
    assert!(client.take_pushes().is_empty(), "it is switched off");
}

#[tokio::test]
async fn uncacheable_resource_is_hinted_beside_pushes() {
    let between = open("", "no-store").await;
    let client = connected(&between, SPDY, &taking()).await;
    let (page, _) = get(&between, &client, "/").await;
    assert_eq!(pushed_urls(&client.take_pushes()).len(), 1);
    assert_eq!(links(&page.headers), LATE[1..]);
}

/// The page is being revalidated at the origin, without an answer yet.
#[tokio::test]
async fn http2_gets_103_before_the_response() {
    let gate = Arc::new(Semaphore::new(0));
    let between = visit_pages("", GOOD, &gate).await;
    let client = connected(&between, Protocol::Http2, &taking()).await;
    let (heads, mut interim) = InterimResponses::channel();
    let mut request = navigation_request();
    request.extensions_mut().insert(heads);
    let answering = tokio::spawn(client.send(request, Priority::HIGHEST));
    let hints = between
        .wait(interim.recv())
        .await
        .0
        .expect("the value is reported");
    assert_eq!(hints.status, StatusCode::EARLY_HINTS);
    assert_eq!(links(&hints.headers), EARLY);
    assert!(!answering.is_finished(), "the origin has not answered");
    gate.add_permits(1);
    let page = between.wait(answering).await.0.expect("no panic");
    let page = page.expect("a response");
    assert_eq!(
        (page.status(), links(page.headers())),
        (StatusCode::OK, vec![])
    );
    assert_eq!(&text(page.into_body()).await[..], PAGE.as_bytes());
}

#[tokio::test]
async fn no_hints_over_http1_or_if_disabled_over_http2() {
    let between = open("[learn]\nearly_hints = false\n", GOOD).await;
    for protocol in [Protocol::Http2, Protocol::Http1] {
        let client = connected(&between, protocol, &taking()).await;
        let (heads, mut interim) = InterimResponses::channel();
        let mut request = navigation_request();
        request.extensions_mut().insert(heads);
        let page = between
            .wait(client.send(request, Priority::HIGHEST))
            .await
            .0;
        let page = page.expect("a response");
        assert_eq!(links(page.headers()), [""; 0], "{protocol}");
        assert!(interim.try_recv().is_err(), "{protocol}");
        assert_eq!(&text(page.into_body()).await[..], PAGE.as_bytes());
    }
}

/// Browsers of 2016 fail to load some pages whose response follows a 103, and do not announce what they accept.
#[tokio::test]
async fn only_navigation_requests_get_103() {
    let between = open("", GOOD).await;
    let all = ["sec-fetch-dest", "sec-fetch-mode"];
    for lacks in [&all[..], &all[..1], &all[1..]] {
        let client = connected(&between, Protocol::Http2, &taking()).await;
        let (heads, mut interim) = InterimResponses::channel();
        let mut request = navigation_request();
        for name in lacks {
            request.headers_mut().remove(*name);
        }
        request.extensions_mut().insert(heads);
        let page = between
            .wait(client.send(request, Priority::HIGHEST))
            .await
            .0;
        assert_eq!(links(page.expect("a response").headers()), [""; 0]);
        assert!(interim.try_recv().is_err(), "without {lacks:?}");
    }
}

/// Current browsers accept none over HTTP/2; a client that does gets the same.
#[tokio::test]
async fn http2_pushes_only_if_enabled_and_accepted() {
    let between = open("", GOOD).await;
    let mut pushing = ServerOptions::default();
    pushing.http2_push = true;
    let (io, _) = between.client_by(Protocol::Http2, pushing);
    let (mut client, connection) = h2::client::handshake(io).await.expect("a connection");
    tokio::spawn(connection);
    let (head, _) = request_for("/").into_parts();
    let request = Request::from_parts(head, ());
    let (mut response, _) = client
        .send_request(request, true)
        .expect("the connection is open");
    let mut promises = response.push_promises();
    let page = between.wait(response).await.0.expect("a response");
    assert_eq!(links(page.headers()), [""; 0], "it has them");
    for (target, body) in [("/a.css", SHEET), ("/b.js", SCRIPT)] {
        let promised = between.wait(promises.push_promise()).await.0;
        let (request, pushed) = promised
            .expect("the server promises another")
            .expect("the value is valid")
            .into_parts();
        assert_eq!(request.uri().path(), target);
        let mut pushed = between
            .wait(pushed)
            .await
            .0
            .expect("the response arrives")
            .into_body();
        let data = between.wait(pushed.data()).await.0.expect("a body");
        assert_eq!(&data.expect("the body is complete")[..], body.as_bytes());
    }
}
