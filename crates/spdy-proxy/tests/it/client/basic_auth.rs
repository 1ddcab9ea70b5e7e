//! Paths that need a password.

use std::path::Path;
use std::sync::Arc;

use data_encoding::BASE64;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use spdy::body::Body;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use tempfile::TempDir;

use crate::support::{
    CollectedResponse, Origin, accelerator_of, collect_response, read_again, respond,
};

/// `secret` and `other`, by bcrypt with a cost of 5 and by SHA-1.
const USERS: &str = "alice:$2b$05$fPt4pBp/KDVTYaiUBDzZJ.Q8y.2T0iWP/PQzvSNdj6wAAOLO1TWbC\n\
                     bob:{SHA}0JQeaNqPOBUf+Gph/Fn3xc+fyqI=\n";

struct Protected {
    own: Origin,
    proxy: Arc<Proxy>,
    folder: TempDir,
}

fn config(own: &Origin, folder: &Path, more: &str) -> String {
    let (origin, users) = (own.address, folder.join("users"));
    format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.paths]]\npath = '/admin/'\nbasic_auth = {users:?}\n{more}"
    )
}

fn protected(more: &str) -> Protected {
    let own = Origin::start(|request: Request<bytes::Bytes>| {
        let seen = request.headers().get("authorization").is_some();
        let storage = ("cache-control", "public, max-age=600");
        std::future::ready(respond(&[storage], format!("with authorization: {seen}")))
    });
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join("users"), USERS).expect("write the file");
    let proxy = accelerator_of(&config(&own, folder.path(), more));
    Protected { own, proxy, folder }
}

async fn get(proxy: &Arc<Proxy>, target: &str, credentials: Option<&str>) -> CollectedResponse {
    get_from(proxy, 1, target, credentials).await
}

async fn get_from(
    proxy: &Arc<Proxy>,
    client: u8,
    target: &str,
    credentials: Option<&str>,
) -> CollectedResponse {
    let mut request = Request::get(target).header("host", "www.site.test");
    if let Some(credentials) = credentials {
        let encoded = BASE64.encode(credentials.as_bytes());
        request = request.header("authorization", format!("Basic {encoded}"));
    }
    let request = request.body(Body::empty()).expect("a request");
    collect_response(proxy, request, client).await
}

#[tokio::test]
async fn a_path_needs_a_password_in_any_spelling_and_from_the_cache() {
    let site = protected("basic_auth_realm = 'Back office'\n");
    for target in [
        "/admin/",
        "/admin",
        "/%61dmin/a",
        "//admin//a",
        "/x/../admin/a",
    ] {
        let refused = get(&site.proxy, target, None).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{target}");
        let challenge = "Basic realm=\"Back office\", charset=\"UTF-8\"";
        assert_eq!(refused.field("www-authenticate"), challenge);
        assert_eq!(refused.field("cache-control"), "no-store");
    }
    assert!(site.own.request_lines().is_empty());
    for credentials in ["alice:secret", "bob:other", "alice:secret"] {
        let response = get(&site.proxy, "/admin/a", Some(credentials)).await;
        assert_eq!(response.status, StatusCode::OK, "{credentials}");
        assert_eq!(response.text(), "with authorization: false");
        // Not for the shared caches between proxy and client.
        let storage = response.field("cache-control");
        assert_eq!(storage, "max-age=600, private, must-revalidate");
    }
    // One fetch, and the stored response is not for everyone.
    assert_eq!(site.own.request_lines(), ["GET /admin/a"]);
    for credentials in [
        None,
        Some("alice:other"),
        Some("carol:secret"),
        Some("alice:"),
    ] {
        let refused = get_from(&site.proxy, 2, "/admin/a", credentials).await;
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{credentials:?}");
    }
    let public = get(&site.proxy, "/public", None).await;
    assert_eq!(public.status, StatusCode::OK);
    assert_eq!(public.field("cache-control"), "public, max-age=600");
}

#[tokio::test]
async fn the_origin_gets_the_password_if_that_is_configured() {
    let site = protected("forward_authorization = true\n");
    let response = get(&site.proxy, "/admin/a", Some("alice:secret")).await;
    assert_eq!(response.text(), "with authorization: true");
}

#[tokio::test]
async fn a_client_that_guesses_is_limited_and_others_are_not() {
    let site = protected("");
    let right = get_from(&site.proxy, 2, "/admin/a", Some("alice:secret")).await;
    assert_eq!(right.status, StatusCode::OK);
    let mut limited = false;
    for number in 0..40 {
        let guess = format!("bob:{number}");
        let refused = get(&site.proxy, "/admin/a", Some(&guess)).await;
        limited |= refused.status == StatusCode::TOO_MANY_REQUESTS;
        assert_ne!(refused.status, StatusCode::OK);
    }
    assert!(limited);
    // A password that was verified costs nothing, and other clients have attempts of their own.
    for (client, credentials) in [(1, "alice:secret"), (3, "bob:other")] {
        let response = get_from(&site.proxy, client, "/admin/a", Some(credentials)).await;
        assert_eq!(response.status, StatusCode::OK, "{client}");
    }
}

/// Each hash takes a thread's time, so the attempts of a client at a time are limited, not only those of a second.
#[tokio::test]
async fn a_client_has_two_attempts_at_a_time() {
    let site = protected("");
    let guesses: Vec<String> = (0..8).map(|number| format!("alice:{number}")).collect();
    let attempts = guesses
        .iter()
        .map(|guess| get(&site.proxy, "/admin/a", Some(guess)));
    let mut limited = 0;
    for response in join_all(attempts).await {
        match response.status {
            StatusCode::TOO_MANY_REQUESTS => limited += 1,
            status => assert_eq!(status, StatusCode::UNAUTHORIZED),
        }
    }
    assert_eq!(limited, 6);
    // Requests with the same password are one attempt: a page may make many at once after a restart.
    let same = (0..8).map(|_| get_from(&site.proxy, 2, "/admin/a", Some("alice:secret")));
    for response in join_all(same).await {
        assert_eq!(response.status, StatusCode::OK);
    }
}

/// Regression: the credentials were removed before the guard looked for them.
#[tokio::test]
async fn a_response_that_needs_a_password_is_compressed_only_if_it_is_public() {
    for (control, is_coded) in [
        ("max-age=0", false),
        ("max-age=60", false),
        ("public, max-age=60", true),
    ] {
        let own = Origin::start(move |_| {
            let fields = [("content-type", "text/html"), ("cache-control", control)];
            std::future::ready(respond(&fields, "the same again and again ".repeat(100)))
        });
        let folder = tempfile::tempdir().expect("create a folder");
        std::fs::write(folder.path().join("users"), USERS).expect("write the file");
        let proxy = accelerator_of(&config(&own, folder.path(), ""));
        for attempt in 0..2 {
            let request = Request::get("/admin/a")
                .header("host", "www.site.test")
                .header("accept-encoding", "gzip")
                .header(
                    "authorization",
                    format!("Basic {}", BASE64.encode(b"bob:other")),
                );
            let request = request.body(Body::empty()).expect("a request");
            let response = collect_response(&proxy, request, 1).await;
            assert_eq!(response.status, StatusCode::OK);
            let coding = response.field("content-encoding");
            assert_eq!(
                coding == "gzip",
                is_coded,
                "{control}, {attempt}: {coding:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_reload_reads_the_file_again() {
    let site = protected("");
    let response = get(&site.proxy, "/admin/a", Some("alice:secret")).await;
    assert_eq!(response.status, StatusCode::OK);
    let users = USERS.lines().nth(1).expect("bob");
    std::fs::write(site.folder.path().join("users"), users).expect("write the file");
    read_again(&site.proxy, &config(&site.own, site.folder.path(), ""));
    for (credentials, expected) in [
        ("alice:secret", StatusCode::UNAUTHORIZED),
        ("bob:other", StatusCode::OK),
    ] {
        let response = get(&site.proxy, "/admin/a", Some(credentials)).await;
        assert_eq!(response.status, expected, "{credentials}");
    }
}

#[test]
fn wrong_keys_of_passwords_are_named() {
    for (keys, expected) in [
        (
            "forward_authorization = true",
            "site.paths.forward_authorization: expected basic_auth",
        ),
        (
            "basic_auth_realm = 'a'",
            "site.paths.basic_auth_realm: expected ASCII text",
        ),
        (
            "basic_auth = 'users'\nbasic_auth_realm = 'a\"b'",
            "site.paths.basic_auth_realm",
        ),
    ] {
        let text = format!(
            "[[site]]\nnames = ['a.test']\norigin = 'http://o.test'\n[[site.paths]]\npath = '/'\n{keys}\n"
        );
        let error = Config::parse(&text).expect_err("an error").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
