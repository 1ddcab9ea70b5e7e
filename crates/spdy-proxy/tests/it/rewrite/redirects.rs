//! Redirects of other hosts to further resources: how long the answer is stored under the first URL, and which pages can read it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_proxy::cache::purge::PurgeRequest;
use spdy_proxy::proxy::Proxy;

use crate::support::fields::JS;
use crate::support::{CollectedResponse, Origin, accelerator_of, get, pages, respond};

const YEAR: (&str, &str) = ("cache-control", "max-age=31536000, immutable");
const LATEST: &str = "/lib@latest.js";
const TARGET: &str = "/lib@1.2.3.js";

type Fields = &'static [(&'static str, &'static str)];

/// `https://www.site.test:8443`, which has no pages and moves what `cdn.test` and `img.test` have; both are `other`.
fn before(other: &Origin) -> Arc<Proxy> {
    before_pages(&Origin::start(pages(&[])), other)
}

/// The same with the pages of `own`.
fn before_pages(own: &Origin, other: &Origin) -> Arc<Proxy> {
    let (origin, port) = (own.address, other.address.port());
    let hosts = ["cdn.test", "img.test"].map(|host| {
        format!(
            "[[site.rewrite.hosts]]\nhost = '{host}:{port}'\nscheme = 'http'\nkinds = ['image', 'style', 'script', 'font']\n"
        )
    });
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\n\
         resolve = {{ 'cdn.test' = '127.0.0.1', 'img.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n{}",
        hosts.concat()
    ))
}

fn proxied_path(other: &Origin, target: &str) -> String {
    format!("/.spdy/1/-/p/cdn.test~{}{target}", other.address.port())
}

/// A 302 to `location`.
fn redirect_to(location: &str, fields: &[(&str, &str)]) -> Response<Body> {
    let mut response = respond(fields, "");
    *response.status_mut() = StatusCode::FOUND;
    let location = location.parse().expect("a URL");
    response.headers_mut().insert("location", location);
    response
}

/// The library that is good for a year, where a redirect with these fields led to it.
async fn get_redirected(fields: Fields) -> (Origin, Arc<Proxy>, CollectedResponse) {
    let other = Origin::start(move |request: Request<Bytes>| async move {
        match request.uri().path() {
            LATEST => redirect_to(TARGET, fields),
            _ => respond(&[JS, YEAR, ("etag", "\"1.2.3\"")], "library"),
        }
    });
    let proxy = before(&other);
    let response = get(&proxy, &proxied_path(&other, LATEST), &[]).await;
    assert_eq!(
        (response.status, response.text()),
        (StatusCode::OK, "library")
    );
    (other, proxy, response)
}

#[tokio::test]
async fn redirected_response_is_fresh_no_longer_than_redirect() {
    let rows: [(Fields, &str, RangeInclusive<u64>, &str); 5] = [
        (
            &[("cache-control", "no-store")],
            "no-store, ",
            0..=0,
            "detail=no-store",
        ),
        (&[], "", 0..=0, "detail=no-freshness"),
        (
            &[("cache-control", "private, max-age=90")],
            "private, ",
            60..=90,
            "detail=private",
        ),
        (&[("cache-control", "max-age=90")], "", 60..=90, "stored"),
        (
            &[("cache-control", "max-age=90"), ("age", "40")],
            "",
            20..=50,
            "stored",
        ),
    ];
    for (fields, directive, lifetimes, status) in rows {
        let (other, proxy, first) = get_redirected(fields).await;
        let is_within = |response: &CollectedResponse| {
            let control = response.field("cache-control").strip_prefix(directive)?;
            let control = control.strip_prefix("max-age=")?;
            let seconds = control.split(',').next()?.parse().ok()?;
            Some(lifetimes.contains(&seconds) && !control.contains("immutable"))
        };
        assert_eq!(is_within(&first), Some(true), "{fields:?}: {first:?}");
        assert!(
            first.field("cache-status").ends_with(status),
            "{fields:?}: {first:?}"
        );
        for name in ["expires", "surrogate-key"] {
            assert_eq!(first.field(name), "");
        }
        let again = get(&proxy, &proxied_path(&other, LATEST), &[]).await;
        assert_eq!(again.text(), "library");
        assert_eq!(is_within(&again), Some(true), "{fields:?}: {again:?}");
        let times = if status == "stored" { 1 } else { 2 };
        assert_eq!(
            (other.times(LATEST), other.times(TARGET)),
            (times, times),
            "{fields:?}"
        );
    }
}

#[tokio::test]
async fn client_conditions_apply_to_redirected_response() {
    let (other, proxy, _) = get_redirected(&[]).await;
    let not_modified = [("if-none-match", "\"1.2.3\"")];
    let not_modified = get(&proxy, &proxied_path(&other, LATEST), &not_modified).await;
    assert_eq!(
        (not_modified.status, not_modified.text()),
        (StatusCode::NOT_MODIFIED, "")
    );
    assert!(!other.fields(LATEST).contains_key("if-none-match"));
    assert!(!other.fields(TARGET).contains_key("if-none-match"));
}

#[tokio::test]
async fn purge_of_redirect_target_removes_stored_response() {
    let (other, proxy, _) = get_redirected(&[("cache-control", "max-age=600")]).await;
    let port = other.address.port();
    let purge = |target: &str| {
        let wish = PurgeRequest {
            url: Some(format!("http://cdn.test:{port}{target}")),
            ..PurgeRequest::default()
        };
        proxy.purge(&wish).expect("a valid planned request").0
    };
    assert_eq!(purge("/other.js"), 0);
    assert_eq!(purge(TARGET), 1);
    get(&proxy, &proxied_path(&other, LATEST), &[]).await;
    assert_eq!(other.times(LATEST), 2);
    assert_eq!(purge(LATEST), 1);
}

/// A page can read a redirected resource only if each host on the way allows it. A host to which another host redirects gets `Origin:
/// null`.
#[tokio::test]
async fn cors_response_is_readable_if_every_hop_allows_it() {
    const CORS: [(&str, &str); 3] = [
        ("sec-fetch-dest", "font"),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-site", "same-origin"),
    ];
    let any = ("access-control-allow-origin", "*");
    let other = Origin::start(move |request: Request<Bytes>| async move {
        let host = request.headers()["host"].to_str().expect("a host");
        let far = host.replace("cdn.test", "img.test");
        let fresh = ("cache-control", "max-age=60");
        let font = ("content-type", "font/woff2");
        match request.uri().path() {
            "/near" => redirect_to("/font", &[fresh, any]),
            "/far" => redirect_to(&format!("http://{far}/font"), &[fresh, any]),
            "/silent" => redirect_to("/font", &[fresh]),
            _ => respond(&[font, fresh, any], "a font"),
        }
    });
    let proxy = before(&other);
    for (target, origin) in [("/near", "https://www.site.test:8443"), ("/far", "null")] {
        let response = get(&proxy, &proxied_path(&other, target), &CORS).await;
        assert_eq!(
            (response.status, response.text()),
            (StatusCode::OK, "a font"),
            "{target}"
        );
        assert_eq!(other.fields(target)["origin"], "https://www.site.test:8443");
        assert_eq!(other.fields("/font")["origin"], origin, "{target}");
    }
    // The client states that it reads it, or states nothing and it is a font: but then it may be opening it as a page.
    for (fields, expected) in [
        (&CORS[..], StatusCode::TEMPORARY_REDIRECT),
        (&[], StatusCode::NOT_FOUND),
    ] {
        let response = get(&proxy, &proxied_path(&other, "/silent"), fields).await;
        assert_eq!(response.status, expected, "{fields:?}");
    }
}

/// Regression: a stored answer was served as if it came from the first host only, however the later request loads it.
#[tokio::test]
async fn stored_redirected_response_is_checked_for_each_hop() {
    let other = Origin::start(move |request: Request<Bytes>| async move {
        let host = request.headers()["host"].to_str().expect("a host");
        let far = host.replace("cdn.test", "img.test");
        let fresh = ("cache-control", "max-age=60");
        let any = ("access-control-allow-origin", "*");
        match request.uri().path() {
            "/far" => redirect_to(&format!("http://{far}/library"), &[fresh, any]),
            "/near" => redirect_to("/library", &[fresh, any]),
            _ => respond(&[JS, fresh, any], "library"),
        }
    });
    let port = other.address.port();
    let own = Origin::start(move |_| {
        let policy = format!("script-src 'self' http://cdn.test:{port}");
        let fields = [
            ("content-type", "text/html"),
            ("content-security-policy", &policy),
        ];
        std::future::ready(respond(&fields, "a page"))
    });
    let proxy = before_pages(&own, &other);
    // As modules are loaded: an answer that does not state how it is loaded is stored with those that do.
    let script = [
        ("sec-fetch-dest", "script"),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-site", "same-origin"),
    ];
    let status = |target: &'static str, fields: &'static [(&str, &str)]| {
        let (proxy, target) = (proxy.clone(), proxied_path(&other, target));
        async move { get(&proxy, &target, fields).await.status }
    };
    for target in ["/far", "/near"] {
        for _ in ["fetched", "kept"] {
            assert_eq!(status(target, &[]).await, StatusCode::OK, "{target}");
        }
    }
    // The imports of a module are relative to its final URL.
    let redirected = get(&proxy, &proxied_path(&other, "/far"), &script).await;
    assert_eq!(redirected.status, StatusCode::TEMPORARY_REDIRECT);
    let location = format!("http://cdn.test:{port}/far");
    assert_eq!(redirected.field("location"), location);
    let near = get(&proxy, &proxied_path(&other, "/near"), &script).await;
    assert_eq!(near.text(), "library");
    // A page that lets the first host bring scripts, and not the second.
    get(&proxy, "/", &[]).await;
    assert_eq!(status("/far", &[]).await, StatusCode::NOT_FOUND);
    assert_eq!(status("/near", &[]).await, StatusCode::OK);
    assert_eq!(other.times("/library"), 2, "all other objects were stored");
}

/// The imports of a module are relative to its final URL, so its browser must know it. The redirect is stored like other responses.
#[tokio::test]
async fn redirect_of_a_script_to_another_folder_is_passed_under_the_sites_name() {
    let other = Origin::start(move |request: Request<Bytes>| async move {
        let any = ("access-control-allow-origin", "*");
        let fresh = ("cache-control", "public, s-maxage=600, max-age=60");
        match request.uri().path() {
            "/lib@1" => redirect_to("/lib@1.2.3/lib.js", &[fresh, any, ("set-cookie", "id=1")]),
            "/range@1" => redirect_to("/lib@1", &[fresh, any]),
            "/silent@1" => redirect_to("/lib@1.2.3/lib.js", &[fresh]),
            _ => respond(&[JS, YEAR, any], "library"),
        }
    });
    let proxy = before(&other);
    let module = [
        ("sec-fetch-dest", "script"),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-site", "same-origin"),
    ];
    for outcome in ["stored", "hit"] {
        let redirect = get(&proxy, &proxied_path(&other, "/lib@1"), &module).await;
        assert_eq!(redirect.status, StatusCode::FOUND);
        let expected = proxied_path(&other, "/lib@1.2.3/lib.js");
        assert_eq!(redirect.field("location"), expected);
        assert!(
            redirect.field("cache-status").contains(outcome),
            "{redirect:?}"
        );
        assert_eq!(redirect.field("set-cookie"), "");
        assert_eq!(get(&proxy, &expected, &module).await.text(), "library");
    }
    assert_eq!(
        (other.times("/lib@1"), other.times("/lib@1.2.3/lib.js")),
        (1, 1)
    );
    // A redirect in the same folder is followed before.
    for outcome in ["stored", "hit"] {
        let redirect = get(&proxy, &proxied_path(&other, "/range@1"), &module).await;
        let expected = proxied_path(&other, "/lib@1.2.3/lib.js");
        assert_eq!(redirect.field("location"), expected);
        assert!(
            redirect.field("cache-status").contains(outcome),
            "{redirect:?}"
        );
    }
    // A client that does not state that a page loads it follows no redirect of another host under the site's name.
    let opened = get(
        &proxy,
        &proxied_path(&other, "/lib@1"),
        &[("sec-fetch-dest", "document")],
    )
    .await;
    assert_eq!(
        (opened.status, opened.field("location")),
        (StatusCode::NOT_FOUND, "")
    );
    // A host that does not let pages read the redirect is contacted by the browser itself.
    let silent = get(&proxy, &proxied_path(&other, "/silent@1"), &module).await;
    assert_eq!(silent.status, StatusCode::TEMPORARY_REDIRECT);
    assert!(
        silent.field("location").starts_with("http://cdn.test:"),
        "{silent:?}"
    );
}
