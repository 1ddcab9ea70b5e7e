//! Rules for paths of a site: who may request them, which headers change, and how their responses are stored.

use std::sync::Arc;

use http::{Request, StatusCode};
use spdy::body::Body;
use spdy_proxy::cache::purge::PurgeRequest;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;

use crate::support::fields::{FRESH, ONCE};
use crate::support::{CollectedResponse, Origin, accelerator_of, collect_response, respond};

/// An origin whose responses have `fields` and the request's target as their body.
fn origin(fields: &'static [(&'static str, &'static str)]) -> Origin {
    Origin::start(move |request: Request<bytes::Bytes>| {
        let target = request
            .uri()
            .path_and_query()
            .expect("a target")
            .to_string();
        std::future::ready(respond(fields, target))
    })
}

fn proxy(own: &Origin, paths: &str) -> Arc<Proxy> {
    let origin = own.address;
    accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n{paths}"
    ))
}

/// The response to the client with the address 192.0.2.`client`.
async fn get_as(
    proxy: &Arc<Proxy>,
    client: u8,
    target: &str,
    fields: &[(&str, &str)],
) -> CollectedResponse {
    let mut request = Request::builder()
        .uri(target)
        .header("host", "www.site.test");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    collect_response(proxy, request, client).await
}

async fn get(proxy: &Arc<Proxy>, target: &str) -> CollectedResponse {
    get_as(proxy, 1, target, &[]).await
}

#[tokio::test]
async fn only_allowed_addresses_reach_a_path_in_any_spelling() {
    let own = origin(&[FRESH]);
    let proxy = proxy(
        &own,
        "[[site.paths]]\npath = '/admin/'\nallow = ['192.0.2.1', '198.51.100.0/24']\n\
         [[site.paths]]\npath = '/'\ndeny = ['192.0.2.3/32']\n",
    );
    for target in [
        "/admin/",
        "/admin/a",
        "/%61dmin/a",
        "//admin//a",
        "/admin;v=1/a",
        "/x/%2e%2e/admin/a",
        "/admin",
    ] {
        let refused = get_as(&proxy, 2, target, &[]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{target}");
    }
    assert!(own.request_lines().is_empty());
    for (client, target) in [(1, "/admin/a"), (2, "/b"), (2, "/admins")] {
        assert_eq!(
            get_as(&proxy, client, target, &[]).await.status,
            StatusCode::OK
        );
    }
    // It is stored by now, and still not for everyone.
    assert_eq!(
        get_as(&proxy, 2, "/admin/a", &[]).await.status,
        StatusCode::FORBIDDEN
    );
    // The entries of all folders of a path apply.
    assert_eq!(
        get_as(&proxy, 3, "/b", &[]).await.status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn a_client_above_the_rate_of_a_path_gets_429() {
    let own = origin(&[FRESH]);
    let proxy = proxy(
        &own,
        "[[site.paths]]\npath = '/login'\nrequests_per_second = 1\n",
    );
    // Five seconds are saved up.
    let mut refused = None;
    for number in 1..=20 {
        let response = get(&proxy, "/login").await;
        if response.status == StatusCode::TOO_MANY_REQUESTS {
            refused = Some((number, response));
            break;
        }
    }
    let (number, refused) = refused.expect("a refused request");
    assert!(number > 5, "{number}");
    assert_eq!(refused.headers["retry-after"], "1");
    // Other clients and paths are not affected.
    assert_eq!(
        get_as(&proxy, 2, "/login", &[]).await.status,
        StatusCode::OK
    );
    assert_eq!(get(&proxy, "/login2").await.status, StatusCode::OK);
}

#[tokio::test]
async fn headers_are_set_and_removed_in_requests_and_responses() {
    let own = origin(&[FRESH, ("x-powered-by", "origin"), ("x-kept", "yes")]);
    let proxy = proxy(
        &own,
        "[[site.paths]]\npath = '/'\nrequest_headers = { X-Env = 'prod', X-Debug = '' }\n\
         response_headers = { X-Powered-By = '', X-Frame-Options = 'DENY' }\n\
         [[site.paths]]\npath = '/plain/'\n",
    );
    for _ in 0..2 {
        let response = get_as(&proxy, 1, "/a", &[("x-debug", "1"), ("x-env", "client")]).await;
        assert_eq!(response.headers["x-frame-options"], "DENY");
        assert_eq!(response.headers["x-kept"], "yes");
        assert!(!response.headers.contains_key("x-powered-by"));
    }
    assert_eq!(own.times("/a"), 1, "the second response is a hit");
    let fields = own.fields("/a");
    assert_eq!(fields["x-env"], "prod");
    assert!(!fields.contains_key("x-debug"));
    // The longest path applies alone.
    let plain = get(&proxy, "/plain/b").await;
    assert_eq!(plain.headers["x-powered-by"], "origin");
}

#[tokio::test]
async fn a_ttl_replaces_what_the_origin_states_except_for_private_responses() {
    let own = origin(&[("cache-control", "no-cache")]);
    let ttl = "[[site.paths]]\npath = '/'\nttl_s = 60\n";
    let proxy_of_own = proxy(&own, ttl);
    for _ in 0..2 {
        let response = get(&proxy_of_own, "/a").await;
        // The client's own cache obeys the origin.
        assert_eq!(response.headers["cache-control"], "no-cache");
        assert!(!response.headers.contains_key("cdn-cache-control"));
    }
    assert_eq!(own.times("/a"), 1);
    for fields in [
        &[("cache-control", "private")][..],
        &[("cache-control", "no-store")],
        &[("set-cookie", "a=b")],
    ] {
        let own = origin(fields);
        let proxy = proxy(&own, ttl);
        get(&proxy, "/a").await;
        get(&proxy, "/a").await;
        assert_eq!(own.times("/a"), 2, "{fields:?}");
    }
}

#[tokio::test]
async fn an_unstored_path_is_fetched_each_time() {
    let own = origin(&[FRESH]);
    let proxy = proxy(&own, "[[site.paths]]\npath = '/live/'\nstore = false\n");
    for _ in 0..2 {
        get(&proxy, "/live/a").await;
        get(&proxy, "/b").await;
    }
    assert_eq!((own.times("/live/a"), own.times("/b")), (2, 1));
}

/// Regression: only the client's path was looked up, and the response of an unstored path was stored under another one.
#[tokio::test]
async fn an_unstored_path_at_the_origin_is_not_stored_under_the_clients_path() {
    let own = origin(&[FRESH]);
    let at = own.address;
    let proxy = proxy(
        &own,
        &format!(
            "[[site.paths]]\npath = '/live/'\nstore = false\n\
             [[site.paths]]\npath = '/pub/'\norigin_path = '/'\n\
             [[site.paths]]\npath = '/same/'\norigin = 'http://{at}'\norigin_path = '/'\n"
        ),
    );
    for _ in 0..2 {
        get(&proxy, "/pub/live/a").await;
        get(&proxy, "/same/live/b").await;
        get(&proxy, "/pub/c").await;
    }
    let times = ["/live/a", "/live/b", "/c"].map(|target| own.times(target));
    assert_eq!(times, [2, 2, 1]);
}

/// Regression: a rule for both the client's path and the path at the origin was charged twice.
#[tokio::test]
async fn a_request_is_charged_once_by_a_rate_for_both_paths() {
    let own = origin(&[FRESH]);
    let proxy = proxy(
        &own,
        "[[site.paths]]\npath = '/'\nrequests_per_second = 1\n\
         [[site.paths]]\npath = '/pub/'\norigin_path = '/'\n",
    );
    for number in 1..=5 {
        let response = get(&proxy, "/pub/a").await;
        assert_eq!(response.status, StatusCode::OK, "{number}");
    }
}

#[tokio::test]
async fn ignored_parameters_share_a_response_and_its_purge() {
    let own = origin(&[FRESH]);
    let config = "[[site.paths]]\npath = '/'\nignore_query = ['utm_*', 'fbclid']\n";
    let proxy = proxy(&own, config);
    for target in ["/a?utm_source=x&b=1", "/a?b=1&fbclid=2", "/a?b=1"] {
        let response = get(&proxy, target).await;
        // The origin got the parameters of the first request.
        assert_eq!(response.text(), "/a?utm_source=x&b=1", "{target}");
    }
    assert_eq!(get(&proxy, "/a?b=2&utm_x").await.text(), "/a?b=2&utm_x");
    let cloaked = "/a?utm_source=x;b=3&b=1";
    assert_eq!(get(&proxy, cloaked).await.text(), cloaked);
    assert_eq!(get(&proxy, "/c?utm_x=1").await.text(), "/c?utm_x=1");
    assert_eq!(get(&proxy, "/c").await.text(), "/c?utm_x=1");
    let purge = PurgeRequest {
        url: Some("http://www.site.test/a?utm_medium=y&b=1".to_owned()),
        ..PurgeRequest::default()
    };
    let purged = proxy.cache.purge(&proxy.origins.sites(), &purge);
    assert_eq!(purged.expect("a valid purge").0, 1);
    assert_eq!(get(&proxy, "/a?b=1").await.text(), "/a?b=1");
}

#[tokio::test]
async fn settings_of_a_path_do_not_apply_to_ambiguous_targets() {
    let own = origin(&[("cache-control", "no-cache")]);
    let proxy = proxy(
        &own,
        "[[site.paths]]\npath = '/assets/'\nttl_s = 60\n\
         [[site.paths]]\npath = '/account/'\nstore = false\n",
    );
    for target in [
        "/account/..%2fassets%2fx",
        "/assets/..%2faccount%2fx",
        "/assets;x/../a",
    ] {
        get(&proxy, target).await;
        get(&proxy, target).await;
        assert_eq!(own.times(target), 2, "{target}");
    }
    // Encodings and repeated slashes that change no name make no difference.
    get(&proxy, "/assets/a%20b").await;
    get(&proxy, "/assets/a%20b").await;
    assert_eq!(own.times("/assets/a%20b"), 1);
}

#[tokio::test]
async fn headers_cannot_be_avoided_by_another_spelling() {
    let own = origin(&[FRESH]);
    let proxy = proxy(
        &own,
        "[[site.paths]]\npath = '/'\nresponse_headers = { X-Frame-Options = 'DENY' }\n\
         [[site.paths]]\npath = '/admin/'\nresponse_headers = { X-Frame-Options = 'SAMEORIGIN' }\n",
    );
    for (target, expected) in [
        ("//x", "DENY"),
        ("/x;a/..%2fy", "DENY"),
        ("/x%2fy", "DENY"),
        ("//admin/a", "SAMEORIGIN"),
        ("/%61dmin/a", "SAMEORIGIN"),
        ("/admin;v=1/a", "SAMEORIGIN"),
    ] {
        let response = get(&proxy, target).await;
        assert_eq!(response.field("x-frame-options"), expected, "{target}");
    }
}

#[tokio::test]
async fn a_path_in_another_spelling_is_not_sent_to_its_origin() {
    let (own, app) = (origin(&[ONCE]), origin(&[ONCE]));
    let origin = format!("origin = 'http://{}'", app.address);
    let proxy = proxy(
        &own,
        &format!("[[site.paths]]\npath = '/api/'\n{origin}\norigin_path = '/v1/'\n"),
    );
    for target in ["/%61pi/a", "//api/a", "/api/..%2fa", "/api/x/../a"] {
        get(&proxy, target).await;
        assert_eq!(own.times(target), 1, "{target}");
    }
    assert!(app.request_lines().is_empty());
}

#[tokio::test]
async fn a_ttl_does_not_share_responses_to_cookies() {
    let own = origin(&[]);
    let proxy = proxy(&own, "[[site.paths]]\npath = '/'\nttl_s = 60\n");
    for _ in 0..2 {
        get_as(&proxy, 1, "/a", &[("cookie", "session=1")]).await;
    }
    assert_eq!(own.times("/a"), 2);
}

#[test]
fn wrong_rules_for_paths_are_named() {
    let site = "[[site]]\nnames = ['a.test']\norigin = 'http://b.test'\n[[site.paths]]\n";
    for (entry, expected) in [
        (
            "path = 'admin/'",
            "site.paths.path: expected a path that begins with /",
        ),
        (
            "path = '/%61/'",
            "without a query, an encoding or a pattern",
        ),
        (
            "path = '/'\n[[site.paths]]\npath = '/'",
            "each path once in a site, found \"/\"",
        ),
        (
            "path = '/'\nallow = ['all']",
            "site.paths.allow: expected addresses and ranges, such as 10.0.0.0/8, and no mapped IPv4 addresses, found \"all\"",
        ),
        (
            "path = '/'\ndeny = ['::ffff:10.0.0.0/104']",
            "site.paths.deny: expected addresses and ranges, such as 10.0.0.0/8, and no mapped",
        ),
        (
            "path = '/'\nrequests_per_second = 0",
            "site.paths.requests_per_second: expected at least 1",
        ),
        ("path = '/'\nttl_s = 0", "`store = false` stores nothing"),
        (
            "path = '/'\nrequest_headers = { Content-Length = '1' }",
            "found \"Content-Length\"",
        ),
        (
            "path = '/'\nresponse_headers = { 'X Y' = '1' }",
            "found \"X Y\"",
        ),
        (
            "path = '/'\nignore_query = ['*_a']",
            "with * only at the end, found \"*_a\"",
        ),
    ] {
        let error = Config::parse(&format!("{site}{entry}\n")).expect_err(entry);
        let error = error.to_string();
        assert!(error.contains(expected), "{entry}: {error}");
    }
}

#[tokio::test]
async fn a_path_may_have_an_origin_and_a_path_there() {
    let own = origin(&[ONCE]);
    let app = Origin::start(|request: Request<bytes::Bytes>| {
        let target = request
            .uri()
            .path_and_query()
            .expect("a target")
            .to_string();
        let mut response = respond(&[ONCE], format!("app {target}"));
        let host = request.headers()["host"]
            .to_str()
            .expect("ASCII")
            .to_owned();
        let location = match &target[..] {
            "/v1/full" => format!("http://{host}/v1/there"),
            "/v1/rooted" => "/v1/there?a=1".to_owned(),
            _ => "/elsewhere".to_owned(),
        };
        let location = location.parse().expect("a value");
        response.headers_mut().insert("location", location);
        std::future::ready(response)
    });
    let address = app.address;
    let paths = format!(
        "[[site.paths]]\npath = '/api/'\norigin = 'http://{address}'\norigin_path = '/v1/'\n\
         [[site.paths]]\npath = '/old.html'\norigin_path = '/new.html'\n"
    );
    let proxy = proxy(&own, &paths);
    for (target, answer) in [
        ("/api/a?b=1", "app /v1/a?b=1"),
        ("/api", "/api"),
        ("/a", "/a"),
        ("/old.html?b", "/new.html?b"),
        ("/old.html5", "/old.html5"),
    ] {
        assert_eq!(get(&proxy, target).await.text(), answer, "{target}");
    }
    assert_eq!(app.fields("/v1/a?b=1")["host"], address.to_string());
    for (target, location) in [
        ("/api/full", "https://www.site.test/api/there"),
        ("/api/rooted", "/api/there?a=1"),
        ("/api/other", "/elsewhere"),
    ] {
        let response = get(&proxy, target).await;
        assert_eq!(response.field("location"), location, "{target}");
    }
}
