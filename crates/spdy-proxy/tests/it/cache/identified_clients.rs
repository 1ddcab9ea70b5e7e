//! Clients that the origin identifies by a TLS certificate, or by a field of a trusted proxy: their responses are for them, as with
//! `Authorization` (RFC 9111 §3.5). In virtual time.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use spdy::body::Body;
use spdy_net::client_certificate::ClientCertificate;
use spdy_net::handler::Handler as _;
use spdy_proxy::serve::connection::ConnectionHandler;

use crate::support::wire::Between;

const TRUSTED: &str = "[listen]\ntls = []\nplain = ['0.0.0.0:8080']\ntrusted = ['192.0.2.0/24']\n";

/// How the origin may recognize the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Client {
    Anonymous,
    WithCertificate,
    OfProxy,
}

/// Names the client in a field. A first response is fresh for a second, and later ones for longer.
async fn origin(request: Request<Body>) -> Response<Body> {
    let has = |name: &str| request.headers().contains_key(name);
    let user = match has("client-cert") || has("remote-user") {
        true => "identified",
        false => "anonymous",
    };
    let is_head = request.method() == Method::HEAD;
    let (status, control) = match has("if-none-match") {
        true => (StatusCode::NOT_MODIFIED, "max-age=300"),
        false if is_head => (StatusCode::OK, "max-age=300"),
        false => (StatusCode::OK, "max-age=1"),
    };
    let scope = match request.uri().path() {
        "/public" => "public, ",
        _ => "",
    };
    let response = Response::builder()
        .status(status)
        .header("etag", "\"1\"")
        .header("cache-control", format!("{scope}{control}"))
        .header("x-user", user);
    let body = match status {
        StatusCode::OK if !is_head => Body::from("same"),
        _ => Body::empty(),
    };
    response.body(body).expect("a response")
}

/// The user that the response names.
async fn user(between: &Between, client: Client, method: Method, target: &str) -> String {
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "www.site.test")
        .header("x-forwarded-for", "203.0.113.7");
    if client == Client::OfProxy {
        request = request.header("remote-user", "alice");
    }
    let mut request = request.body(Body::empty()).expect("a request");
    let from = match client {
        // A proxy has a certificate of its own.
        Client::WithCertificate => {
            let certificate = ClientCertificate::new(b"a certificate");
            request.extensions_mut().insert(certificate);
            Ipv4Addr::new(198, 51, 100, 1)
        }
        _ => Ipv4Addr::new(192, 0, 2, 1),
    };
    let handler = ConnectionHandler::new(between.proxy.clone(), Some(IpAddr::V4(from)), None);
    let response = async {
        let (head, body) = handler.answer(request).await.into_parts();
        body.collect_up_to(1 << 20).await.expect("a whole body");
        head
    };
    let head = between.wait(response).await.0;
    // A response is stored shortly after its reader has it.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let user = head.headers["x-user"].to_str();
    user.expect("ASCII").to_owned()
}

fn start() -> Between {
    let mut between = Between::start(TRUSTED);
    between.serve_origin(origin);
    between
}

/// Regression: the fields of a 304, or of a response to HEAD, replaced those of the response that all clients get.
#[tokio::test]
async fn validation_by_an_identified_client_does_not_change_the_shared_response() {
    for client in [Client::WithCertificate, Client::OfProxy] {
        for method in [Method::GET, Method::HEAD] {
            let between = start();
            let first = user(&between, Client::Anonymous, Method::GET, "/").await;
            assert_eq!(first, "anonymous");
            between.clock.push(Duration::from_secs(2));
            let own = user(&between, client, method.clone(), "/").await;
            assert_eq!(own, "identified", "{client:?} {method}");
            let later = user(&between, Client::Anonymous, Method::GET, "/").await;
            assert_eq!(later, "anonymous", "{client:?} {method}");
        }
    }
}

/// As for a request with `Authorization`, a stored response is used if its origin marks it as shared.
#[tokio::test]
async fn identified_client_gets_stored_responses_that_are_marked_as_shared() {
    for client in [Client::WithCertificate, Client::OfProxy] {
        let between = start();
        for (target, expected) in [("/", "identified"), ("/public", "anonymous")] {
            user(&between, Client::Anonymous, Method::GET, target).await;
            let own = user(&between, client, Method::GET, target).await;
            assert_eq!(own, expected, "{client:?} {target}");
        }
        // Its own response is stored for all clients only if it is marked.
        for (target, expected) in [("/b", "anonymous"), ("/public?b", "identified")] {
            user(&between, client, Method::GET, target).await;
            let other = user(&between, Client::Anonymous, Method::GET, target).await;
            assert_eq!(other, expected, "{client:?} {target}");
        }
    }
}
