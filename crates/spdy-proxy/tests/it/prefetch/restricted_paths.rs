//! Rules for paths, when the origin has a resource under a restricted path and clients request it by another one. In virtual time.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode, response};
use parking_lot::Mutex;
use spdy::body::Body;
use spdy::client::PushLimits;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;

use crate::support::stage::{DOCUMENT, SPDY, links, request};
use crate::support::wire::Between;

/// 198.51.100.1 may not request what is restricted.
const PATHS: &str = "---[site.rewrite]\n\
    [[site.paths]]\npath = '/secret.css'\ndeny = ['198.51.100.0/24']\n\
    [[site.paths]]\npath = '/admin/'\ndeny = ['198.51.100.0/24']\n\
    [[site.paths]]\npath = '/pub/'\norigin_path = '/'\n";
const PAGE: &str = "<!DOCTYPE html><link rel=stylesheet href=/pub/secret.css>\
    <link rel=stylesheet href=/pub/open.css>";

const ALLOWED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const DENIED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));

/// The accelerator, and the paths that its origin was asked for.
fn start() -> (Between, Arc<Mutex<Vec<String>>>) {
    let mut between = Between::start(PATHS);
    let requested: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = requested.clone();
    between.serve_origin(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let (kind, body) = match path.ends_with(".css") {
            true => ("text/css", "p { color: red }"),
            false => ("text/html", PAGE),
        };
        log.lock().push(path);
        let response = Response::builder()
            .header("content-type", kind)
            .header("cache-control", "max-age=86400");
        let response = response.body(Body::full(Bytes::from_static(body.as_bytes())));
        std::future::ready(response.expect("a response"))
    });
    (between, requested)
}

async fn connect(between: &Between, from: IpAddr, protocol: Protocol) -> Connection {
    let (io, _) = between.client_at(from, protocol, ServerOptions::default());
    let io: BoxIo = Box::new(io);
    let mut options = ClientOptions::default();
    options.spdy.pushes = Some(PushLimits::default());
    let connection = Connection::start(io, protocol, 0, &options, &between.runtime).await;
    connection.expect("a connection")
}

/// The response for `target`, and all that is hinted or pushed with it.
async fn load(
    between: &Between,
    client: &Connection,
    target: &str,
) -> (response::Parts, Vec<String>) {
    let mut request = request(
        target,
        &[&DOCUMENT[..], &[("accept", "text/html")]].concat(),
    );
    let (heads, mut interim) = InterimResponses::channel();
    request.extensions_mut().insert(heads);
    let response = async {
        let response = client.send(request, Priority::HIGHEST).await;
        let (head, body) = response.expect("a response").into_parts();
        let body = body.collect_up_to(1 << 20).await;
        body.expect("the body is complete");
        head
    };
    let head = between.wait(response).await.0;
    // A response is stored shortly after its reader has it.
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    let mut offered = links(&head.headers);
    while let Ok(early) = interim.try_recv() {
        offered.extend(links(&early.headers));
    }
    let pushes = client.take_pushes();
    offered.extend(pushes.iter().map(|push| push.request().uri.to_string()));
    (head, offered)
}

/// Regression: `/pub/secret.css` is `/secret.css` at the origin, and was prefetched, and pushed to clients that may not request it.
#[tokio::test]
async fn a_resource_restricted_at_the_origin_is_neither_prefetched_nor_pushed() {
    let (between, requested) = start();
    let client = connect(&between, ALLOWED, SPDY).await;
    load(&between, &client, "/").await;
    let prefetched = requested.lock().clone();
    assert_eq!(prefetched, ["/", "/open.css"]);
    for target in ["/pub/secret.css", "/pub/open.css"] {
        let (head, _) = load(&between, &client, target).await;
        assert_eq!(head.status, StatusCode::OK);
    }
    for protocol in [SPDY, Protocol::Http2] {
        let client = connect(&between, DENIED, protocol).await;
        let (head, offered) = load(&between, &client, "/").await;
        assert_eq!(head.status, StatusCode::OK);
        assert!(!offered.is_empty(), "{protocol}");
        let is_secret = |url: &String| url.contains("secret");
        assert!(!offered.iter().any(is_secret), "{protocol}: {offered:?}");
        let (refused, _) = load(&between, &client, "/pub/secret.css").await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
}

/// Regression: the hints of `/pub/admin/` were sent before the client was refused.
#[tokio::test]
async fn a_page_restricted_at_the_origin_has_no_hints_before_its_refusal() {
    let (between, _) = start();
    let client = connect(&between, ALLOWED, SPDY).await;
    for target in ["/pub/admin/", "/pub/open.css"] {
        let (head, _) = load(&between, &client, target).await;
        assert_eq!(head.status, StatusCode::OK);
    }
    for protocol in [SPDY, Protocol::Http2] {
        let client = connect(&between, DENIED, protocol).await;
        let (head, offered) = load(&between, &client, "/pub/admin/").await;
        assert_eq!(head.status, StatusCode::FORBIDDEN);
        assert_eq!(offered, [""; 0], "{protocol}");
    }
}
